"""The llm-d Benchmark Report, version 0.2: one document for each load level.

What the schema has no place for (arrival, the rate really sent, the conforming requests), this desk writes
into the load's native configuration, where a report may carry anything; it is read back from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import inf

from sizing.domain.levels import CONCURRENCY, POISSON, Level, Spread
from sizing.measuring.files.loops import Loop, loop
from sizing.measuring.files.points import FilePoint
from sizing.measuring.files.values import Node, spread, streamed

TOOL = "llm-d Benchmark Report"
VERSION = "0.2"
VERSIONS = ("0.2", "0.2.1")
GENERATOR = "llmgw-admin"

_TO_MS = {"s": 1e3, "ms": 1.0, "us": 1e-3, "s/token": 1e3, "ms/token": 1.0}
PERCENTILES = {
    0.1: "p0p1",
    1.0: "p1",
    5.0: "p5",
    10.0: "p10",
    25.0: "p25",
    50.0: "p50",
    75.0: "p75",
    90.0: "p90",
    95.0: "p95",
    99.0: "p99",
    99.9: "p99p9",
}
_ANY = -1e9
_DURATION = re.compile(r"P(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,20})?)S)?)?$")
_SECONDS = (86_400.0, 3_600.0, 60.0, 1.0)


def matches(document: Node) -> bool:
    return document.has("results") and document["results"].has("request_performance")


def read(document: Node) -> Iterator[FilePoint]:
    if _version(document["version"].value) not in VERSIONS:
        raise document["version"].refused(f"version {' or '.join(VERSIONS)} of the Benchmark Report")
    aggregate = document.at("results", "request_performance", "aggregate")
    requests, latency, rates = aggregate["requests"], aggregate["latency"], aggregate["throughput"]
    load = document.at("scenario", "load")
    standard, extra = load["standardized"], _extra(load.at("native", "config"))
    failed, cut = requests["failures"].count(), requests["incomplete"].count()
    completed = _completed(requests, failed, cut)
    rate, streams = standard["rate_qps"].number(), standard["concurrency"].number()
    achieved = rates["request_rate"]["mean"].number()
    asked = _loop(extra["arrival"], rate, streams, achieved)
    spreads = {name: _read_spread(latency, extra, name) for name in _LATENCIES}
    output_tokens = requests["output_length"]["mean"].number()
    tok_per_sec = rates["output_token_rate"]["mean"].number()
    told = extra["streamed"].flag()
    level = Level(
        arrival=asked.arrival,
        load=asked.load,
        tok_per_sec=tok_per_sec,
        duration_s=_duration(document, extra),
        sent=None if completed is None or failed is None else completed + failed,
        completed=completed,
        failed=failed,
        cut=cut,
        conform=extra["conform"].count(),
        requests_per_sec=achieved,
        sent_per_sec=extra["sent_per_sec"].number(),
        delay_p95_s=extra["delay_p95_s"].number(low=_ANY),
        input_tokens=requests["input_length"]["mean"].number(),
        output_tokens=output_tokens,
        ttft=spreads["ttft"],
        tpot=spreads["tpot"],
        e2e=spreads["e2e"],
        all_tokens=extra["all_tokens"].number(),
        streamed=streamed(spreads["ttft"], spreads["tpot"], spreads["e2e"], output_tokens)
        if told is None
        else told,
        cancelled=bool(extra["cancelled"].flag()),
        counted=bool(extra["counted"].flag()),
        failures={name: extra["failures"][name].count() or 0 for name in extra["failures"].names()},
        warnings=(*filter(None, (asked.warning, *(item.text() for item in extra["warnings"].items()))),),
    )
    yield FilePoint(
        tool=TOOL,
        level=level,
        model=_model(document, extra),
        concurrency=streams,
        request_rate_target=rate,
        output_tok_s=tok_per_sec,
        total_tok_s=rates["total_token_rate"]["mean"].number(),
        itl=_read_latency(latency["inter_token_latency"]),
    )


_LATENCIES = {"ttft": "time_to_first_token", "tpot": "time_per_output_token", "e2e": "request_latency"}


def _extra(config: Node) -> Node:
    """What this desk wrote beside the schema; nothing in reports of others."""
    return config[GENERATOR] if config.has(GENERATOR) else Node(None, config.path)


def _completed(requests: Node, failed: int | None, cut: int | None) -> int | None:
    total = requests["total"].count()
    return None if total is None else max(total - (failed or 0) - (cut or 0), 0)


def _duration(document: Node, extra: Node) -> float | None:
    """Seconds, from beside the schema or from the run's ISO 8601 duration in days to seconds."""
    if extra["duration_s"].there:
        return extra["duration_s"].number()
    found = _DURATION.match(document.at("run", "time", "duration").text() or "")
    if found is None or not any(found.groups()):
        return None
    return sum(float(part or 0) * unit for part, unit in zip(found.groups(), _SECONDS, strict=True))


def _version(value: object) -> object:
    """The schema's version, also where YAML made a number of it."""
    return f"{value:g}" if isinstance(value, float) else value


def _loop(told: Node, rate: float | None, streams: float | None, achieved: float | None) -> Loop:
    if told.there:
        if told.value not in (POISSON, CONCURRENCY):
            raise told.refused(f'"{POISSON}" or "{CONCURRENCY}"')
        return Loop(POISSON, rate) if told.value == POISSON else Loop(CONCURRENCY, streams)
    return loop(inf if rate is None and streams is not None else rate, streams, achieved)


def _model(document: Node, extra: Node) -> str | None:
    if extra["model"].there:
        return extra["model"].text()
    for component in document.at("scenario", "stack").items():
        name = component.at("standardized", "model", "name")
        if name.there:
            return name.text()
    return None


def _read_spread(latency: Node, extra: Node, name: str) -> Spread:
    """A latency of the schema, or, where no mean is known, from beside it: the schema wants a mean."""
    known = _read_latency(latency[_LATENCIES[name]])
    if known.known:
        return known
    beside = extra["spreads_ms"][name]
    return spread(None, [(p, beside[key]) for p, key in PERCENTILES.items()])


def _read_latency(statistics: Node) -> Spread:
    if not statistics.there:
        return Spread()
    units = statistics["units"].text()
    if units not in _TO_MS:
        raise statistics["units"].refused("s, ms, s/token or ms/token")
    at = [(p, statistics[key]) for p, key in PERCENTILES.items()]
    return spread(statistics["mean"], at, _TO_MS[units])
