"""Whether what a replica serves has moved: the last measurement against those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median

COMPARED_WITH = 5
MOST_DRIFT = Decimal("0.1")


@dataclass(frozen=True, slots=True)
class Drift:
    """The last rate and the median of the five before it, in output tokens per second."""

    last: Decimal
    before: Decimal

    @property
    def share(self) -> Decimal:
        """By how much the last one is above (positive) or below the median, as a share of it."""
        return (self.last - self.before) / self.before

    @property
    def marked(self) -> bool:
        """Whether that is more than repeated measurements of the same replica differ: beyond 10 %."""
        return abs(self.last - self.before) > MOST_DRIFT * self.before


def drift(rates: Sequence[Decimal]) -> Drift | None:
    """The drift of a history of rates above 0, the oldest first; None where fewer than six are known."""
    if len(rates) <= COMPARED_WITH:
        return None
    return Drift(rates[-1], median(rates[-1 - COMPARED_WITH : -1]))
