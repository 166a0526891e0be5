"""Measurements, levels and runs in words: one place for what all the pages say of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sizing.domain.levels import CONCURRENCY, POISSON, Slo, Verdict, load_words
from sizing.models import Measurement, Refresh
from sizing.templatetags.desk import age, num, rate

ARRIVALS = {POISSON: "Poisson arrivals", CONCURRENCY: "fixed concurrency"}
BOUNDS: dict[str | None, str] = {
    Measurement.Bound.EDGE: "a higher load failed the SLO",
    Measurement.Bound.FLOOR: "at least this: no load tried failed the SLO",
}
MEANINGS = {
    Verdict.PASS: "meets the SLO",
    Verdict.FAIL: "fails the SLO",
    Verdict.UNKNOWN: "cannot be told",
    Verdict.INVALID: "invalid: says nothing",
}
STATES = {
    Refresh.State.QUEUED: "…",
    Refresh.State.RUNNING: "▶",
    Refresh.State.DONE: "✓",
    Refresh.State.FAILED: "✕",
    Refresh.State.CANCELLED: "■",
}


def ms(value: float | None) -> str:
    """Milliseconds with three figures or so: `6.25`, `48.1`, `1,180`."""
    if value is None:
        return num(None)
    places = 0 if value >= 100 else 1 if value >= 10 else 2
    return num(f"{value:.{places}f}")


def load_unit(arrival: str | None) -> str:
    """What a load counts."""
    return {POISSON: "requests/s", CONCURRENCY: "streams"}.get(arrival or "", "load")


def slo_words(slo: Slo) -> str:
    """An SLO: `95 % of the requests: TTFT ≤ 500 ms, TPOT ≤ 40 ms`."""
    rows = (("TTFT", slo.ttft_ms), ("TPOT", slo.itl_ms), ("end to end", slo.e2e_ms))
    limits = ", ".join(f"{name} ≤ {num(f'{limit:g}', 'ms')}" for name, limit in rows if limit is not None)
    return f"{num(f'{slo.percentile:g}', '%')} of the requests: {limits}"


def workload_words(workload: Mapping[str, Any]) -> str:
    """The shape and the arrival of the requests, as far as they are known."""
    parts = []
    if "input_tokens" in workload:
        parts.append(f"{num(workload['input_tokens'])} tokens in, {num(workload.get('output_tokens'))} out")
    if arrival := workload.get("arrival"):
        parts.append(ARRIVALS.get(arrival, str(arrival)))
    return ", ".join(parts)


def counts(measurement: Measurement) -> bool:
    """Whether answers may rest on a measurement."""
    return measurement.slo_met and measurement.tok_per_sec > 0


def figure(measurement: Measurement) -> str:
    """A measurement in one sentence."""
    on = measurement.profile.name
    if not measurement.slo_met:
        return f"One replica does not meet the SLO of {on}, not even at the lowest load tried."
    if measurement.tok_per_sec <= 0:
        return f"One replica served nothing on {on}."
    least = "at least " if measurement.bound == Measurement.Bound.FLOOR else ""
    return f"One replica serves {least}{rate(measurement.tok_per_sec)} tok/s on {on}."


def meaning(measurement: Measurement) -> str:
    """What a figure rests on, and what to do where that is not enough."""
    if not counts(measurement):
        return (
            "It counts for nothing: where one request at a time misses the SLO, no number of replicas helps."
            " Use a faster variant, or a profile with higher limits, and measure again."
        )
    if measurement.bound == Measurement.Bound.FLOOR:
        return (
            "No load tried failed the SLO, so fewer replicas may do than answers say."
            " Measure with higher loads to find the limit."
        )
    return ""


ASKED = {
    Refresh.Trigger.SCHEDULE: "by the schedule",
    Refresh.Trigger.ADMIN: "on a page",
    Refresh.Trigger.API: "by the API",
    Refresh.Trigger.COMMAND: "by a command",
}


def asked(refresh: Refresh) -> str:
    """Who asked for a run, and where."""
    where = ASKED[Refresh.Trigger(refresh.trigger)]
    return f"by {refresh.requested_by}, {where}" if refresh.requested_by else where


def spent(refresh: Refresh, now: datetime) -> str:
    """How long a run has taken so far, or took."""
    begin = refresh.started_at or refresh.queued_at
    return age(((refresh.finished_at or now) - begin).total_seconds())


def run_sentence(refresh: Refresh, now: datetime, levels: int) -> str:
    """How far a run is, or how it ended."""
    kept = f"; {num(levels)} finished level{'s' * (levels != 1)} below" if levels else ""
    if refresh.state == Refresh.State.QUEUED:
        waited = age((now - refresh.queued_at).total_seconds())
        why = refresh.message.removeprefix("waits: ") or "a worker takes it up as soon as one is free"
        return f"Waiting for {waited}: {why}."
    if refresh.state == Refresh.State.RUNNING:
        return "Stopping: the running level is left out." if refresh.cancel_requested else _at_work(refresh)
    if refresh.state == Refresh.State.DONE:
        return f"Done in {spent(refresh, now)}{f': {refresh.message}' if refresh.message else ''}."
    ended = "Failed" if refresh.state == Refresh.State.FAILED else "Cancelled"
    if refresh.started_at is None:
        return f"{ended} before it began."
    return f"{ended} after {spent(refresh, now)}{kept}."


def _at_work(refresh: Refresh) -> str:
    live = refresh.live
    if live.get("load") is None:
        return f"Preparing: {live.get('purpose') or refresh.message or 'beginning'}."
    at = load_words(live.get("arrival"), live["load"])
    purpose = f", {live['purpose']}" if live.get("purpose") else ""
    return f"Level {num(live.get('level'))} of about {num(live.get('most'))}: {at}{purpose}."


def live_numbers(refresh: Refresh) -> list[tuple[str, str]]:
    """The numbers of the level that runs: name and value."""
    live = refresh.live
    if refresh.state != Refresh.State.RUNNING or live.get("load") is None:
        return []
    return [
        ("tok/s so far", rate(live.get("tok_per_sec"))),
        ("requests sent", num(live.get("sent"))),
        ("answered", num(live.get("completed"))),
        ("failed", num(live.get("failed"))),
        ("in this level", age(live.get("seconds"))),
    ]


def one_line(text: str, longest: int = 120) -> str:
    """The first line of a text, cut where it is too long for a list."""
    first = text.strip().partition("\n")[0]
    return f"{first[: longest - 1]}…" if len(first) > longest else first
