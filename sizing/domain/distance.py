"""How far a wish is from the next replica: what the replicas that it needs hold in all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from sizing.domain.sizing import Count

_DIGITS = 300
"""Digits that no product of a rate, a share and a number of replicas reaches, so that none is rounded."""

_NEXT_TO_NOTHING = Decimal("1e-30")


@dataclass(frozen=True, slots=True)
class Distance:
    """`holds`: the largest rate (tokens per second) at which no more than `needed` replicas are needed,
    exactly; beyond it one more is. `share`: how much of it is asked for, in (0, 1]."""

    needed: int
    holds: Decimal
    share: Fraction

    @property
    def percent(self) -> Decimal:
        """The share in percent with one place, rounded down: 100 only where the last token is asked for."""
        return Decimal(int(self.share * 1000)) / 10


def held(
    replicas: int, per_replica: Decimal, utilization: Decimal, others: Sequence[Decimal] = ()
) -> Decimal:
    """The largest rate that so many replicas serve, `others` among them being of other variants.

    The inverse of `replicas_needed`: `utilization × (Σ others + (replicas − others) × per_replica)`.
    """
    with localcontext(prec=_DIGITS):
        own = max(replicas - len(others), 0)
        return utilization * (sum(others, Decimal(0)) + own * per_replica)


def distance(counted: Count, asked: Decimal, utilization: Decimal) -> Distance:
    """How far a question of `asked` tokens per second is from needing one more replica."""
    holds = held(counted.needed, counted.measurement.tok_per_sec, utilization, counted.others)
    # An exponent of minus a billion would not fit in memory as a fraction.
    return Distance(counted.needed, holds, Fraction(max(asked, _NEXT_TO_NOTHING)) / Fraction(holds))
