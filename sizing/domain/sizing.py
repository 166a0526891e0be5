"""How many replicas a question needs, how many run, and how many more fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, repeat

from sizing.domain.catalog import Catalog, Question
from sizing.domain.demand import replicas_needed
from sizing.domain.fleet import Fleet
from sizing.domain.placement import room
from sizing.domain.specs import MeasurementSpec, ModelSpec, ReplicaSpec, VariantSpec
from sizing.domain.wording import names, plural

_ROOMS_KEPT = 512


@dataclass(frozen=True)
class Count:
    """A question in replicas.

    `fitting` is what fits on the cluster; `allowed` what `max_replicas` leaves (None: unlimited);
    `free_room` the smaller of the two. `others` are the measured rates of the serving replicas that run
    another variant and are kept (0 where unmeasured).
    """

    model: ModelSpec
    variant: VariantSpec
    measurement: MeasurementSpec
    serving: tuple[ReplicaSpec, ...]
    needed: int
    fitting: int
    allowed: int | None
    current_tok_per_sec: Decimal
    others: tuple[Decimal, ...]
    warnings: tuple[str, ...]

    @property
    def current(self) -> int:
        """Replicas that are starting or ready."""
        return len(self.serving)

    @property
    def more(self) -> int:
        """Replicas that are missing."""
        return max(self.needed - self.current, 0)

    @property
    def surplus(self) -> int:
        """Replicas beyond the need."""
        return max(self.current - self.needed, 0)

    @property
    def free_room(self) -> int:
        """How many more replicas fit at once, within `max_replicas`."""
        return self.fitting if self.allowed is None else min(self.fitting, self.allowed)

    @property
    def permitted(self) -> int:
        """How many of the missing replicas `max_replicas` permits."""
        return self.more if self.allowed is None else min(self.more, self.allowed)

    @property
    def had(self) -> int:
        """How many of the missing replicas fit at once."""
        return min(self.free_room, self.more)


def count(catalog: Catalog, fleet: Fleet, question: Question) -> Count:
    """Size a question; QuestionError where it has no answer."""
    model, variant, measurement = catalog.resolve(question)
    serving = tuple(fleet.serving(model.name))
    rates = {
        v.name: measured.tok_per_sec
        for v in model.variants
        if (measured := catalog.measured.get((model.name, v.name, measurement.profile))) is not None
    }
    rates[variant.name] = measurement.tok_per_sec
    nothing = Decimal(0)
    run = fleet.serving_by_variant(model.name)
    kept = {name: number for name, number in run.items() if name != variant.name}
    others = tuple(chain.from_iterable(repeat(rates.get(name, nothing), kept[name]) for name in kept))
    needed = replicas_needed(question.tokens_per_sec, measurement.tok_per_sec, question.utilization, others)
    unmeasured = {name: number for name, number in kept.items() if name not in rates}
    allowed = None if model.max_replicas is None else max(model.max_replicas - len(serving), 0)
    return Count(
        model=model,
        variant=variant,
        measurement=measurement,
        serving=serving,
        needed=needed,
        fitting=fleet.kept("room", variant, lambda: room(fleet, variant), _ROOMS_KEPT),
        allowed=allowed,
        current_tok_per_sec=sum((rates.get(name, nothing) * number for name, number in run.items()), nothing),
        others=others,
        warnings=tuple(_warnings(fleet, serving, unmeasured, measurement)),
    )


def _warnings(
    fleet: Fleet,
    serving: tuple[ReplicaSpec, ...],
    unmeasured: Mapping[str, int],
    measurement: MeasurementSpec,
) -> list[str]:
    warnings = []
    if unmeasured:
        total = plural(sum(unmeasured.values()), "current replica")
        warnings.append(
            f"{total} of variant {names(sorted(unmeasured))} counted as 0 tok/s:"
            f" not measured on {measurement.profile}"
        )
    hardware = fleet.hardware
    closed: dict[str, list[str]] = {}
    unhealthy = []
    troubled = fleet.troubled()
    for replica in serving if troubled else ():
        if replica.name not in troubled:
            continue
        held = fleet.replicas[replica.name]
        for node in held.nodes:
            if not hardware.running[node]:
                why = (
                    "not ready"
                    if not hardware.ready[node]
                    else "cordoned"
                    if not hardware.schedulable[node]
                    else "not seen lately"
                )
                closed.setdefault(f"{hardware.nodes[node].name} ({why})", []).append(replica.name)
        if not all(hardware.healthy[list(held.gpus)]):
            unhealthy.append(replica.name)
    if closed:
        replicas = sorted({name for there in closed.values() for name in there})
        warnings.append(f"current replicas on closed nodes: {names(replicas)} on {names(sorted(closed))}")
    if unhealthy:
        warnings.append(f"current replicas on unhealthy GPUs: {names(unhealthy)}")
    return warnings
