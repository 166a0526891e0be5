"""How the saved targets stand: each one's answer now, the worst first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock

from sizing import snapshot
from sizing.domain.answer import Answer
from sizing.domain.catalog import Question, QuestionError
from sizing.domain.distance import Distance, distance
from sizing.domain.preemption import limits
from sizing.domain.specs import ReplicaSpec
from sizing.models import Refresh, Target


class Kind(StrEnum):
    """How an answer ends, the worst first."""

    BLOCKED = "blocked"
    PREEMPTS = "preempts"
    UNMEASURED = "unmeasured"
    FITS = "fits"
    SERVED = "served"


REPLICAS_SEARCHED = 1_000
"""Up to so many replicas in the fleet it is told of every target who would stop for it."""

_RANK = {kind: rank for rank, kind in enumerate(Kind)}


@dataclass(frozen=True, slots=True)
class Standing:
    """A target with its answer, or why there is none, and how it ends. `variant` and `profile` are those
    that the answer rests on, else those asked for; None: not known which."""

    target: Target
    answer: Answer | None
    refusal: QuestionError | None
    kind: Kind
    variant: str | None
    profile: str | None

    @property
    def victims(self) -> tuple[ReplicaSpec, ...] | None:
        """Who would stop; None where the fleet is too large for a table of such answers."""
        found = self.answer
        if found is None or len(found.fleet.replicas) > REPLICAS_SEARCHED:
            return None
        return found.reach.victims

    @property
    def distance(self) -> Distance | None:
        """How far the wish is from needing one more replica."""
        found = self.answer
        if found is None:
            return None
        return distance(found.count, found.question.tokens_per_sec, found.question.utilization)


_ranked: tuple[snapshot.Snapshot, list[Standing]] | None = None
_ranking = Lock()


def worst_first() -> list[Standing]:
    """How every saved target stands: what is blocked, then what would stop others, what is not measured,
    what fits, what is served; of equals in the order of their models' names.

    Kept for as long as the snapshot is: what changes a target makes another snapshot too.
    """
    global _ranked
    now, last = snapshot.current(), _ranked
    if last is None or last[0] is not now:
        with _ranking:  # whoever else opens a board meanwhile waits for the same
            last = _ranked
            if last is None or last[0] is not now:
                _ranked = last = now, _worst_first(now)
    return last[1]


def _worst_first(now: snapshot.Snapshot) -> list[Standing]:
    rows = Target.objects.select_related("model", "profile", "variant").only(
        "tokens_per_sec", "utilization", "model__name", "profile__name", "variant__name"
    )
    found = [_standing(now, target) for target in rows]
    found.sort(key=lambda one: (_RANK[one.kind], one.target.model.name, one.target.pk))
    return found


def standings(targets: Iterable[Target]) -> list[Standing]:
    """How each target stands, in their order. Answers are kept with the snapshot that they were found on."""
    kept = snapshot.current()
    return [_standing(kept, target) for target in targets]


def _standing(kept: snapshot.Snapshot, target: Target) -> Standing:
    variant = target.variant.name if target.variant else None
    profile = target.profile.name if target.profile else None
    name = target.model.name
    question = Question(name, target.tokens_per_sec, profile, variant, target.utilization)
    try:
        found = kept.answer(question)
    except QuestionError as refusal:
        known = kept.catalog.models.get(name)
        profile = profile or (known.default_profile if known else None)
        return Standing(target, None, refusal, Kind.UNMEASURED, variant, profile)
    counted = found.count
    return Standing(target, found, None, _ending(found), counted.variant.name, counted.measurement.profile)


def verdict(found: Answer) -> Kind | None:
    """How an answer ends; None where only a search for whom to stop can tell."""
    counted = found.count
    short = counted.more - counted.free_room
    if counted.more == 0:
        return Kind.SERVED
    if short <= 0:
        return Kind.FITS
    if counted.permitted < counted.more:
        return Kind.BLOCKED
    least, most = limits(found.fleet, counted.model, counted.variant, short)
    if least >= short:
        return Kind.PREEMPTS
    return Kind.BLOCKED if most < short else None


def _ending(found: Answer) -> Kind:
    # A search for whom to stop takes long in a large fleet, and mostly it is clear without one.
    return verdict(found) or (Kind.PREEMPTS if found.fits else Kind.BLOCKED)


def running_refreshes(shown: Sequence[Standing]) -> dict[int, Refresh]:
    """By target: the queued or running refresh of what its answer rests on, in one query."""
    rows = (
        Refresh.objects.filter(
            state__in=Refresh.ACTIVE, variant__model__in={one.target.model_id for one in shown}
        )
        .select_related("variant", "profile")
        .only("state", "progress", "variant__model_id", "variant__name", "profile__name")
        .order_by("state", "pk")  # queued before running, so that a running one is told of
    )
    of_model: dict[int, list[Refresh]] = {}
    for row in rows:
        of_model.setdefault(row.variant.model_id, []).append(row)
    return {
        one.target.pk: row
        for one in shown
        for row in of_model.get(one.target.model_id, ())
        if one.variant in (None, row.variant.name) and one.profile in (None, row.profile.name)
    }
