"""From the requests of a window to a level: rates, latencies, failures, and what is odd about them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import fmean

from sizing.domain.levels import NOT_STREAMED_SHARE, POISSON, Level, Slo, Spread
from sizing.domain.throughput import cross_checks
from sizing.measuring.loadgen.arrivals import due_between
from sizing.measuring.loadgen.request import Flight
from sizing.measuring.loadgen.tally import overdue, tally
from sizing.measuring.seam import Load, Workload

PERCENTILES = (50.0, 90.0, 95.0, 99.0)
LATE_LOOP_S = 0.02
CACHED_SHARE = 0.05
COUNTED_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Window:
    """What of a level is measured: `[open, close)` in time, `flights` of all those sent.

    start: when the load began. end: when what still flew was ended. lateness: how late the event loop
    woke, in seconds.
    """

    start: float
    open: float
    close: float
    end: float
    measured: Sequence[Flight]
    flights: Sequence[Flight]
    lateness: Sequence[float] = ()


def summarize(window: Window, workload: Workload, load: Load, slo: Slo) -> Level:
    """The level that a window shows."""
    counts = tally(window.measured, slo, window.end)
    done = [flight for flight in window.measured if flight.completed]
    late = [f for f in window.measured if f.ended is None and overdue(f, slo, window.end)]
    length = window.close - window.open
    level = Level(
        arrival=load.arrival,
        load=load.value,
        tok_per_sec=_tokens_within(window) / length if length > 0 else None,
        duration_s=length,
        sent=counts.sent,
        completed=counts.completed,
        failed=counts.failed,
        cut=counts.flying,
        all_tokens=_all_tokens(window.flights),
        conform=counts.conform,
        requests_per_sec=_requests_within(window) / length if length > 0 else None,
        sent_per_sec=_sent_per_sec(window, workload, load),
        delay_p95_s=_delay_p95_s(window),
        input_tokens=_mean(f.answer.prompt_tokens for f in done if f.answer.prompt_tokens is not None),
        output_tokens=_mean(f.tokens for f in done),
        ttft=_spread([f.ttft_ms for f in done], [f.least(window.end)[0] for f in late], slo.percentile),
        tpot=_spread([f.tpot_ms for f in done], _late_tpot(late, slo, window.end), slo.percentile),
        e2e=_spread([f.e2e_ms for f in done], [f.least(window.end)[2] for f in late], slo.percentile),
        streamed=_streamed(done),
        counted=any(f.answer.output_tokens is None for f in done),
        failures=dict(Counter(f.failure for f in window.measured if f.failure).most_common()),
    )
    warnings = [*cross_checks(level, slo), *_odd(window, done)]
    return replace(level, warnings=tuple(warnings))


def nearest_rank(ordered: Sequence[float], percentile: float) -> float | None:
    """The smallest value that at least `percentile` % are not above; None of nothing.

    It is at most a limit exactly when that share of the values is.
    """
    if not ordered:
        return None
    return ordered[max(ceil(percentile / 100 * len(ordered) - 1e-9), 1) - 1]


def _spread(values: Iterable[float | None], late: Iterable[float], percentile: float) -> Spread:
    """Mean and percentiles; a request that was overdue at the end counts with what it had taken so far."""
    ordered = sorted([*(value for value in values if value is not None), *late])
    if not ordered:
        return Spread()
    at = {p: nearest_rank(ordered, p) for p in sorted({*PERCENTILES, percentile})}
    return Spread(fmean(ordered), {p: value for p, value in at.items() if value is not None})


def _late_tpot(late: Iterable[Flight], slo: Slo, now: float) -> list[float]:
    """Only where TPOT itself is beyond its limit: else what it had taken so far says nothing of it."""
    least = [flight.least(now)[1] for flight in late]
    return [value for value in least if slo.itl_ms is not None and value > slo.itl_ms]


def tokens_per_chunk(flights: Iterable[Flight]) -> float:
    """Tokens that a chunk carries, on average over the completed answers; 1 where none completed."""
    done = [flight for flight in flights if flight.completed]
    chunks = sum(len(flight.answer.times) for flight in done)
    return sum(flight.tokens for flight in done) / chunks if chunks else 1.0


def _all_tokens(flights: Sequence[Flight]) -> float:
    """Tokens received in all, those of broken and cut answers estimated by their chunks."""
    usual = tokens_per_chunk(flights)
    return sum(f.tokens if f.completed else len(f.answer.times) * usual for f in flights)


def _tokens_within(window: Window) -> float:
    """Tokens received in the window: those of a request spread evenly over its chunks that carry any."""
    usual = tokens_per_chunk(window.flights)
    total = 0.0
    for flight in window.flights:
        times = flight.answer.times
        if times and times[0] < window.close and times[-1] >= window.open:
            chunks = _chunks_by(times, window.close) - _chunks_by(times, window.open)
            total += chunks * (flight.tokens / len(times) if flight.completed else usual)
    return total


def _chunks_by(times: array[float], at: float) -> float:
    """Chunks until a moment; between two of them the later one counts by the time that has passed.

    Engines give all requests a token at once: whole chunks would make a short window's edges matter.
    """
    before = bisect_left(times, at)
    if before in (0, len(times)):
        return float(before)
    return before + (at - times[before - 1]) / (times[before] - times[before - 1])


def _requests_within(window: Window) -> float:
    """Requests served in the window; one that was served partly in it counts by that part of its time."""
    total = 0.0
    for flight in window.flights:
        if flight.completed and (took := flight.answer.ended_at - flight.sent) > 0:
            shared = min(flight.answer.ended_at, window.close) - max(flight.sent, window.open)
            total += max(shared, 0.0) / took
    return total


def _sent_per_sec(window: Window, workload: Workload, load: Load) -> float | None:
    """How fast requests were sent; in an open loop relative to the schedule, whose gaps are random."""
    length = window.close - window.open
    if load.arrival != POISSON:
        return len(window.measured) / length if length > 0 else None
    due = due_between(load.value, workload.seed, window.open - window.start, window.close - window.start)
    if not due:
        return None
    sent = sum(window.open <= f.planned < window.close and f.sent <= window.close for f in window.flights)
    return load.value * sent / due


def _delay_p95_s(window: Window) -> float | None:
    """How late requests were sent, or the event loop woke: a closed loop's plan is late with the loop."""
    sends = nearest_rank(sorted(f.sent - f.planned for f in window.measured), 95.0)
    wakes = nearest_rank(sorted(window.lateness), 95.0)
    return max(filter(None, (sends, wakes)), default=None)


def _streamed(done: Iterable[Flight]) -> bool | None:
    """Whether tokens came one after the other; None where no answer had a second one."""
    pairs = [(flight.ttft_ms or 0.0, flight.e2e_ms) for flight in done if flight.tokens > 1]
    if not pairs:
        return None
    return sum(first for first, _ in pairs) < NOT_STREAMED_SHARE * sum(whole for _, whole in pairs)


def _odd(window: Window, done: Sequence[Flight]) -> Iterable[str]:
    late = nearest_rank(sorted(window.lateness), 95.0)
    if late is not None and late > LATE_LOOP_S:
        yield f"the client's event loop was late (p95 {late * 1000:,.3g} ms): latencies may hold some of that"
    if short := [f for f in done if uncountable(f)]:
        yield f"{len(short)} answers reached max_tokens in fewer chunks: their tokens are counted too low"
    cached = sum(f.answer.cached_tokens or 0 for f in done)
    prompted = sum(f.answer.prompt_tokens or 0 for f in done)
    if prompted and cached > CACHED_SHARE * prompted:
        yield f"{cached / prompted:.0%} of the prompt tokens came from the server's prefix cache"
    if said := next((f for f in window.measured if f.failure and f.said), None):
        yield f"the first failure ({said.failure}): {one_line(said.said)}"


def uncountable(flight: Flight) -> bool:
    """Whether an answer without usage shows that its chunks carry several tokens."""
    few = len(flight.answer.times) < COUNTED_SHARE * flight.most_tokens
    return flight.answer.output_tokens is None and flight.answer.finish == "length" and few


def one_line(text: str, most: int = 160) -> str:
    """Somebody else's text as one short line."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(printable.split())[:most]


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return fmean(found) if found else None
