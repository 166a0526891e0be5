"""The variant of each replica of a model: one that there is, else a new one by its shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sizing.inventory.document import ModelEntry, VariantEntry
from sizing.inventory.kubernetes.mapping import MappedReplica
from sizing.inventory.kubernetes.mapping.names import short
from sizing.inventory.kubernetes.shapes import Shape, spec_of
from sizing.inventory.words import quoted

KUBERNETES = "kubernetes"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Variants:
    """The variants of a model after the cluster is brought in, and each replica's by name."""

    entries: dict[str, VariantEntry] = field(default_factory=dict)
    of_replica: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def variants_of(
    model: str, shapes: Mapping[str, Shape], replicas: list[MappedReplica], stored: ModelEntry | None
) -> Variants:
    """Choose the variants of a model's replicas; `shapes` by the name of the replica.

    Variants that people wrote down stay as they are and are used where they fit. All others are those that
    the replicas have now, as the newest replica of each asks for it.
    """
    return _Choice(model, shapes, replicas, stored).run()


class _Choice:
    def __init__(
        self,
        model: str,
        shapes: Mapping[str, Shape],
        replicas: list[MappedReplica],
        stored: ModelEntry | None,
    ) -> None:
        self.model = model
        self.shapes = shapes
        self.replicas = replicas
        known = (stored.variants or {}) if stored else {}
        self.known = dict(sorted(known.items(), key=lambda item: (item[1].position, item[0])))
        self.by_hand = {name: v for name, v in self.known.items() if v.source != KUBERNETES}
        self.chosen: dict[str, Shape] = {}
        self.found = Variants()

    def run(self) -> Variants:
        wanted: dict[tuple[str, Shape], list[MappedReplica]] = {}
        for replica in self.replicas:
            wanted.setdefault((replica.variant, self.shapes[replica.name]), []).append(replica)
        of_variant: dict[str, list[MappedReplica]] = {}
        for name, shape in sorted(wanted, key=self._order):
            replicas = wanted[name, shape]
            variant = self._choose(name, shape)
            self.found.of_replica.update((r.name, variant) for r in replicas)
            of_variant.setdefault(variant, []).extend(replicas)
        self.found.entries.update(self.by_hand)
        last = max((v.position for v in self.known.values()), default=-1)
        for name, shape in self.chosen.items():
            newest = max(of_variant[name], key=_age)
            spec, notes = spec_of(name, shape, newest)
            if notes:
                self.found.warnings.append(
                    f"variant {quoted(name)} of model {quoted(self.model)} does not keep the node affinity"
                    f" of its pods: {'; '.join(notes)}"
                )
            apart = sorted({key for m in newest.members if m.needs for key in m.pod.apart})
            if apart:
                self.found.warnings.append(
                    f"variant {quoted(name)} of model {quoted(self.model)} does not keep that its pods stand"
                    f" apart from others by {', '.join(apart)} (podAntiAffinity); the room may be less"
                )
            if name in self.known:
                position = self.known[name].position
            else:
                last += 1
                position = last
            self.found.entries[name] = VariantEntry(spec, position, source=KUBERNETES)
        entries = sorted(self.found.entries.items(), key=lambda item: (item[1].position, item[0]))
        self.found.entries = dict(entries)
        return self.found

    def _order(self, item: tuple[str, Shape]) -> tuple[object, ...]:
        """What has a place first, and of one name first the shape that has it already."""
        name, shape = item
        known = self.known.get(name)
        return (shape.waiting, name, not (known and shape.fits(known.spec)), shape.key)

    def _choose(self, name: str, shape: Shape) -> str:
        if name in self.by_hand and shape.fits(self.by_hand[name].spec):
            return name
        if not name:
            for known in self.by_hand.values():
                if shape.fits(known.spec):
                    return known.name
            for there, other in self.chosen.items():
                if shape.may_be(other):
                    return there
        if name in self.by_hand:
            self.found.warnings.append(
                f"variant {quoted(name)} of model {quoted(self.model)} is kept by hand and not like the pods"
                f" that name it, which are {shape.name}"
            )
        return self._new(name, shape)

    def _new(self, name: str, shape: Shape) -> str:
        """A name for the shape that no other has: plain, with the shape, the topology, a number."""
        base = name or shape.name
        tries = [base]
        if name:
            tries.append(f"{name}-{shape.name}")
        if shape.topology_key:
            tries.append(f"{tries[-1]}-{shape.topology_key.rsplit('/', 1)[-1]}")
        number = 1
        while True:
            for candidate in map(short, tries):
                taken = self.chosen.get(candidate)
                if candidate not in self.by_hand and (taken is None or taken.key == shape.key):
                    self.chosen.setdefault(candidate, shape)
                    return candidate
            number += 1
            tries = [f"{base}-{number}"]


def _age(replica: MappedReplica) -> tuple[datetime, str]:
    return (replica.leader.created_at or replica.started_at or _LONG_AGO, replica.name)
