"""Which GPUs of its nodes each replica has.

The cluster mostly tells only how many devices of a node a pod has. Where it tells which (HAMi, DRA), those
are taken; else those that the pod was given here before, so that one pod more moves no other; else the
lowest free ones. Devices that are withdrawn are, as far as can be, ones that nobody holds. Pods that are
nominated for a node get what is free there of what they wait for.

Of an incomplete list, replicas stay that it may only have left out. They keep their GPUs unless the pods
that are listed need them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from sizing.inventory.document import Document
from sizing.inventory.kubernetes.counted import Counted, Need
from sizing.inventory.kubernetes.mapping import Mapped, MappedReplica
from sizing.inventory.kubernetes.rows import Rows
from sizing.inventory.kubernetes.wants import WHOLE, Claim, Want, by_node, claim_of, mib_of, wants_of

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Kept(NamedTuple):
    """The devices that are kept for a replica's waiting pods on some nodes, and how many these ask for."""

    nodes: tuple[str, ...]
    devices: int
    asked: int

    @property
    def lacks(self) -> bool:
        return self.devices < self.asked


@dataclass(slots=True)
class Placed:
    """Where everything is. GPU indexes by replica and node; the GPUs out of order by node.

    `outside` is the memory of each node's GPUs (MiB, by index) that nothing new gets and no replica has.
    `reserved` are replicas for whose waiting pods the scheduler keeps devices, `short` those that hold more
    devices than could be found for them, `displaced` those that could not stay.
    """

    places: dict[str, dict[str, tuple[int, ...]]] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    unhealthy: dict[str, set[int]] = field(default_factory=dict)
    outside: dict[str, dict[int, int]] = field(default_factory=dict)
    reserved: dict[str, Kept] = field(default_factory=dict)
    short: list[str] = field(default_factory=list)
    displaced: set[str] = field(default_factory=set)


def place(counted: Counted, mapped: Mapped, stored: Document, staying: Collection[str] = ()) -> Placed:
    """Give every replica that holds devices as many of its nodes' GPUs.

    `staying` are names of stored replicas that keep theirs where they can, unless they are listed.
    """
    return _Placing(counted, mapped, stored, staying).run()


@dataclass(slots=True)
class _Job:
    """What a replica holds on one node, and the GPUs found for it so far."""

    replica: MappedReplica
    node: str
    wants: list[Want]
    claim: Claim
    found: list[int | None]

    @property
    def taken(self) -> set[int]:
        return {index for index in self.found if index is not None}


class _Placing:
    """One run, in an order that does not depend on that of the objects."""

    def __init__(self, counted: Counted, mapped: Mapped, stored: Document, staying: Collection[str]) -> None:
        self.stored = stored
        listed = {replica.name for replica in mapped.replicas}
        self.staying = sorted(name for name in staying if name not in listed and name in stored.replicas)
        self.kept: dict[str, list[tuple[str, int, Claim]]] = defaultdict(list)
        self.replicas = sorted(mapped.replicas, key=lambda r: (r.started_at or _LONG_AGO, r.name))
        self.placed = Placed()
        self.rows = {}
        for name, node in counted.nodes.items():
            known = stored.nodes.get(name)
            gpus = known.gpus or {} if known else {}
            self.rows[name] = Rows(node, gpus, counted.reserved.get(name, ()))

    def run(self) -> Placed:
        jobs = self._jobs()
        for job in jobs:
            self._by_name(job)
        for job in jobs:
            self._as_before(job)
        for name in self.staying:
            self._keep(name)
        for job in jobs:
            self._anywhere(job)
            if None in job.found and self._make_room(job.node):
                self._anywhere(job)
        places: dict[str, dict[str, tuple[int, ...]]] = defaultdict(dict)
        for job in jobs:
            if job.taken:
                places[job.replica.name][job.node] = tuple(sorted(job.taken))
            if None in job.found and job.replica.name not in self.placed.short:
                self.placed.short.append(job.replica.name)
        self.placed.places.update(places)
        for rows in self.rows.values():
            rows.withdraw()
        self._reserve()
        self.placed.unhealthy = {name: rows.unhealthy for name, rows in self.rows.items()}
        self.placed.outside = {name: rows.outside() for name, rows in self.rows.items()}
        return self.placed

    def _jobs(self) -> list[_Job]:
        jobs = []
        for replica in self.replicas:
            held = by_node(replica.bound)
            claim = claim_of([want for wants in held.values() for want in wants])
            claim = self._possible(claim, held)
            self.placed.claims[replica.name] = claim
            for node, wants in sorted(held.items()):
                jobs.append(_Job(replica, node, wants, claim, [None] * len(wants)))
        return jobs

    def _possible(self, claim: Claim, held: Mapping[str, Sequence[Want]]) -> Claim:
        """The claim, or all of the GPU where its memory is unknown or smaller."""
        if claim == WHOLE:
            return claim
        for node, wants in held.items():
            rows = self.rows[node]
            for resource in {want.resource for want in wants}:
                for index in rows.spans.get(resource, ()):
                    memory = rows.devices[index].memory_mib
                    if memory is None or mib_of(claim, memory) > memory:
                        return WHOLE
        return claim

    def _give(self, job: _Job, at: int, index: int) -> None:
        job.found[at] = index
        self.rows[job.node].take(index, job.claim)

    def _by_name(self, job: _Job) -> None:
        rows = self.rows[job.node]
        for at, want in enumerate(job.wants):
            index = rows.index_of.get((want.resource, want.name)) if want.name else None
            if index is not None and index not in job.taken and rows.fits(index, job.claim):
                self._give(job, at, index)

    def _as_before(self, job: _Job) -> None:
        known = self.stored.replicas.get(job.replica.name)
        before = dict(known.placement).get(job.node, ()) if known and None in job.found else ()
        rows = self.rows[job.node]
        for index in before:
            for at, want in enumerate(job.wants):
                if job.found[at] is None and index in rows.spans.get(want.resource, ()):
                    if index not in job.taken and rows.fits(index, job.claim):
                        self._give(job, at, index)
                    break

    def _keep(self, name: str) -> None:
        """Leave a stored replica where it is, where all of that is free."""
        replica = self.stored.replicas[name]
        variant = self.stored.variant(replica.model, replica.variant)
        spec = variant.spec if variant else None
        claim = Claim(spec.gpu_memory_mib, spec.gpu_memory_fraction) if spec else WHOLE
        held = [(node, index) for node, indexes in replica.placement for index in indexes]
        known = [(self.rows[node], index) for node, index in held if node in self.rows]
        if all(index < len(rows.devices) and rows.fits(index, claim) for rows, index in known):
            for rows, index in known:
                rows.take(index, claim)
            for node, index in held:
                self.kept[node].append((name, index, claim))
        else:
            self.placed.displaced.add(name)

    def _make_room(self, node: str) -> bool:
        """Take the GPUs of the node from all that only stay there; whether there were any."""
        kept = self.kept.pop(node, [])
        for name, index, claim in kept:
            self.rows[node].release(index, claim)
            self.placed.displaced.add(name)
        return bool(kept)

    def _anywhere(self, job: _Job) -> None:
        for at, want in enumerate(job.wants):
            if job.found[at] is None:
                index = self.rows[job.node].lowest(want.resource, job.claim, job.taken)
                if index is not None:
                    self._give(job, at, index)

    def _reserve(self) -> None:
        """Keep devices for pods that the scheduler has nominated a node for, the most important first.

        As long as their victims hold the rest, they have what is free: the scheduler gives none of it to
        less important pods.
        https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
        """
        for replica in sorted(self.replicas, key=lambda r: (-r.priority, r.name)):
            needs: dict[str, list[Need]] = defaultdict(list)
            for member in replica.nominated:
                if member.pod.nominated in self.rows:
                    needs[member.pod.nominated] += member.needs
            held = {node: wants_of(needs[node]) for node in sorted(needs)}
            held = {node: wants for node, wants in held.items() if self._has_as_many(node, wants)}
            if held:
                self._reserve_for(replica, held)

    def _has_as_many(self, node: str, wants: Sequence[Want]) -> bool:
        """Whether the node has the devices at all; a nomination that it cannot keep is an old one."""
        spans = self.rows[node].spans
        asked = Counter(want.resource for want in wants)
        return all(len(spans.get(resource, ())) >= number for resource, number in asked.items())

    def _reserve_for(self, replica: MappedReplica, held: Mapping[str, Sequence[Want]]) -> None:
        places = self.placed.places.get(replica.name, {})
        claim = self.placed.claims.get(replica.name) if places else None
        if claim is None:
            claim = self._possible(claim_of([want for wants in held.values() for want in wants]), held)
        found: dict[str, list[int]] = {}
        for node, wants in held.items():
            rows, taken = self.rows[node], set(places.get(node, ()))
            for want in wants:
                index = rows.index_of.get((want.resource, want.name)) if want.name else None
                if index is None or index in taken or not rows.fits(index, claim):
                    index = rows.lowest(want.resource, claim, taken, sound=True)
                if index is not None:
                    rows.take(index, claim)
                    taken.add(index)
                    found.setdefault(node, []).append(index)
        if not found:
            return
        self.placed.claims[replica.name] = claim
        self.placed.reserved[replica.name] = Kept(
            tuple(found), sum(map(len, found.values())), sum(map(len, held.values()))
        )
        self.placed.places[replica.name] = places | {
            node: tuple(sorted({*places.get(node, ()), *indexes})) for node, indexes in found.items()
        }
