"""How much stopping others gives at least and at most, without a search for whom."""

from __future__ import annotations

from sizing.domain.fleet import Fleet
from sizing.domain.placement import room
from sizing.domain.preemption.field import NEVER, field_of
from sizing.domain.preemption.ledger import ledger
from sizing.domain.specs import ModelSpec, VariantSpec

_PRIORITIES_KEPT = 8
_ROOMS_KEPT = 512


def limits(fleet: Fleet, model: ModelSpec, variant: VariantSpec, wanted: int) -> tuple[int, int]:
    """At least and at most so many of `wanted` (≥ 1) replicas can be had by stopping others; where the most
    are fewer than wanted, the least are not looked for and 0."""
    if model.preemption_policy == NEVER:
        return 0, 0
    most = _ceiling(fleet, variant, model.priority, wanted)
    if most < wanted:
        return 0, most
    field = field_of(fleet, model, variant)
    most = min(field.most, most)
    return (0 if most < wanted else field.gain(field.allowed, wanted)), most


def _ceiling(fleet: Fleet, variant: VariantSpec, priority: int, wanted: int) -> int:
    """What it would give to stop all of lower priority, whatever protects them: the same for many models."""

    def emptied() -> Fleet:
        book = ledger(fleet)
        return book.without(fleet, book.stoppable & (book.priority < priority))

    lighter = fleet.kept("emptied", priority, emptied, _PRIORITIES_KEPT)
    then = lighter.kept("room", variant, lambda: room(lighter, variant), _ROOMS_KEPT)
    now = fleet.kept("room", variant, lambda: room(fleet, variant), _ROOMS_KEPT)
    return min(then - now, wanted)
