"""Models, measurements and saved targets in numbers, without a search that would take long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.utils import timezone

from sizing import snapshot
from sizing.domain.answer import Answer
from sizing.domain.catalog import Question, QuestionError
from sizing.domain.sizing import count
from sizing.domain.staleness import too_old
from sizing.models import Measurement, Target
from sizing.services.wishes import REPLICAS_SEARCHED, Kind, verdict
from sizing.snapshot import Snapshot

_ANY_RATE = Decimal(1)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a model's replicas serve, as answers count it where neither variant nor profile is named."""

    variant: str
    profile: str
    tok_per_sec: float  # of one replica
    current_tok_per_sec: float  # of all that run
    free_room: int  # replicas


@dataclass(frozen=True, slots=True)
class ModelNumbers:
    """A model. `measured` is None where a question about it has no answer."""

    model: str
    current: int  # replicas
    measured: Measured | None


@dataclass(frozen=True, slots=True)
class MeasurementNumbers:
    """A measurement that counts: the newest valid one of its variant and profile."""

    model: str
    variant: str
    profile: str
    age_s: float
    stale: bool


@dataclass(frozen=True, slots=True)
class TargetNumbers:
    """A saved target. `fits` is None where only a long search could tell."""

    pk: int
    model: str
    profile: str
    variant: str
    tok_per_sec: float
    needed: int
    current: int
    missing: int
    free_room: int
    fits: bool | None


@dataclass(frozen=True, slots=True)
class Numbers:
    """The fleet's numbers. `targets`: those that have an answer. `kinds`: how many stand how; what only a
    long search could tell is `open`. `age_s`: since this process read the inventory, in whole or in part."""

    models: list[ModelNumbers]
    measurements: list[MeasurementNumbers]
    targets: list[TargetNumbers]
    kinds: dict[str, int]
    age_s: float


def numbers() -> Numbers:
    """All of one snapshot; three queries, as long as nothing was written."""
    now, kept = timezone.now(), snapshot.current()
    stale = set(_marked_stale(kept))
    kinds = dict.fromkeys([*Kind, "open"], 0)
    targets = []
    for row in Target.objects.select_related("model", "profile", "variant").order_by("pk"):
        kind, told = _of_target(kept, row)
        kinds[kind or "open"] += 1
        if told is not None:
            targets.append(told)
    return Numbers(
        [_of_model(kept, name) for name in sorted(kept.catalog.models)],
        list(_of_measurements(kept, stale, now)),
        targets,
        {str(kind): number for kind, number in kinds.items()},
        kept.age_s,
    )


def _of_model(kept: Snapshot, name: str) -> ModelNumbers:
    try:
        found = count(kept.catalog, kept.fleet, Question(name, _ANY_RATE))
    except QuestionError:
        return ModelNumbers(name, len(kept.fleet.serving(name)), None)
    measured = Measured(
        found.variant.name,
        found.measurement.profile,
        float(found.measurement.tok_per_sec),
        float(found.current_tok_per_sec),
        found.free_room,
    )
    return ModelNumbers(name, found.current, measured)


def _of_measurements(kept: Snapshot, stale: set[int], now: datetime) -> Iterator[MeasurementNumbers]:
    """By the marks that lists carry, which are some minutes old, and by age, which is known."""
    for (model, variant, profile), spec in sorted(kept.catalog.measured.items()):
        old = too_old(spec.measured_at, kept.catalog.profiles[profile], now) is not None
        age_s = max((now - spec.measured_at).total_seconds(), 0.0)
        yield MeasurementNumbers(model, variant, profile, age_s, old or spec.order in stale)


def _marked_stale(kept: Snapshot) -> Iterator[int]:
    counting = [spec.order for spec in kept.catalog.measured.values()]
    marked = Measurement.objects.filter(pk__in=counting).exclude(stale_reason="")
    return marked.values_list("pk", flat=True).iterator()


def _of_target(kept: Snapshot, row: Target) -> tuple[Kind | None, TargetNumbers | None]:
    profile = row.profile.name if row.profile else None
    variant = row.variant.name if row.variant else None
    question = Question(row.model.name, row.tokens_per_sec, profile, variant, row.utilization)
    try:
        found = kept.answer(question)
    except QuestionError:
        return Kind.UNMEASURED, None
    kind = _ending(kept, found)
    counted = found.count
    return kind, TargetNumbers(
        row.pk,
        counted.model.name,
        counted.measurement.profile,
        counted.variant.name,
        float(row.tokens_per_sec),
        counted.needed,
        counted.current,
        counted.more,
        counted.free_room,
        None if kind is None else kind is not Kind.BLOCKED,
    )


_endings: tuple[Snapshot, dict[Question, Kind | None]] | None = None


def _ending(kept: Snapshot, found: Answer) -> Kind | None:
    """Kept for as long as the snapshot is, since it is asked for again and again."""
    global _endings
    last = _endings
    if last is None or last[0] is not kept:
        _endings = last = kept, {}
    known = last[1]
    if found.question not in known:
        kind = verdict(found)
        if kind is None and len(found.fleet.replicas) <= REPLICAS_SEARCHED:
            kind = Kind.PREEMPTS if found.fits else Kind.BLOCKED
        known[found.question] = kind
    return known[found.question]
