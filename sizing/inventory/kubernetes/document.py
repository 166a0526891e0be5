"""A cluster as a document of the inventory: what it tells, in the desk's own form.

Only nodes, models and replicas that the cluster tells about are in it. Profiles, measurements and targets
are not the cluster's, nor is anything that people wrote down by hand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from sizing.inventory.document import Document, ModelEntry, ReplicaEntry, VariantEntry
from sizing.inventory.kubernetes.counted import Counted
from sizing.inventory.kubernetes.mapping import Ignored, Mapped, MappedModel, MappedReplica
from sizing.inventory.kubernetes.mapping.names import OTHER_END
from sizing.inventory.kubernetes.node_entries import Share, node_entries
from sizing.inventory.kubernetes.placing import Placed, place
from sizing.inventory.kubernetes.shapes import partition_types, shape_of
from sizing.inventory.kubernetes.variants import KUBERNETES, variants_of
from sizing.inventory.words import counted as words_for
from sizing.inventory.words import listed, quoted
from sizing.models.catalog import PRIORITY_LIMIT
from sizing.models.fields import name_problem

_MOST_EXAMPLES = 5


@dataclass(slots=True)
class Brought:
    """What a cluster brings: the document, what of the cluster is in no part of it, and warnings.

    `ignored` has dictionaries with `kind`, `reason`, `count` and up to five `examples`. `displaced` are
    stored replicas that cannot stay: those kept by hand on nodes of the cluster, whose own pods are what is
    there, and of those that should stay the ones whose GPUs its pods need.
    """

    document: Document = field(default_factory=Document)
    ignored: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    displaced: list[str] = field(default_factory=list)


def as_document(counted: Counted, mapped: Mapped, stored: Document, staying: Collection[str] = ()) -> Brought:
    """The cluster in the form of the inventory; `stored` is what the desk has now.

    `staying` are names of stored replicas that an incomplete list may have left out.
    """
    return _Bringing(counted, mapped, stored, staying).run()


class _Bringing:
    def __init__(self, counted: Counted, mapped: Mapped, stored: Document, staying: Collection[str]) -> None:
        self.counted = counted
        self.staying = staying
        self.mapped = mapped
        self.stored = stored
        self.brought = Brought(warnings=list(mapped.warnings))
        self.ignored = list(mapped.ignored)
        self.shares: dict[str, Share] = {}
        self.placed = Placed()
        self.partitions = partition_types(counted)

    def run(self) -> Brought:
        self.placed = place(self.counted, self.mapped, self.stored, self.staying)
        for model in self.mapped.models.values():
            self._bring(model)
        self._warn_of_places()
        document = self.brought.document
        document.models = dict(sorted(document.models.items()))
        document.replicas = dict(sorted(document.replicas.items()))
        document.nodes = node_entries(self.counted, self.placed, self.shares, self.stored)
        self._displace()
        self._ignore_the_rest()
        return self.brought

    # Models and replicas ---------------------------------------------------------------------

    def _bring(self, model: MappedModel) -> None:
        """A model with those of its replicas that have a place or wait for one."""
        replicas = [r for r in model.replicas if self._has_a_place(r)]
        if not replicas:
            return
        name = self._name(model)
        known = self.stored.models.get(name)
        shapes = {r.name: shape_of(r, self.placed, self.counted, self.partitions) for r in replicas}
        variants = variants_of(name, shapes, replicas, known)
        if model.workload == "model":  # nobody asks for room of the others' variants
            self.brought.warnings += variants.warnings
        entry = _model_entry(name, model, known)
        entry.variants = variants.entries
        self.brought.document.models[name] = entry
        for replica in replicas:
            variant = variants.entries[variants.of_replica[replica.name]]
            found = self._replica_entry(replica, entry, variant.name)
            if replica.priority != model.priority:
                found.priority = _priority(replica.priority)
            self.brought.document.replicas[replica.name] = found
            self._share(replica, found, variant)

    def _has_a_place(self, replica: MappedReplica) -> bool:
        if replica.state == "pending" or self.placed.places.get(replica.name):
            return True
        self.ignored.append(
            Ignored("Pod", "holds devices of which its node has none left to show", (replica.name,))
        )
        return False

    def _name(self, model: MappedModel) -> str:
        """The model's name; what is no LLM never becomes one that people wrote down."""
        known = self.stored.models.get(model.name)
        if model.workload == "other" and known and known.workload == "model" and known.source != KUBERNETES:
            return model.name + OTHER_END
        return model.name

    def _replica_entry(self, replica: MappedReplica, model: ModelEntry, variant: str) -> ReplicaEntry:
        """A replica; what the cluster does not say of it stays as it was."""
        known = self.stored.replicas.get(replica.name)
        places = self.placed.places.get(replica.name, {})
        benchable = replica.benchable
        if benchable is None:
            benchable = known.benchable if known else False
        return ReplicaEntry(
            name=replica.name,
            model=model.name,
            variant=variant,
            state="starting" if replica.state == "pending" and places else replica.state,
            started_at=replica.started_at,
            endpoint=replica.endpoint or (known.endpoint if known else ""),
            benchable=benchable,
            placement=tuple(sorted(places.items())),
            source=KUBERNETES,
        )

    def _share(self, replica: MappedReplica, entry: ReplicaEntry, variant: VariantEntry) -> None:
        bound = {member.pod.node for member in replica.bound}
        for node, _ in entry.placement:
            if node not in bound:
                continue  # kept for pods that are not there yet
            share = self.shares.setdefault(node, Share())
            share.cpu_millis += variant.spec.cpu_millis
            share.memory_mib += variant.spec.memory_mib
            share.pods += 1

    # What is told beside it ------------------------------------------------------------------

    def _warn_of_places(self) -> None:
        for name, kept in sorted(self.placed.reserved.items()):
            nodes = ", ".join(kept.nodes)
            devices = f"{kept.devices} of its {kept.asked} devices" if kept.lacks else "its devices"
            others = " until the others are free" if kept.lacks else ""
            self.brought.warnings.append(
                f"pod {quoted(name)} waits, and the scheduler keeps {devices} on {nodes}{others}:"
                f" counted as {self.brought.document.replicas[name].state}"
            )
        if self.placed.short:
            names = sorted(self.placed.short)
            self.brought.warnings.append(
                f"{words_for(len(names), 'replica')} held more devices than their nodes could show:"
                f" {listed(names)}"
            )

    def _displace(self) -> None:
        document = self.brought.document
        for name, replica in sorted(self.stored.replicas.items()):
            if replica.source == KUBERNETES or name in document.replicas:
                continue
            if any(node in document.nodes for node, _ in replica.placement):
                self.brought.displaced.append(name)
        if self.brought.displaced:
            names = self.brought.displaced
            self.brought.warnings.append(
                f"{words_for(len(names), 'replica')} kept by hand on nodes of the cluster must go, since its"
                f" pods are what runs there: {listed(names, 10)}"
            )
        if self.placed.displaced:
            names = sorted(self.placed.displaced)
            self.brought.displaced = sorted({*self.brought.displaced, *names})
            self.brought.warnings.append(
                f"{words_for(len(names), 'replica')} not in the list, whose GPUs its pods hold now:"
                f" {listed(names, 10)}"
            )

    def _ignore_the_rest(self) -> None:
        self.ignored += [
            Ignored("Node", "has a name that the desk cannot keep", (name,))
            for name in self.counted.nodes
            if name_problem(name)
        ]
        self.brought.ignored = _by_reason(self.ignored)


def _by_reason(ignored: Iterable[Ignored]) -> list[dict[str, Any]]:
    found: dict[tuple[str, str], list[str]] = {}
    for kind, reason, names in ignored:
        found.setdefault((kind, reason), []).extend(names)
    return [
        {"kind": kind, "reason": reason, "count": len(names), "examples": sorted(names)[:_MOST_EXAMPLES]}
        for (kind, reason), names in sorted(found.items())
    ]


def _model_entry(name: str, model: MappedModel, known: ModelEntry | None) -> ModelEntry:
    """The model: one that people wrote down as it is, else as the cluster has it."""
    if known is not None and known.source != KUBERNETES:
        return replace(known)
    return ModelEntry(
        name=name,
        priority=_priority(model.priority),
        preemption_policy=model.preemption_policy,
        min_replicas=model.min_replicas,
        max_replicas=known.max_replicas if known else None,
        default_profile=known.default_profile if known else None,
        workload=model.workload,
        owner=model.owner,
        source=KUBERNETES,
    )


def _priority(value: int) -> int:
    return max(-PRIORITY_LIMIT - 1, min(value, PRIORITY_LIMIT))
