"""Which load to measure next, so that few levels find throughput at the SLO.

A pure function of the levels so far: a search that was interrupted goes on where it stopped.

1. The lowest load: an SLO that one request alone misses is not helped by more replicas.
2. Up, to where the straight line through the strain of the last two passing levels crosses the limit, by
   doubling where that is not known, and by 8 times at most, until a level does not pass.
3. Between the highest passing level and the lowest that does not: where the line through the strain of
   both crosses the limit. Latency over load is a hockey stick, on which such lines creep: where the same
   end moved twice, or the upper end is in collapse, the middle instead.
4. The two deciding levels once more. Where the lower one then fails, on from 3 below it.

A level that is unknown or invalid bounds the search like one that failed. A level that did not pass where
that is odd (at the lowest load, below one that passed, or since the client was slow) is measured again; two
passes then outvote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log2, sqrt

from sizing.domain.levels import CONCURRENCY, Judged, Slo, Verdict, resolved, strain
from sizing.domain.throughput import LoadGroup, groups

LARGEST_JUMP = 8.0
DOUBLING = 2.0
SMALLEST_JUMP = 1.25
FAR = 0.85
"""A strain up to which the limit counts as far away, where one level alone is known."""

CALM = 0.7
"""A strain up to which a pass is not in doubt, however few its requests."""

MARGIN = 0.1
"""The share of the bracket at either end in which no level is placed."""

WIDE = 10.0
"""A bracket so many times wider than need be is narrowed even with the levels kept for repeats."""

NOISE = 2.0
"""How many widths of a narrow bracket below a level that passed and then failed the next one is tried."""

COLLAPSE = 1.5
"""A strain beyond which how large it is tells nothing of where the limit is."""

LOWEST = "lowest load"
UPWARD = "looking for a load that fails"
NARROWING = "narrowing"
DECIDING = "measuring the deciding level again"
ODD = "measuring a level again that did not pass"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Loads that a search may ask for, in streams or requests/s, and when it has searched enough.

    lowest, highest: hard; closed loop takes the whole streams between them. resolution: the width of the
    bracket, as a share of its lower end, at which it is narrow enough (closed loop: or one stream).
    most_levels: how many levels at most, repeats included. ValueError where they leave nothing to ask.
    """

    lowest: float
    highest: float
    resolution: float = 0.02
    most_levels: int = 12

    def __post_init__(self) -> None:
        if not 0 < self.lowest <= self.highest:
            raise ValueError(f"the loads must rise from above 0: {self.lowest:g} to {self.highest:g}")
        if self.resolution <= 0 or self.most_levels < 1:
            raise ValueError("a search needs a resolution above 0 and at least one level")


@dataclass(frozen=True, slots=True)
class Step:
    """The next level: its load, whether to measure until its verdict is resolved, and why it is asked."""

    load: float
    thorough: bool
    purpose: str


def next_step(levels: Sequence[Judged], slo: Slo, arrival: str, bounds: Bounds) -> Step | None:
    """The next level to measure, or None where the search is finished.

    levels: what was measured so far, in the order of measuring, each with the load exactly as asked.
    slo: needs its percentile among those of the levels' latencies, else the search halves its way.
    """
    return _Search(levels, slo, arrival, bounds).step()


def most_left(levels: Sequence[Judged], slo: Slo, arrival: str, bounds: Bounds) -> int:
    """About how many levels may still come, for a progress bar; 0 where the search is finished."""
    return _Search(levels, slo, arrival, bounds).most_left()


class _Search:
    def __init__(self, levels: Sequence[Judged], slo: Slo, arrival: str, bounds: Bounds) -> None:
        self.levels = levels
        self.slo = slo
        self.whole = arrival == CONCURRENCY
        self.bounds = bounds
        self.lowest = float(ceil(bounds.lowest)) if self.whole else bounds.lowest
        self.highest = float(floor(bounds.highest)) if self.whole else bounds.highest
        self.left = bounds.most_levels - len(levels)
        ordered = groups(levels)
        passing = 0
        while passing < len(ordered) and ordered[passing].verdict is Verdict.PASS:
            passing += 1
        self.ordered = ordered
        self.leading = ordered[:passing]
        self.above = ordered[passing:]

    def step(self) -> Step | None:
        if self.left <= 0 or self.lowest > self.highest:
            return None
        if not self.ordered:
            return Step(self.lowest, False, LOWEST)
        if doubtful := self._doubtful():
            return Step(doubtful.load, True, ODD)
        if not self.leading:
            return None
        once = [group for group in self._deciding() if len(group.repeats) == 1]
        # The level that moves an end of the bracket needs its repeat, and so may the other end.
        kept = 2 if once and self.above else 1
        if self.left > kept or self._wide():
            if self._deceived():
                return Step(self.leading[-1].load, True, DECIDING)
            if not self.above:
                if (load := self._upward()) is not None:
                    return Step(load, False, UPWARD)
            elif (load := self._between()) is not None:
                return Step(load, True, NARROWING)
        return Step(once[0].load, True, DECIDING) if once else None

    def most_left(self) -> int:
        if self.step() is None:
            return 0
        if not self.leading or not self.above:
            return self.left
        low, high = self.leading[-1].load, self.above[0].load
        halvings = max(ceil(log2((high - low) / self._narrow(low))), 0)
        repeats = sum(len(group.repeats) == 1 for group in self._deciding()) if halvings == 0 else 2
        return max(min(self.left, halvings + repeats), 1)

    def _deciding(self) -> list[LoadGroup]:
        return [*self.leading[-1:], *self.above[:1]]

    def _wide(self) -> bool:
        """Whether a repeat failed, or levels ran short, and the answer would be far below what failed."""
        if not self.above:
            return False
        low, high = self.leading[-1].load, self.above[0].load
        return high - low > WIDE * self._narrow(low)

    def _doubtful(self) -> LoadGroup | None:
        """A level that did not pass for a reason that may be gone: warm-up, noise, a busy client."""
        if not self.above:
            return None
        group = self.above[0]
        lowest = group is self.ordered[0]
        below_a_pass = any(other.verdict is Verdict.PASS for other in self.above)
        late = group is self.ordered[-1] and group.repeats[0].verdict is Verdict.INVALID
        since = group.repeats[1:]
        again = not since or (len(since) == 1 and since[0].verdict is Verdict.PASS)
        return group if (lowest or below_a_pass or late) and again else None

    def _deceived(self) -> bool:
        """Whether a level measured once bounds the search from below, and nothing above it passes.

        Ten requests without a violation prove little. Rather than go on above a load that may itself
        fail, it is measured again: after two levels where it was not resolved, after five in any case.
        """
        low = self.leading[-1]
        strained = self._strain(low)
        if len(low.repeats) > 1 or not self.above or (strained is not None and strained <= CALM):
            return False
        first = low.repeats[0]
        conform, sent = first.level.conform, first.level.sent
        told = conform is None or sent is None or resolved(conform, sent, self.slo.percentile)
        return len(self.levels) - 1 - self.levels.index(first) >= (5 if told else 2)

    def _upward(self) -> float | None:
        low = self.leading[-1].load
        if low >= self.highest:
            return None
        if len(self.leading) == 1:
            now = self._strain(self.leading[-1])
            load = low * (LARGEST_JUMP if now is not None and now <= FAR else DOUBLING)
        else:
            load = self._line_upward()
        return self._placed(load, low, None)

    def _line_upward(self) -> float:
        """Just beyond where the line through the last two passing levels crosses the limit."""
        before, last = self.leading[-2:]
        first, second = self._strain(before), self._strain(last)
        if first is None or second is None:
            return last.load * DOUBLING
        slope = (second - first) / (last.load - before.load)
        if slope <= 0:
            return last.load * LARGEST_JUMP
        crossing = last.load + (1 - second) / slope
        beyond = crossing + self._narrow(crossing) / 2
        return min(max(beyond, last.load * SMALLEST_JUMP), last.load * LARGEST_JUMP)

    def _between(self) -> float | None:
        low, high = self.leading[-1], self.above[0]
        if high.load - low.load <= self._narrow(low.load):
            return None
        if any(judged.verdict is Verdict.PASS for judged in high.repeats):
            # It passed and failed: the limit is there, and noise. What is to pass each time lies below.
            below = high.load - NOISE * self._narrow(high.load)
            if below > low.load:
                return self._placed(below, low.load, high.load)
            # Close by already: what lies between is worth a level only where the lower end is settled.
            settled = len(low.repeats) > 1 and self.left > 2
            return self._placed((low.load + high.load) / 2, low.load, high.load) if settled else None
        crossing = self._crossing(low, high)
        if crossing is None or self._same_end_twice(low.load, high.load):
            return self._placed(sqrt(low.load * high.load), low.load, high.load)
        # Aimed a little to the side that is farther off, so that the level moves that end up to the limit.
        aside = self._narrow(crossing) / 2
        farther_below = crossing - low.load > high.load - crossing
        return self._placed(crossing + (-aside if farther_below else aside), low.load, high.load)

    def _crossing(self, low: LoadGroup, high: LoadGroup) -> float | None:
        """Where the line through the strain at both ends of the bracket crosses the limit, if it tells."""
        below, beyond = self._strain(low), self._strain(high)
        if below is None or beyond is None or below > 1 or not 1 < beyond <= COLLAPSE:
            return None
        return low.load + (1 - below) / (beyond - below) * (high.load - low.load)

    def _same_end_twice(self, low: float, high: float) -> bool:
        """Whether the last two levels both moved the lower end, or both the upper one."""
        loads = [judged.level.load or 0.0 for judged in self.levels]
        return max(loads[-2:]) <= low or (min(loads[-3:]) >= high and len(loads) > 2)

    def _placed(self, load: float, low: float, high: float | None) -> float | None:
        """A load of few digits strictly inside the bracket and the bounds, clear of the bracket's ends."""
        if high is not None:
            margin = MARGIN * (high - low)
            load = min(max(load, low + margin), high - margin)
        load = float(round(load)) if self.whole else float(f"{load:.4g}")
        if self.whole:
            load = max(load, low + 1)
            load = load if high is None else min(load, high - 1)
        load = min(load, self.highest)
        inside = load > low and (high is None or load < high)
        return load if inside else None

    def _narrow(self, load: float) -> float:
        """The width of a bracket that is narrow enough."""
        share = self.bounds.resolution * load
        return max(share, 1.0) if self.whole else share

    def _strain(self, group: LoadGroup) -> float | None:
        """The largest strain of a load's repeats; None where one is not known."""
        found = [strain(judged.level, self.slo) for judged in group.counting]
        known = [value for value in found if value is not None]
        return max(known) if len(known) == len(found) else None
