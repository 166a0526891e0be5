"""GuideLLM's benchmark reports: without `metadata` (up to 0.3), versions 1 and 2.

Each benchmark is one load point. `inter_token_latency_ms` is a request's mean without its first token, so
TPOT; `time_per_output_token_ms` contains the first token and is not used. `request_latency` is in seconds.
Medians of throughput are over moments, not over the run, and mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from sizing.domain.levels import CONCURRENCY, POISSON, Level, Spread
from sizing.measuring.files.loops import Loop, loop
from sizing.measuring.files.points import FilePoint
from sizing.measuring.files.values import Node, ended, spread, streamed

TOOL = "guidellm"

_PERCENTILES = ((90.0, "p90"), (95.0, "p95"), (99.0, "p99"))
_OPEN = ("constant", "poisson", "trace")
_KNOWN_SCHEMAS = (None, 1, 2)


def matches(document: Node) -> bool:
    if not document.has("benchmarks") or not isinstance(document.value["benchmarks"], list):
        return False
    first = next(document["benchmarks"].items(), None)
    return first is not None and first.has("type_") and _is_generative(first)


def read(document: Node) -> Iterator[FilePoint]:
    version = document["metadata"]["guidellm_version"].text()
    schema = document["metadata"]["version"]
    if schema.value not in _KNOWN_SCHEMAS:
        raise schema.refused("schema 1 or 2 of GuideLLM")
    for benchmark in document["benchmarks"].items():
        if not _is_generative(benchmark):
            raise benchmark["type_"].refused('"generative_benchmark"')
        yield _point(benchmark, f"{TOOL} {version}" if version else TOOL)


def _is_generative(benchmark: Node) -> bool:
    return bool(benchmark["type_"].value == "generative_benchmark")


def _point(benchmark: Node, tool: str) -> FilePoint:
    metrics = benchmark["metrics"]
    config = benchmark["config"] if benchmark["config"].there else benchmark["args"]
    strategy = config["strategy"]
    kind = strategy["type_"].text()
    totals = _totals(benchmark)
    completed, failed = totals["successful"].count(), totals["errored"].count()
    ttft = _latency(metrics["time_to_first_token_ms"])
    tpot = _latency(metrics["inter_token_latency_ms"])
    e2e = _latency(metrics["request_latency"], 1000.0)
    output_tokens = _successful(metrics["output_token_count"])
    tok_per_sec = metrics.at("output_tokens_per_second", "total", "mean").number()
    open_loop = kind in _OPEN
    streams, rate = _streams(strategy, kind), strategy["rate"].number() if open_loop else None
    achieved = _successful(metrics["requests_per_second"])
    asked = _loop(benchmark, strategy, kind, achieved)
    level = Level(
        arrival=asked.arrival,
        load=asked.load,
        tok_per_sec=tok_per_sec,
        duration_s=benchmark["duration"].number(),
        sent=ended(completed, failed),
        completed=completed,
        failed=failed,
        cut=totals["incomplete"].count(),
        requests_per_sec=achieved,
        delay_p95_s=_delay(metrics) if open_loop and asked.arrival != CONCURRENCY else None,
        input_tokens=_successful(metrics["prompt_token_count"]),
        output_tokens=output_tokens,
        ttft=ttft,
        tpot=tpot,
        e2e=e2e,
        streamed=_streamed(config, streamed(ttft, tpot, e2e, output_tokens)),
        warnings=tuple(_warnings(benchmark, asked)),
    )
    return FilePoint(
        tool=tool,
        level=level,
        place=benchmark.path,
        model=config["backend"].first("model", "backend_model").text() or _old_model(benchmark),
        concurrency=streams,
        request_rate_target=rate,
        output_tok_s=tok_per_sec,
        total_tok_s=metrics.at("tokens_per_second", "total", "mean").number(),
        said={
            "strategy": kind,
            "concurrency_mean": _successful(metrics["request_concurrency"]),
            "incomplete": level.cut,
            "output_tok_s_successful_only": _successful(metrics["output_tokens_per_second"]),
            **_attainment(metrics),
        },
    )


def _totals(benchmark: Node) -> Node:
    """Requests by outcome, in the measured part of the run where the file tells that apart."""
    for totals in (benchmark.at("metrics", "request_totals"), benchmark["request_totals"]):
        if totals.there:
            return totals
    return benchmark.at("scheduler_metrics", "requests_made")


def _successful(metric: Node) -> float | None:
    return metric.at("successful", "mean").number()


def _latency(metric: Node, factor: float = 1.0) -> Spread:
    """A latency over the completed requests; without one, GuideLLM writes zeros."""
    found = metric["successful"]
    if not found.there or found["count"].number() == 0:
        return Spread()
    percentiles = found["percentiles"]
    median = percentiles["p50"] if percentiles["p50"].there else found["median"]
    known = [(p, percentiles[name]) for p, name in _PERCENTILES]
    return spread(found["mean"], [(50.0, median), *known], factor)


def _streams(strategy: Node, kind: str | None) -> float | None:
    if kind == "synchronous":
        return 1.0
    if kind == "concurrent":
        return strategy.first("streams", "max_concurrency").number()
    return None if kind in _OPEN else strategy["max_concurrency"].number()


def _loop(benchmark: Node, strategy: Node, kind: str | None, achieved: float | None) -> Loop:
    """An open loop's cap, which has a default, counts only where it was reached."""
    if kind not in _OPEN:
        return Loop(None if kind is None else CONCURRENCY, _streams(strategy, kind))
    cap = strategy["max_concurrency"].number()
    reached = benchmark.at("metrics", "request_concurrency", "total", "max").number()
    held = cap if cap and reached and reached >= cap else None
    rate = strategy["rate"].number()
    return Loop(POISSON, None) if rate is None else loop(rate, held, achieved)


def _delay(metrics: Node) -> float | None:
    return metrics.at("request_dispatch_delay", "total", "percentiles", "p95").number(low=-1e9)


def _streamed(config: Node, told: bool | None) -> bool | None:
    return False if config.at("backend", "stream").flag() is False else told


def _old_model(benchmark: Node) -> str | None:
    return benchmark["worker"]["backend_model"].text()


def _attainment(metrics: Node) -> dict[str, float | None]:
    """The share of requests that met the SLO that GuideLLM itself was given, and of how many."""
    attained = metrics["slo_attainment"].number()
    if attained is None:
        return {}
    return {
        "slo_attainment": attained,
        "slo_determined_requests": metrics["slo_determined_requests"].count(),
        "request_goodput": metrics.at("request_goodput", "total", "mean").number(),
    }


def _warnings(benchmark: Node, asked: Loop) -> Iterator[str]:
    if asked.warning:
        yield asked.warning
    for warning in benchmark["warnings"].items():
        message = warning["message"].text() if warning.has("message") else None
        if message:
            yield f"GuideLLM: {message}"
