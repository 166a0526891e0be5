"""One measurement: look at the replica, send one request alone, then level after level until it is clear."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunning
from dataclasses import dataclass, field, replace
from math import ceil, floor
from typing import Protocol, TypeVar

from sizing.domain import search
from sizing.domain.levels import (
    CONCURRENCY,
    WILSON_Z,
    Judged,
    Level,
    Slo,
    Verdict,
    judge,
    load_words,
    resolved,
)
from sizing.domain.search import Bounds, Step
from sizing.domain.throughput import Throughput, at_slo, groups
from sizing.measuring import engine, traffic
from sizing.measuring.loadgen.builtin import probe
from sizing.measuring.seam import (
    Endpoint,
    Limits,
    Load,
    Maker,
    MeasuringError,
    Probe,
    Progress,
    Stopped,
    Workload,
)

T = TypeVar("T")

OTHER_SHAPE = 0.2
"""A workload that differs from the profile's by more than this is another shape."""

LONGEST_E2ES = 30
STEADY_ARRIVALS = 400
PROBE_S, LEAST_PROBE_S = 60.0, 10.0


@dataclass(frozen=True, slots=True)
class Effort:
    """How far a measurement goes.

    budget_s: for all of it. level_s: for one level. lowest, highest: hard bounds of the load (streams or
    requests/s); lowest None: one stream, or one request in the time that one takes alone.
    """

    budget_s: float = 1800.0
    level_s: float = 120.0
    most_levels: int = 12
    resolution: float = 0.02
    lowest: float | None = None
    highest: float = 1024.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be measured, where, and by what maker of load. `arrival`: `POISSON` or `CONCURRENCY`."""

    endpoint: Endpoint
    workload: Workload
    slo: Slo
    arrival: str
    maker: Maker
    effort: Effort


@dataclass(frozen=True, slots=True)
class Status:
    """How far a measurement is. `load` None: no level runs yet. `percent` is an estimate."""

    purpose: str
    level: int = 0
    most: int = 0
    arrival: str | None = None
    load: float | None = None
    progress: Progress = field(default_factory=Progress)
    percent: int = 0


class Observer(Protocol):
    """Who follows a measurement."""

    def status(self, status: Status) -> bool:
        """Called at least twice a second; False: stop."""

    def level(self, position: int, judged: Judged) -> bool:
        """Called after each level, counted from 1; False: stop."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a measurement gave: its levels in the order in which they were run, and the figure."""

    levels: tuple[Judged, ...]
    throughput: Throughput
    engine: str
    alone: Probe
    warnings: tuple[str, ...]


def measure(plan: Plan, observer: Observer) -> Outcome:
    """Measure; Stopped where the observer ended it, MeasuringError where it cannot be taken."""
    return _Measurement(plan, observer).run()


class _Measurement:
    def __init__(self, plan: Plan, observer: Observer) -> None:
        self.plan = plan
        self.observer = observer
        self.began = time.monotonic()
        self.levels: list[Judged] = []
        self.warnings: list[str] = []

    def run(self) -> Outcome:
        self._check()
        found = self._aside("looking at the replica", lambda: engine.identify(self.plan.endpoint))
        name = engine.served_name(found.served, self.plan.endpoint.model)
        self.plan = replace(self.plan, endpoint=replace(self.plan.endpoint, model=name))
        alone = self._alone(max(self._left_s(), 1.0))
        shape = replace(self.plan.workload, words_per_token=alone.words_per_token, extras={**alone.extras})
        self.plan = replace(self.plan, workload=shape)
        bounds = self._bounds(alone)
        while step := search.next_step(self.levels, self.plan.slo, self.plan.arrival, bounds):
            if self._left_s() <= 1:
                self.warnings.append(
                    f"the budget of {self.plan.effort.budget_s:,g} s ended the search before it was done"
                )
                break
            self._level(step, alone, bounds)
        result = at_slo(self.levels)
        return Outcome(tuple(self.levels), result, found.label, alone, self._all_warnings(result))

    def _check(self) -> None:
        """MeasuringError where there is nothing to measure, before anything is asked of the replica."""
        effort, slo = self.plan.effort, self.plan.slo
        whole = self.plan.arrival == CONCURRENCY
        lowest = effort.lowest or (1.0 if whole else 0.0)
        if lowest > effort.highest or (whole and ceil(lowest) > floor(effort.highest)):
            raise MeasuringError(
                f"no load lies between {lowest:g} and {effort.highest:g}, the highest allowed"
            )
        if self.plan.workload.output_tokens == 1 and slo.ttft_ms is None and slo.e2e_ms is None:
            raise MeasuringError("an answer of one token has no time between tokens; limit another latency")

    def _left_s(self) -> float:
        return self.plan.effort.budget_s - (time.monotonic() - self.began)

    def _bounds(self, alone: Probe) -> Bounds:
        effort = self.plan.effort
        lowest = effort.lowest
        if lowest is None:
            lowest = 1.0 if self.plan.arrival == CONCURRENCY else float(f"{1000 / alone.e2e_ms:.3g}")
        return Bounds(min(lowest, effort.highest), effort.highest, effort.resolution, effort.most_levels)

    def _alone(self, seconds: float) -> Probe:
        purpose = "one request alone"
        return probe(
            self.plan.endpoint,
            self.plan.workload,
            min(PROBE_S, seconds),
            lambda progress: self.observer.status(Status(purpose, progress=progress)),
        )

    def _level(self, step: Step, alone: Probe, bounds: Bounds) -> None:
        plan, position = self.plan, len(self.levels) + 1
        e2e_s = alone.e2e_ms / 1000
        limits = Limits(
            slo=plan.slo,
            thorough=step.thorough,
            warmup_s=max(1.0, e2e_s),
            least_s=_least_s(plan, step, e2e_s),
            # A slow model needs time for the requests that a level takes at least.
            seconds=min(max(plan.effort.level_s, LONGEST_E2ES * e2e_s), self._left_s()),
            request_s=min(max(30.0, 20 * e2e_s), plan.effort.level_s + LONGEST_E2ES * e2e_s),
        )
        most = position - 1 + max(search.most_left(self.levels, plan.slo, plan.arrival, bounds), 1)
        percent = min(99, 100 * (position - 1) // most)
        status = Status(step.purpose, position, most, plan.arrival, step.load, percent=percent)
        before = self._aside(step.purpose, lambda: engine.counters(plan.endpoint), status)
        latest = status

        def watch(progress: Progress) -> bool:
            nonlocal latest
            latest = replace(status, progress=progress)
            return self.observer.status(latest)

        level = plan.maker.run_level(
            plan.endpoint,
            replace(plan.workload, seed=plan.workload.seed * 1000 + position),
            Load(plan.arrival, step.load),
            limits,
            watch,
        )
        after = self._aside(step.purpose, lambda: engine.counters(plan.endpoint), latest)
        odd = (*level.warnings, traffic.busy(before), *traffic.compare(before, after, level))
        level = replace(level, warnings=tuple(filter(None, odd)))
        judged = judge(level, plan.slo)
        if judged.verdict is not Verdict.PASS and not level.cancelled:
            self._still_there(judged, alone)
        self.levels.append(judged)
        if not self.observer.level(position, judged):
            raise Stopped

    def _still_there(self, judged: Judged, alone: Probe) -> None:
        """A level that did not pass may be the end of the replica, not its limit."""
        level = judged.level
        try:
            self._alone(max(self._left_s(), LEAST_PROBE_S, 10 * alone.e2e_ms / 1000))
        except MeasuringError as error:
            kinds = ", ".join(f"{count:,} × {kind}" for kind, count in level.failures.items())
            said = f"{level.failed:,} of its requests failed ({kinds})" if kinds else judged.why
            at = load_words(level.arrival, level.load)
            raise MeasuringError(f"the replica went away at {at}: {said}, and then: {error}") from None

    def _aside(self, purpose: str, call: Callable[[], T], status: Status | None = None) -> T:
        """Make a call that waits for the network while the observer is kept up to date."""
        pool = ThreadPoolExecutor(1)
        try:
            future = pool.submit(call)
            while True:
                if not self.observer.status(status or Status(purpose)):
                    raise Stopped
                try:
                    return future.result(timeout=0.4)
                except StillRunning:
                    continue
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _all_warnings(self, result: Throughput) -> tuple[str, ...]:
        deciding = [g for g in groups(self.levels) if result.load is not None and g.load == result.load]
        levels = [judged.level for group in deciding for judged in group.repeats]
        found = [*self.warnings, *result.warnings, *(w for level in levels for w in level.warnings)]
        found += [self._few(levels), *self._unfinished(result), *_shapes(self.plan.workload, levels)]
        if any(level.counted for level in levels):
            found.append("the server tells no usage: tokens were counted from the stream")
        return tuple(dict.fromkeys(filter(None, found)))

    def _unfinished(self, result: Throughput) -> Iterator[str]:
        """What the search would still have asked, had it been allowed more levels or time."""
        ordered = groups(self.levels)
        at = next((i for i, group in enumerate(ordered) if group.load == result.load), None)
        if at is None:
            return
        best = ordered[at]
        if len(best.repeats) == 1:
            yield "the deciding level was measured once"
        if at + 1 < len(ordered):
            above = ordered[at + 1]
            narrow = max(
                self.plan.effort.resolution * best.load, 1.0 if self.plan.arrival == CONCURRENCY else 0.0
            )
            if above.load - best.load > 1.01 * narrow:
                arrival = self.plan.arrival
                low, high = load_words(arrival, best.load), load_words(arrival, above.load)
                yield f"the limit lies anywhere from {low} to {high}: the search ended before it was narrow"

    def _few(self, levels: list[Level]) -> str:
        percentile = self.plan.slo.percentile
        needed = needed_requests(percentile)
        most = max((level.sent or 0 for level in levels), default=needed)
        told = [(level.conform or 0, level.sent or 0) for level in levels if level.conform is not None]
        proven = any(resolved(*pair, percentile) for pair in told) if told else most >= needed
        if proven or not needed:
            return ""
        return (
            f"few_requests: {most:,} at the deciding level;"
            f" {needed:,} without a violation would prove p{percentile:g}"
        )


def _least_s(plan: Plan, step: Step, e2e_s: float) -> float:
    """How long a level lasts at least, from the time that a request alone takes.

    Random arrivals come in bunches: in simulated searches levels that ended with their 73rd request
    overstated a server by up to 25 %, levels of 20 end-to-end times by 1 % in the median. And n arrivals
    vary by 1/√n, so that a thorough level waits for several hundred where that does not take too long.
    """
    if plan.arrival == CONCURRENCY:
        return max(2.0, 1.5 * e2e_s)
    if not step.thorough:
        return max(2.0, 7 * e2e_s)
    return max(2.0, 20 * e2e_s, min(STEADY_ARRIVALS / step.load, plan.effort.level_s / 4))


def needed_requests(percentile: float) -> int:
    """How many requests without a violation prove a percentile at 95 %: 73 for p95; 0: no number does.

    Wilson's lower bound of n out of n is n / (n + z²).
    """
    return ceil(WILSON_Z**2 * percentile / (100 - percentile)) if percentile < 100 else 0


def _shapes(workload: Workload, levels: list[Level]) -> list[str]:
    rows = (
        ("input", workload.input_tokens, "input_tokens"),
        ("output", workload.output_tokens, "output_tokens"),
    )
    found = []
    for word, asked, name in rows:
        means = [m for level in levels if (m := getattr(level, name)) is not None]
        mean = sum(means) / len(means) if means else None
        if mean is not None and abs(mean - asked) > OTHER_SHAPE * asked:
            found.append(f"other shape: {mean:,.0f} {word} tokens a request, the profile says {asked:,}")
    return found
