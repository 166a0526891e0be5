"""inference-perf: one file a load stage, in seconds.

The summary over all stages is no load point and is refused. Unless it is told to use the server's counts,
the tool counts tokens with its own tokenizer, which has given nearly twice as many: throughput is then
computed anew from the server's total, and TPOT is not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sizing.domain.levels import (
    CONCURRENCY,
    LEAST_SENT_SHARE,
    MOST_DELAY_S,
    POISSON,
    Level,
    Spread,
)
from sizing.measuring.files.points import FilePoint
from sizing.measuring.files.values import Node, ended, share, spread, streamed

TOOL = "inference-perf"

SAME_COUNT = 0.02
"""Counts of the tool and of the server that differ by less are the same."""

_PERCENTILES = ((50.0, "median"), (90.0, "p90"), (95.0, "p95"), (99.0, "p99"))
_ANY_DELAY = -1e9


class Tokens(NamedTuple):
    """Output tokens/s as reported and by the server's counts, and which of them is used.

    tok_per_sec, mean: None where only the client's tokenizer counted. tpot: whether TPOT is by real tokens.
    """

    reported: float | None
    by_server: float | None
    tok_per_sec: float | None
    mean: float | None
    tpot: bool
    warning: str


def matches(document: Node) -> bool:
    return document.has("load_summary", "successes")


def read(document: Node) -> Iterator[FilePoint]:
    summary, successes = document["load_summary"], document["successes"]
    if not summary["requested_rate"].there:
        raise summary["requested_rate"].refused("one load stage (stage_N_lifecycle_metrics.json)")
    completed, failed = successes["count"].count(), document["failures"]["count"].count()
    tokens = _tokens(document, completed)
    latency = successes["latency"]
    ttft = _latency(latency["time_to_first_token"], completed)
    tpot = _latency(latency["time_per_output_token"], completed) if tokens.tpot else Spread()
    e2e = _latency(latency["request_latency"], completed)
    asked, streams = summary["requested_rate"].number(), summary["concurrency"].number()
    sent = summary["achieved_rate"].number()
    delay = summary["schedule_delay"]["p95"].number(low=_ANY_DELAY)
    level = Level(
        arrival=POISSON if streams is None else CONCURRENCY,
        load=asked if streams is None else streams,
        tok_per_sec=tokens.tok_per_sec,
        duration_s=document["benchmark_time_seconds"].number(),
        sent=ended(completed, failed),
        completed=completed,
        failed=failed,
        requests_per_sec=successes["throughput"]["requests_per_sec"].number(),
        sent_per_sec=sent,
        delay_p95_s=delay if streams is None else None,
        input_tokens=successes.first("prompt_tokens", "prompt_len")["mean"].number(),
        output_tokens=tokens.mean,
        ttft=ttft,
        tpot=tpot,
        e2e=e2e,
        streamed=streamed(ttft, tpot, e2e, tokens.mean),
        failures=_failures(document["failures"]["by_label"]),
        warnings=(tokens.warning,) if tokens.warning else (),
    )
    yield FilePoint(
        tool=TOOL,
        level=level,
        concurrency=streams,
        request_rate_target=asked,
        output_tok_s=tokens.tok_per_sec,
        total_tok_s=successes["throughput"]["total_tokens_per_sec"].number(),
        itl=_latency(latency["inter_token_latency"], completed),
        said=_said(tokens, asked, sent, delay),
    )


def _tokens(document: Node, completed: int | None) -> Tokens:
    successes = document["successes"]
    reported = successes["throughput"]["output_tokens_per_sec"].number()
    total = successes["output_tokens"]["total"].number()
    by_server = share(total, document["benchmark_time_seconds"].number())
    if by_server is None:
        mean = successes["output_len"]["mean"].number()
        warning = "tokens were counted by the client's tokenizer; the server's counts are not in the file"
        return Tokens(reported, None, reported, mean, tpot=True, warning=warning)
    fallback = successes["client_fallback_requests"]["output"].number() or 0
    if fallback:
        warning = f"the server sent no token counts for {fallback:,g} requests: tok/s and TPOT are not known"
        return Tokens(reported, by_server, None, None, tpot=False, warning=warning)
    mean = successes["output_tokens"]["mean"].number()
    mean = share(total, completed) if mean is None else mean
    same = reported is None or abs(reported - by_server) <= SAME_COUNT * by_server
    warning = "" if same else f"the client's tokenizer counted {reported:,.4g} tok/s: TPOT is not known"
    return Tokens(reported, by_server, by_server, mean, tpot=same, warning=warning)


def _latency(summary: Node, completed: int | None) -> Spread:
    if not completed:
        return Spread()
    return spread(summary["mean"], [(p, summary[name]) for p, name in _PERCENTILES], 1000.0)


def _failures(by_label: Node) -> dict[str, int]:
    return {label: by_label[label]["count"].count() or 0 for label in by_label.names()}


def _said(tokens: Tokens, asked: float | None, sent: float | None, delay: float | None) -> dict[str, Any]:
    behind = asked is not None and sent is not None and sent < LEAST_SENT_SHARE * asked
    said: dict[str, Any] = {"request_rate_sent": sent, "schedule_delay_p95_s": delay}
    if behind or (delay is not None and delay > MOST_DELAY_S):
        said["client_limited"] = True
    if tokens.by_server is not None:
        said["output_tok_s_server_counted"] = tokens.by_server
        said["output_tok_s_reported"] = tokens.reported
    if not tokens.tpot:
        said["tpot_ms"] = dict.fromkeys(("mean", "p50", "p90", "p95", "p99"))
        said["tpot_note"] = "counted with the client's tokenizer"
    return said
