"""From load levels to one figure: throughput at the SLO, what bounds it, and what is odd about it.

The figure is the tokens/s measured at the largest load at which, and below which, every level is valid
and meets the SLO. It is never interpolated: between two levels nothing was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from statistics import median

from sizing.domain.levels import CONCURRENCY, POISSON, Judged, Level, Slo, Verdict

EDGE, FLOOR = "edge", "floor"

RATE_MISMATCH, LITTLE_MISMATCH = 0.1, 0.2
_SEVERITY = (Verdict.PASS, Verdict.UNKNOWN, Verdict.INVALID, Verdict.FAIL)


def _all_pass(levels: Iterable[Judged]) -> bool:
    return all(judged.verdict is Verdict.PASS for judged in levels)


@dataclass(frozen=True, slots=True)
class LoadGroup:
    """The repeats of one load, in the order of measuring.

    It passes only if all of them pass, except that a first one that did not (warm-up, a busy client) is
    outvoted by two that passed since; its value is the median of those that count.
    """

    load: float
    repeats: tuple[Judged, ...]

    @property
    def outvoted(self) -> bool:
        first, *since = self.repeats
        return first.verdict is not Verdict.PASS and len(since) > 1 and _all_pass(since)

    @property
    def counting(self) -> tuple[Judged, ...]:
        return self.repeats[1:] if self.outvoted else self.repeats

    @property
    def verdict(self) -> Verdict:
        return max((judged.verdict for judged in self.counting), key=_SEVERITY.index)

    @property
    def tok_per_sec(self) -> float:
        rates = [rate for judged in self.counting if (rate := _sustained(judged.level))]
        return float(median(rates)) if rates else 0.0

    @property
    def why(self) -> str:
        return next(judged.why for judged in self.counting if judged.verdict is self.verdict)


@dataclass(frozen=True, slots=True)
class Throughput:
    """Throughput at the SLO.

    tok_per_sec: None where no level passed. bound: `EDGE` where a higher load failed, `FLOOR` where none
    did, None without a figure. load: the deciding load. bracket: the figure and the next level, in words.
    """

    tok_per_sec: float | None
    bound: str | None
    load: float | None
    bracket: str
    warnings: tuple[str, ...] = ()


def _sustained(level: Level) -> float | None:
    """Tokens/s of a level; not more than the load that was asked gives in the long run.

    Random arrivals come faster than asked for a while; what the server made of that luck is no capacity.
    Only where requests are known one by one: files round their means.
    """
    rate, load, tokens = level.tok_per_sec, level.load, level.output_tokens
    if rate is None or level.arrival != POISSON or level.conform is None or not load or not tokens:
        return rate
    return min(rate, load * tokens)


def groups(levels: Iterable[Judged]) -> list[LoadGroup]:
    """Levels by rising load; an unlimited or untold load comes last, by the rate that was reached."""
    by_load: dict[tuple[float, float], list[Judged]] = {}
    for judged in levels:
        by_load.setdefault(_order(judged.level), []).append(judged)
    return [LoadGroup(load, tuple(found)) for (load, _), found in sorted(by_load.items())]


def _order(level: Level) -> tuple[float, float]:
    if level.load is not None:
        return level.load, 0.0
    return inf, level.requests_per_sec or 0.0


def at_slo(levels: Sequence[Judged]) -> Throughput:
    """Throughput at the SLO of the levels of one sweep; ValueError where closed and open loop are mixed."""
    if len({judged.level.arrival for judged in levels}) > 1:
        raise ValueError("closed-loop and open-loop levels are not one sweep")
    ordered = groups(levels)
    if not ordered:
        return Throughput(None, None, None, "no level was measured")
    leading = 0
    while leading < len(ordered) and ordered[leading].verdict is Verdict.PASS:
        leading += 1
    if leading == 0:
        return Throughput(None, None, None, _not_met(ordered[0]), _odd(ordered, leading))
    best, above = ordered[leading - 1], ordered[leading:]
    bound = EDGE if any(group.verdict is Verdict.FAIL for group in above) else FLOOR
    return Throughput(best.tok_per_sec, bound, best.load, _bracket(best, above), _odd(ordered, leading))


def _not_met(lowest: LoadGroup) -> str:
    words = {
        Verdict.FAIL: "not met at the lowest load tried",
        Verdict.UNKNOWN: "not known at the lowest load tried",
        Verdict.INVALID: "no valid level at the lowest load tried",
    }
    return f"{words[lowest.verdict]}: {lowest.why}"


def _bracket(best: LoadGroup, above: Sequence[LoadGroup]) -> str:
    figure = f"{best.tok_per_sec:,.0f} tok/s"
    if not above:
        return f"at least {figure}; no higher level was tried"
    following = above[0]
    outcome = {
        Verdict.FAIL: "failed",
        Verdict.UNKNOWN: "could not be told",
        Verdict.INVALID: "was invalid",
        Verdict.PASS: "passed",
    }[following.verdict]
    rate = f", {following.tok_per_sec:,.0f}," if following.tok_per_sec else ""
    said = f"{figure}; the next level tried{rate} {outcome}"
    failed = next((group for group in above if group.verdict is Verdict.FAIL), None)
    if failed is None:
        return f"at least {said}"
    return said if failed is following else f"{said}, and a higher one, {failed.tok_per_sec:,.0f}, failed"


def _odd(ordered: Sequence[LoadGroup], leading: int) -> tuple[str, ...]:
    odd = []
    later = [group for group in ordered[leading + 1 :] if group.verdict is Verdict.PASS]
    if later:
        plural = "s" * (len(later) > 1)
        odd.append(f"{len(later)} level{plural} passed above one that did not; they do not count")
    odd += [
        f"the level at {group.load:g} did not pass at first, and passed each time it was measured again"
        for group in ordered[:leading]
        if group.outvoted
    ]
    return tuple(odd)


def sweeps(levels: Iterable[Judged]) -> list[list[Judged]]:
    """Levels apart by arrival: closed loop flatters, so its levels never mix with open-loop ones."""
    by_arrival: dict[str | None, list[Judged]] = {}
    for judged in levels:
        by_arrival.setdefault(judged.level.arrival, []).append(judged)
    return list(by_arrival.values())


def cross_checks(level: Level, slo: Slo) -> tuple[str, ...]:
    """What does not add up in a level, one warning each; none of them changes its verdict."""
    return tuple(filter(None, (_rates(level), _little(level), *_order_of_percentiles(level), _units(level))))


def _rates(level: Level) -> str:
    rate, mean, tokens = level.requests_per_sec, level.output_tokens, level.tok_per_sec
    if not rate or not mean or not tokens or abs(tokens - rate * mean) <= RATE_MISMATCH * tokens:
        return ""
    return f"{tokens:,.4g} tok/s, but {rate:,.4g} requests/s of {mean:,.4g} tokens are {rate * mean:,.4g}"


def _little(level: Level) -> str:
    """Little's law (J. D. C. Little, 1961): requests in flight = requests/s x time in the system."""
    if level.arrival != CONCURRENCY or not level.load or not level.requests_per_sec or not level.e2e.mean:
        return ""
    flying = level.requests_per_sec * level.e2e.mean / 1000
    if abs(flying - level.load) <= LITTLE_MISMATCH * level.load:
        return ""
    return f"{flying:,.3g} requests were in flight on average, {level.load:,g} streams were asked"


def _order_of_percentiles(level: Level) -> Iterable[str]:
    for name, spread in (("TTFT", level.ttft), ("TPOT", level.tpot), ("end to end", level.e2e)):
        values = [value for _, value in sorted(spread.at.items())]
        if any(low > high for low, high in pairwise(values)):
            yield f"the percentiles of {name} do not rise"
    for at, first in level.ttft.at.items():
        whole = level.e2e.at.get(at)
        if whole is not None and first > whole * 1.001:
            yield f"TTFT p{at:g} is above the end-to-end time"
            break


def _units(level: Level) -> str:
    """Real answers of several tokens take longer than a few milliseconds."""
    tokens = level.output_tokens
    if not tokens or tokens < 8:
        return ""
    whole = level.e2e.mean if level.e2e.mean is not None else level.e2e.at.get(50.0)
    if whole is None:
        parts = ((level.ttft.mean, level.tpot.mean), (level.ttft.at.get(50.0), level.tpot.at.get(50.0)))
        sums = [
            first + each * (tokens - 1) for first, each in parts if first is not None and each is not None
        ]
        whole = sums[0] if sums else None
    if whole is None or not 0 < whole < tokens / 10:
        return ""
    return f"an answer of {tokens:,.4g} tokens in {whole:,.3g} ms: are these seconds?"
