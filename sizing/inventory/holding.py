"""What replicas hold: what no cluster can be like is an error, what real ones are like a warning.

One rule for files, REST and admin. `check_holdings` looks at a state as it will be: errors where something
adds up to more than there is, warnings where something stands where nothing new would be put.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sizing.domain.claims import claim_mib
from sizing.domain.specs import HOLDING_STATES, WHOLE_GPU_OUTSIDE_LIMIT_MIB
from sizing.inventory.document import (
    Document,
    Findings,
    GpuEntry,
    ModelEntry,
    NodeEntry,
    ReplicaEntry,
    VariantEntry,
)
from sizing.inventory.places import FilePlaces
from sizing.inventory.words import counted, listed, quoted


@dataclass(slots=True)
class Holder:
    """A replica in a state that holds GPUs, with what it is a copy of."""

    replica: ReplicaEntry
    model: ModelEntry
    variant: VariantEntry


def holders_in(state: Document) -> list[Holder]:
    """The replicas that hold something and whose own entries are sound."""
    holders = []
    for replica in state.replicas.values():
        if replica.state not in HOLDING_STATES or replica.broken:
            continue
        model = state.models.get(replica.model)
        variant = (model.variants or {}).get(replica.variant) if model else None
        if model is not None and variant is not None and not variant.broken:
            holders.append(Holder(replica, model, variant))
    return holders


def check_holdings(state: Document, places: FilePlaces, findings: Findings) -> None:
    """Check shapes, claims and uses of all that is held; a fault that the file has no part in only warns."""
    Holdings(state, places, findings).check()


class Holdings:
    """The holders of each GPU, and the checks over them."""

    def __init__(self, state: Document, places: FilePlaces, findings: Findings) -> None:
        self.state = state
        self.places = places
        self.findings = findings
        self.holders = holders_in(state)
        self.by_node: dict[str, dict[int, list[Holder]]] = {}

    def check(self) -> None:
        for holder in self.holders:
            self._check_shape(holder)
            for node, indexes in holder.replica.placement:
                gpus = self.by_node.setdefault(node, {})
                for index in indexes:
                    gpus.setdefault(index, []).append(holder)
        for entry in self.state.nodes.values():
            if not entry.broken:
                self._check_node(entry, self.by_node.get(entry.name, {}))

    def _refuse(self, candidates: Iterable[str | None], otherwise: str, message: str) -> None:
        """An error at the first place that the file has a part in, else a warning about what was there."""
        for path in candidates:
            if path is not None:
                self.findings.error(path, message)
                return
        self.findings.warn(otherwise, message)

    # The shape of a replica ------------------------------------------------------------------

    def _check_shape(self, holder: Holder) -> None:
        replica, spec = holder.replica, holder.variant.spec
        if not replica.placement:
            message = (
                f"replica {quoted(replica.name)} is {replica.state}, so it must name the GPUs that it holds"
            )
            self._refuse(self._paths_of_shape(holder, None), f"replica {quoted(replica.name)}", message)
            return
        if len(replica.placement) != spec.nodes:
            message = (
                f"replica {quoted(replica.name)} is on {counted(len(replica.placement), 'node')},"
                f" but variant {quoted(spec.name)} spans {spec.nodes}"
            )
            self._tell_shape(holder, None, message)
        for node, indexes in replica.placement:
            if len(indexes) != spec.gpus:
                held = counted(len(indexes), "GPU")
                message = (
                    f"replica {quoted(replica.name)} holds {held} of node {quoted(node)},"
                    f" but variant {quoted(spec.name)} takes {spec.gpus} on each node"
                )
                self._tell_shape(holder, node, message)

    def _tell_shape(self, holder: Holder, node: str | None, message: str) -> None:
        """Another shape than the variant's is an error; a warning of what a cluster runs or what has failed.

        Pods of one model may ask for different numbers of GPUs, and of a group of pods a part may be gone.
        """
        replica, paths = holder.replica, self._paths_of_shape(holder, node)
        otherwise = f"replica {quoted(replica.name)}"
        if replica.source or replica.state == "failed":
            self.findings.warn(next((path for path in paths if path is not None), otherwise), message)
        else:
            self._refuse(paths, otherwise, message)

    def _paths_of_shape(self, holder: Holder, node: str | None) -> tuple[str | None, ...]:
        return (
            self.places.placement(holder.replica, node),
            self.places.variant(holder.model, holder.variant),
        )

    # The claims on a node --------------------------------------------------------------------

    def _check_node(self, node: NodeEntry, held: dict[int, list[Holder]]) -> None:
        gpus = node.gpus or {}
        groups: dict[tuple[object, ...], list[tuple[GpuEntry, list[Holder]]]] = {}
        for index, holders in held.items():
            gpu = gpus.get(index)
            if gpu is not None:
                # The GPUs of one replica are told of together.
                key = (gpu.memory_mib, gpu.used_outside_mib, *(id(h) for h in holders))
                groups.setdefault(key, []).append((gpu, holders))
        for alike in groups.values():
            gpu, holders = alike[0]
            self._check_gpu(node, gpu, holders, gpu_words([g.index for g, _ in alike], node.name))
        for gpu in gpus.values():
            if gpu.used_outside_mib and gpu.index not in held:
                self._check_outside(node, gpu)

    def _check_gpu(self, node: NodeEntry, gpu: GpuEntry, holders: list[Holder], words: str) -> None:
        memory = gpu.memory_mib
        whole = [h for h in holders if h.variant.spec.whole_gpu]
        if whole and len(holders) > 1:
            first = whole[0].replica.name
            others = sorted(h.replica.name for h in holders if h is not whole[0])
            message = (
                f"{words}: replica {quoted(first)} claims the whole GPU,"
                f" but {listed(others)} {'holds' if len(others) == 1 else 'hold'} it too"
            )
            self._refuse_claims(node, gpu, holders, message)
            return
        if memory is None:
            if not whole:
                names = listed(sorted(h.replica.name for h in holders))
                message = f"{words}: the memory is unknown, so {names} cannot claim a part of it"
                self._refuse_claims(node, gpu, holders, message)
            return
        claims = [claim_mib(h.variant.spec, memory) for h in holders]
        total = sum(claims)
        if total > memory:
            parts = sorted(
                zip(claims, (h.replica.name for h in holders), strict=True), key=lambda p: (-p[0], p[1])
            )
            shown = ", ".join(f"{quoted(name)} {claim}" for claim, name in parts[:5])
            more = f" and {len(parts) - 5} more" if len(parts) > 5 else ""
            message = f"{words}: the claims add up to {total} MiB of {memory} MiB ({shown}{more})"
            self._refuse_claims(node, gpu, holders, message)
            return
        outside = gpu.used_outside_mib
        too_much = outside > WHOLE_GPU_OUTSIDE_LIMIT_MIB if whole else total + outside > memory
        if too_much:
            path = self.places.gpu(node, gpu) or self._last_replica(node, gpu, holders)
            if path:
                self.findings.warn(
                    path,
                    f"{words}: claims of {total} MiB and {outside} MiB used outside are more than"
                    f" {memory} MiB; nothing is free",
                )

    def _refuse_claims(self, node: NodeEntry, gpu: GpuEntry, holders: list[Holder], message: str) -> None:
        candidates = [
            self._last_replica(node, gpu, holders),
            self.places.gpu(node, gpu),
            *(self.places.variant(h.model, h.variant) for h in holders),
        ]
        self._refuse(candidates, f"node {quoted(node.name)}", message)

    def _last_replica(self, node: NodeEntry, gpu: GpuEntry, holders: list[Holder]) -> str | None:
        """The path of the holder that comes last in the file."""
        in_file = [h.replica for h in holders if self.places.replica(h.replica) is not None]
        if not in_file:
            return None
        last = max(in_file, key=lambda r: (-1 if r.at is None else r.at, r.name))
        return self.places.replica(last, node.name, gpu.index)

    def _check_outside(self, node: NodeEntry, gpu: GpuEntry) -> None:
        path = self.places.gpu(node, gpu)
        if path and gpu.memory_mib is not None and gpu.used_outside_mib > gpu.memory_mib:
            self.findings.warn(
                path,
                f"{gpu_words([gpu.index], node.name)}: {gpu.used_outside_mib} MiB used outside are more than"
                f" {gpu.memory_mib} MiB; nothing is free",
            )


def gpu_words(indexes: list[int], node: str) -> str:
    """`GPUs 0, 1 of node "gpu-a1"`."""
    if len(indexes) == 1:
        return f"GPU {indexes[0]} of node {quoted(node)}"
    first = ", ".join(str(i) for i in sorted(indexes)[:8])
    more = f" and {len(indexes) - 8} more" if len(indexes) > 8 else ""
    return f"GPUs {first}{more} of node {quoted(node)}"
