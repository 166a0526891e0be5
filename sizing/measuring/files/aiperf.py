"""AIPerf's and genai-perf's exports: a metric is an object with its unit, `avg` and percentiles.

AIPerf also writes a sweep, with one such set of metrics for each combination. `inter_token_latency` is
TPOT; gaps between chunks are `inter_chunk_latency`. Tokens may be counted by the client's tokenizer:
AIPerf says so by having the server's counts beside its own, genai-perf never has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any, NamedTuple

from sizing.domain.levels import Level, Spread
from sizing.measuring.files.loops import loop
from sizing.measuring.files.points import FilePoint, FileRefused
from sizing.measuring.files.values import LONGEST_TEXT, Node, ended, share, shown_text, spread, streamed

AIPERF, GENAI_PERF = "aiperf", "genai-perf"

MISCOUNT = 0.02
"""Counts that differ by more are not of the same tokens."""

_MARKS = ("schema_version", "aiperf_version", "was_cancelled", "benchmark_duration")
_TO_MS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "sec": 1e3, "seconds": 1e3}
_PERCENTILES = ((50.0, "p50"), (90.0, "p90"), (95.0, "p95"), (99.0, "p99"))


def matches_aiperf(document: Node) -> bool:
    if is_sweep(document) or _other_export(document) is not None:
        return True
    metrics = ("output_token_throughput", "error_request_count")
    return _is_marked(document) and any(document[name].has("unit") for name in metrics)


def matches_genai_perf(document: Node) -> bool:
    return document["output_token_throughput"].has("unit") and not _is_marked(document)


def _is_marked(document: Node) -> bool:
    return any(document.has(mark) for mark in _MARKS)


def is_sweep(document: Node) -> bool:
    return document.has("per_combination_metrics")


def read(document: Node) -> Iterator[FilePoint]:
    if (other := _other_export(document)) is not None:
        wanted = "profile_export_aiperf.json or the sweep's file"
        raise FileRefused(f"{document.place}: {wanted} was expected, not {other}")
    if is_sweep(document):
        yield from _sweep(document)
    elif _is_marked(document):
        version = document["aiperf_version"].text()
        asked = _aiperf_load(document["input_config"])
        yield _point(document, f"{AIPERF} {version}" if version else AIPERF, asked, document)
    else:
        yield _point(document, GENAI_PERF, _genai_load(document["input_config"]), document)


def _other_export(document: Node) -> str | None:
    """Exports that are no load point: requests one by one, means over runs, a search without metrics."""
    if document.has("metadata", "metrics") and document["metadata"].has("request_start_ns"):
        return "the records of single requests"
    if document.has("metadata", "metrics") and document["metadata"].has("aggregation_type"):
        return "a mean over runs"
    if document.has("iterations", "best_trials"):
        return "the search's history"
    return None


class Asked(NamedTuple):
    """The load as asked, and the model and answer length where they are told."""

    concurrency: float | None
    rate: float | None
    model: str | None = None
    output_tokens: float | None = None
    streaming: bool | None = None


def _sweep(document: Node) -> Iterator[FilePoint]:
    trials = document["metadata"]["num_trials_per_value"].number() or 1
    for combination in document["per_combination_metrics"].items():
        found: dict[str, float | None] = {"concurrency": None, "rate": None}
        parameters = combination["parameters"]
        for name in parameters.names():
            short = name.rsplit(".", 1)[-1].removeprefix("request_")
            if short in found:
                found[short] = parameters[name].number()
        asked = Asked(found["concurrency"], found["rate"])
        warnings = (f"figures are means over {trials:g} runs",) if trials > 1 else ()
        yield _point(combination["metrics"], AIPERF, asked, document, warnings, combination.path)


def _aiperf_load(config: Node) -> Asked:
    """The load from AIPerf's own configuration, of which there are two generations."""
    if config["phases"].there:
        profiling = [phase for phase in config["phases"].items() if phase.inside("kind").value != "warmup"]
        phase = profiling[-1] if profiling else Node(None)
        models, data = list(config["models"]["items"].items()), list(config["datasets"].items())
        return Asked(
            phase.inside("concurrency").number_or_none(),
            phase.first("rate", "request_rate").number_or_none(),
            models[0]["name"].text() if models else None,
            data[0].inside("prompts", "osl", "mean").number_or_none() if data else None,
            config["endpoint"]["streaming"].flag(),
        )
    names = list(config["endpoint"]["model_names"].items())
    return Asked(
        config.inside("loadgen", "concurrency").number_or_none(),
        config.inside("loadgen", "request_rate").number_or_none(),
        names[0].text() if names else None,
        config.inside("input", "prompt", "output_tokens", "mean").number_or_none(),
        config["endpoint"]["streaming"].flag(),
    )


def _genai_load(config: Node) -> Asked:
    """The load from genai-perf's configuration, which older versions write as their flat arguments.

    They are an echo of the command, in which what is not set may be of any type.
    """
    stimulus, tokens = (
        config.inside("perf_analyzer", "stimulus"),
        config.inside("input", "output_tokens", "mean"),
    )
    models, streaming = config.inside("model_names").value, config.inside("endpoint", "streaming").value
    if not config.inside("perf_analyzer").there:
        stimulus, tokens = config, config.inside("output_tokens_mean")
        models, streaming = config.inside("model").value, config.inside("streaming").value
    model = models[0] if isinstance(models, list) and models else models
    return Asked(
        stimulus.inside("concurrency").number_or_none(),
        stimulus.inside("request_rate").number_or_none(),
        shown_text(model, LONGEST_TEXT) if isinstance(model, str) else None,
        tokens.number_or_none(),
        streaming if isinstance(streaming, bool) else None,
    )


def _point(
    metrics: Node,
    tool: str,
    asked: Asked,
    run: Node,
    warnings: tuple[str, ...] = (),
    place: str = "",
) -> FilePoint:
    genai = tool == GENAI_PERF
    completed = _count(metrics["request_count"])
    # genai-perf's load generator stops at the first failed request, so its files have none.
    failed = 0 if genai else _failed(metrics, run, completed)
    if completed is None and failed:
        completed = 0  # AIPerf leaves out the count of requests where all failed.
    ttft = _latency(metrics["time_to_first_token"])
    tpot = _latency(metrics["inter_token_latency"])
    e2e = _latency(metrics["request_latency"])
    output_tokens = _average(metrics["output_sequence_length"])
    reported = _average(metrics["output_token_throughput"])
    duration = _seconds(metrics["benchmark_duration"])
    tokens = _tokens(metrics, reported, duration, asked, output_tokens)
    told = streamed(ttft, tpot, e2e, output_tokens)
    cancelled = run["was_cancelled"].flag()
    achieved = _average(metrics["request_throughput"])
    # Without a rate AIPerf and genai-perf keep so many requests in flight.
    rate = inf if asked.rate is None and asked.concurrency is not None else asked.rate
    looped = loop(rate, asked.concurrency, achieved)
    level = Level(
        arrival=looped.arrival,
        load=looped.load,
        tok_per_sec=tokens.tok_per_sec,
        duration_s=duration,
        sent=ended(completed, failed),
        completed=completed,
        failed=failed,
        requests_per_sec=achieved,
        input_tokens=_average(metrics["input_sequence_length"]),
        output_tokens=output_tokens,
        ttft=ttft,
        tpot=tpot,
        e2e=e2e,
        streamed=False if asked.streaming is False else told,
        cancelled=bool(cancelled) or run["is_complete"].flag() is False,
        counted=genai,
        warnings=(*warnings, *filter(None, (looped.warning, tokens.warning))),
    )
    goodput = _average(metrics["request_goodput"] if genai else metrics["goodput"])
    said: dict[str, Any] = {"was_cancelled": cancelled}
    if goodput is not None:
        said["request_goodput"] = goodput
    if tokens.by_server is not None:
        said["output_tok_s_server_counted"] = tokens.by_server
    return FilePoint(
        tool=tool,
        level=level,
        place=place,
        model=asked.model,
        concurrency=asked.concurrency,
        request_rate_target=asked.rate,
        output_tok_s=reported,
        total_tok_s=_average(metrics["total_token_throughput"]),
        itl=_latency(metrics["inter_chunk_latency"]),
        said=said,
    )


class Tokens(NamedTuple):
    """Output tokens/s that sizing may use, the server's count where the file has one, and what is odd."""

    tok_per_sec: float | None
    by_server: float | None
    warning: str


def _tokens(
    metrics: Node, reported: float | None, duration: float | None, asked: Asked, output_tokens: float | None
) -> Tokens:
    by_server = share(_average(metrics["total_usage_completion_tokens"]), duration)
    if by_server is not None:
        if reported is None or abs(reported - by_server) <= MISCOUNT * by_server:
            return Tokens(reported, by_server, "")
        said = f"the client's tokenizer counted {reported:,.4g} tok/s, the server {by_server:,.4g}"
        return Tokens(by_server, by_server, said)
    if asked.output_tokens and output_tokens and output_tokens > asked.output_tokens * (1 + MISCOUNT):
        said = (
            f"the client's tokenizer counted {output_tokens:,.4g} tokens an answer where at most "
            f"{asked.output_tokens:,g} were asked: its tok/s are not used, and TPOT is too low"
        )
        return Tokens(None, None, said)
    if reported is None:
        return Tokens(None, None, "")
    return Tokens(reported, None, "tokens were counted by the client's tokenizer, not by the server")


def _failed(metrics: Node, run: Node, completed: int | None) -> int | None:
    """Failed requests: as counted, else those ended without success, else from the list of errors."""
    counted = _count(metrics["error_request_count"])
    if counted is not None:
        return counted
    ended_requests = _count(metrics["completed_request_count"])
    if ended_requests is not None and completed is not None:
        return max(ended_requests - completed, 0)
    if not run["error_summary"].there:
        return None
    return sum(error["count"].count() or 0 for error in run["error_summary"].items())


def _average(metric: Node) -> float | None:
    return metric["avg"].number()


def _count(metric: Node) -> int | None:
    """A number of requests; a mean over runs may be broken."""
    value = _average(metric)
    return None if value is None else round(value)


def _seconds(metric: Node) -> float | None:
    value = _average(metric)
    return None if value is None else value * _in_ms(metric) / 1000


def _latency(metric: Node) -> Spread:
    if not metric.there:
        return Spread()
    return spread(metric["avg"], [(p, metric[name]) for p, name in _PERCENTILES], _in_ms(metric))


def _in_ms(metric: Node) -> float:
    unit = metric["unit"].text()
    if unit not in _TO_MS:
        raise metric["unit"].refused("a unit of time (ms, s, us, ns)")
    return _TO_MS[unit]
