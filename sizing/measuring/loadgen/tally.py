"""How the requests of a window stand, and whether they decide the level."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sizing.domain.levels import MOST_FAILED_SHARE, Slo, resolved, wilson
from sizing.measuring.loadgen.request import Flight

LEAST_REQUESTS = 10
"""Without a violation, these tell enough of a level that does not decide the search."""

LEAST_FAILED = 3
"""One failure among few is no rate."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of requests: ended well or not, overdue while they still fly, and flying otherwise."""

    completed: int = 0
    failed: int = 0
    conform: int = 0
    overdue: int = 0
    flying: int = 0

    @property
    def sent(self) -> int:
        """Those whose outcome is certain."""
        return self.completed + self.failed + self.overdue

    def passes(self, percentile: float) -> bool:
        """Whether those whose outcome is certain meet the SLO so far."""
        few_failed = self.failed <= MOST_FAILED_SHARE * self.sent
        return few_failed and self.conform >= percentile / 100 * self.sent

    def decides(self, percentile: float, thorough: bool, least: int) -> bool:
        """Whether the outcome is certain enough to end the level."""
        if self.sent < least:
            return False
        if self.failed >= LEAST_FAILED and wilson(self.failed, self.sent)[0] > MOST_FAILED_SHARE:
            return True
        if self.failed > MOST_FAILED_SHARE * self.sent:
            return False
        if not thorough and self.conform == self.sent:
            return True
        return resolved(self.conform, self.sent, percentile)

    def surely_fails(self, percentile: float, thorough: bool, least: int) -> bool:
        """Whether it decides against the SLO even if every request that still flies turns out well."""
        best = Tally(self.completed + self.flying, self.failed, self.conform + self.flying, self.overdue)
        fails = best.failed > MOST_FAILED_SHARE * best.sent or best.conform < percentile / 100 * best.sent
        return fails and best.decides(percentile, thorough, least)


def tally(flights: Iterable[Flight], slo: Slo, now: float) -> Tally:
    """Count the requests of a window as they stand."""
    completed = failed = conform = overdue_ones = flying = 0
    for flight in flights:
        if flight.ended is None:
            if overdue(flight, slo, now):
                overdue_ones += 1
            else:
                flying += 1
        elif flight.failure:
            failed += 1
        else:
            completed += 1
            conform += flight.conform
    return Tally(completed, failed, conform, overdue_ones, flying)


def overdue(flight: Flight, slo: Slo, now: float) -> bool:
    """Whether a request that still flies is beyond a limit already, with certainty."""
    return not slo.met(*flight.least(now))
