"""One load level of a load test, and its verdict under an SLO.

Latencies are in milliseconds, throughput in output tokens per second of the whole replica. None is
"not known" everywhere, and never counts as passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from math import isfinite, sqrt
from typing import Any

POISSON = "poisson"
"""Open loop: requests are sent at random moments, whatever the server does; a load is requests/s."""

CONCURRENCY = "concurrency"
"""Closed loop: each stream sends its next request when the last is answered; a load is streams."""

MOST_FAILED_SHARE = 0.01
LEAST_SENT_SHARE = 0.9
MOST_DELAY_S = 1.0
NOT_STREAMED_SHARE = 0.95
WILSON_Z = 1.959964
"""Two-sided 95 %."""


class Verdict(StrEnum):
    """What a level says about the SLO. Only `PASS` counts as met."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Slo:
    """Limits in ms, each None or above 0, that `percentile` % of the requests sent must all meet.

    `itl_ms` limits TPOT, a request's `(e2e - ttft) / (output tokens - 1)`: gaps between chunks are
    not tokens.
    """

    ttft_ms: float | None = None
    itl_ms: float | None = None
    e2e_ms: float | None = None
    percentile: float = 95.0

    def met(self, ttft_ms: float | None, tpot_ms: float | None, e2e_ms: float | None) -> bool:
        """Whether one completed request meets every limit; a latency that is not known does not."""
        pairs = ((ttft_ms, self.ttft_ms), (tpot_ms, self.itl_ms), (e2e_ms, self.e2e_ms))
        return all(limit is None or (value is not None and value <= limit) for value, limit in pairs)


@dataclass(frozen=True, slots=True)
class Spread:
    """A latency over the requests of a level: its mean, and values by percentile (0 to 100)."""

    mean: float | None = None
    at: Mapping[float, float] = field(default_factory=dict)

    @property
    def known(self) -> bool:
        return self.mean is not None or bool(self.at)

    def within(self, limit: float, percentile: float) -> bool | None:
        """Whether the value at a percentile is at most `limit`; None where the known ones do not tell.

        A lower percentile beyond the limit disproves it, a higher one within proves it.
        """
        if any(at <= percentile and value > limit for at, value in self.at.items()):
            return False
        if any(at >= percentile and value <= limit for at, value in self.at.items()):
            return True
        return None


@dataclass(frozen=True, slots=True)
class Level:
    """What was observed at one load.

    arrival: `POISSON`, `CONCURRENCY`, or None where it is not told.
    load: requests/s or streams as asked; None: unlimited or not told.
    tok_per_sec: output tokens per wall second of the whole replica.
    sent: requests whose outcome is certain: completed, failed (empty answers among them), and those that
        were beyond a limit already when the level ended. Others that still flew then are `cut`, left out.
    conform: how many of those sent met every limit; None where only percentiles are known.
    sent_per_sec: the rate at which requests were really sent; delay_p95_s: 95th percentile of how much
        later than planned. Both tell whether the client kept up.
    all_tokens: output tokens received in all, before, in and after the window.
    counted: tokens were counted from the stream, since the server sent no usage.
    streamed: False where the answer came in one piece, so that TTFT is not known.
    """

    arrival: str | None = None
    load: float | None = None
    tok_per_sec: float | None = None
    duration_s: float | None = None
    sent: int | None = None
    completed: int | None = None
    failed: int | None = None
    cut: int | None = None
    conform: int | None = None
    requests_per_sec: float | None = None
    sent_per_sec: float | None = None
    delay_p95_s: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    ttft: Spread = Spread()
    tpot: Spread = Spread()
    e2e: Spread = Spread()
    all_tokens: float | None = None
    streamed: bool | None = None
    cancelled: bool = False
    counted: bool = False
    failures: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """A form for JSON; `from_dict` reads it."""
        form = asdict(self)
        for name in ("ttft", "tpot", "e2e"):
            form[name]["at"] = {f"{at:g}": value for at, value in form[name]["at"].items()}
        form["warnings"] = list(self.warnings)
        return form

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Level:
        """Read what `as_dict` wrote; keys of later versions are left aside."""
        values = {name: form[name] for name in cls.__dataclass_fields__ if name in form}
        for name in ("ttft", "tpot", "e2e"):
            spread = values.get(name) or {}
            at = {float(p): float(value) for p, value in (spread.get("at") or {}).items()}
            values[name] = Spread(spread.get("mean"), at)
        values["warnings"] = tuple(values.get("warnings") or ())
        return cls(**values)

    @property
    def failed_share(self) -> float | None:
        """Failed among those sent; None where it is not known."""
        if self.failed is None or self.completed is None or self.completed + self.failed == 0:
            return None
        return self.failed / (self.completed + self.failed)


@dataclass(frozen=True, slots=True)
class Judged:
    """A level with its verdict and the reason for it, in words."""

    level: Level
    verdict: Verdict
    why: str


def judge(level: Level, slo: Slo) -> Judged:
    """The verdict of a level under an SLO.

    A level passes when at least `percentile` % of the requests sent meet every limit and at most 1 %
    failed. A failed SLO is a fail even where the client was slow too; only a would-be pass becomes
    invalid. Where requests are known one by one, a pass must be beyond chance: a Wilson 95 % interval
    that still holds the percentile, with violations seen, is unknown.
    """
    broken = _broken(level)
    if broken:
        return Judged(level, Verdict.INVALID, broken)
    share = level.failed_share
    if share is not None and share > MOST_FAILED_SHARE:
        return Judged(level, Verdict.FAIL, f"{_percent(share)} of the requests failed, at most 1 % may")
    by = _by_requests if level.conform is not None else _by_percentiles
    verdict, why = by(level, slo)
    if verdict is Verdict.PASS and (slow := _slow_client(level)):
        return Judged(level, Verdict.INVALID, slow)
    return Judged(level, verdict, why)


def _broken(level: Level) -> str:
    if level.cancelled:
        return "the run was cancelled"
    if level.completed == 0:
        return "no request completed"
    if level.tok_per_sec is not None and (not isfinite(level.tok_per_sec) or level.tok_per_sec <= 0):
        return "no tokens came"
    for name, spread in (("TTFT", level.ttft), ("TPOT", level.tpot), ("end to end", level.e2e)):
        values = [*spread.at.values(), *([] if spread.mean is None else [spread.mean])]
        if values and max(values) <= 0 and not (name == "TPOT" and level.output_tokens == 1):
            return f"{name} is 0 although tokens came: it was not measured"
    return ""


def _by_requests(level: Level, slo: Slo) -> tuple[Verdict, str]:
    sent, conform = level.sent or 0, level.conform or 0
    if sent == 0:
        return Verdict.INVALID, "no request ended"
    low, high = wilson(conform, sent)
    wanted = slo.percentile / 100
    said = f"{conform:,} of {sent:,} requests ({_percent(conform / sent)}) met the SLO"
    if not slo_has_known_limits(level, slo):
        verdict, why = _by_percentiles(level, slo)
        if verdict is Verdict.FAIL:
            return verdict, why
        return Verdict.UNKNOWN, "the answers were not streamed, so TTFT and TPOT are not known"
    if conform / sent < wanted:
        return Verdict.FAIL, f"{said}, {_percent(wanted)} must{_worst(level, slo)}"
    if conform < sent and low < wanted <= high:
        return Verdict.UNKNOWN, f"{said}: too few to tell them from {_percent(wanted)}"
    return Verdict.PASS, said


def slo_has_known_limits(level: Level, slo: Slo) -> bool:
    """Whether the level can tell of every limit: without streaming there is no TTFT, and no TPOT."""
    return level.streamed is not False or (slo.ttft_ms is None and slo.itl_ms is None)


def _by_percentiles(level: Level, slo: Slo) -> tuple[Verdict, str]:
    unknown = []
    for name, spread, limit in limited(level, slo):
        within = spread.within(limit, slo.percentile)
        if within is False:
            worst = min((value for at, value in spread.at.items() if at <= slo.percentile and value > limit))
            return Verdict.FAIL, f"{name} of {worst:,.4g} ms is beyond {limit:,g} ms"
        if within is None:
            unknown.append(name)
    if unknown:
        names = " and ".join(unknown)
        return Verdict.UNKNOWN, f"{names} at p{slo.percentile:g} cannot be told from what is given"
    return Verdict.PASS, f"every limit met at p{slo.percentile:g}"


def limited(level: Level, slo: Slo) -> list[tuple[str, Spread, float]]:
    """Name, spread and limit of each latency that the SLO limits; an unstreamed TTFT is not known."""
    ttft = Spread() if level.streamed is False else level.ttft
    tpot = Spread() if level.streamed is False else level.tpot
    rows = (("TTFT", ttft, slo.ttft_ms), ("TPOT", tpot, slo.itl_ms), ("end to end", level.e2e, slo.e2e_ms))
    return [(name, spread, limit) for name, spread, limit in rows if limit is not None]


def strain(level: Level, slo: Slo) -> float | None:
    """The largest ratio of a limited latency at the SLO's percentile to its limit; None: not known.

    At most 1 where the limits are met. The search places its next level by it.
    """
    ratios = [s.at[slo.percentile] / limit for _, s, limit in limited(level, slo) if slo.percentile in s.at]
    return max(ratios) if ratios and len(ratios) == len(limited(level, slo)) else None


def _slow_client(level: Level) -> str:
    sent, asked = level.sent_per_sec, level.load
    if (
        level.arrival == POISSON
        and sent is not None
        and asked is not None
        and sent < LEAST_SENT_SHARE * asked
    ):
        return f"the client sent {sent:,.4g} requests/s of {asked:,.4g} asked: it did not keep up"
    if level.delay_p95_s is not None and level.delay_p95_s > MOST_DELAY_S:
        return f"the client sent late (p95 {level.delay_p95_s:,.3g} s): it did not keep up"
    return ""


def _worst(level: Level, slo: Slo) -> str:
    for name, spread, limit in limited(level, slo):
        value = spread.at.get(slo.percentile)
        if value is not None and value > limit:
            return f"; {name} p{slo.percentile:g} {value:,.4g} ms, limit {limit:,g} ms"
    return ""


def wilson(hits: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % score interval of a share (E. B. Wilson, 1927); (0, 1) where nothing was seen."""
    if of == 0:
        return 0.0, 1.0
    z2 = WILSON_Z**2
    share = hits / of
    center = (share + z2 / (2 * of)) / (1 + z2 / of)
    half = WILSON_Z * sqrt(share * (1 - share) / of + z2 / (4 * of * of)) / (1 + z2 / of)
    return max(center - half, 0.0), min(center + half, 1.0)


def resolved(conform: int, sent: int, percentile: float) -> bool:
    """Whether so many requests tell, at 95 %, on which side of the percentile the share is.

    Without a violation this takes 73 requests at p95.
    """
    low, high = wilson(conform, sent)
    return low >= percentile / 100 or high < percentile / 100


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def load_words(arrival: str | None, load: float | None) -> str:
    """A load for people: `8 streams`, `1.5 requests/s`."""
    if load is None:
        return "no limit of load"
    if arrival not in (POISSON, CONCURRENCY):
        return f"load {load:,.4g}"
    unit = "requests/s" if arrival == POISSON else "stream" if load == 1 else "streams"
    return f"{load:,.4g} {unit}" if load < 10_000 else f"{load:,.0f} {unit}"
