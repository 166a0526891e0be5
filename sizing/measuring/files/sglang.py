"""`sglang.bench_serving`: JSON lines, appended for ever, one flat object a load point.

An unlimited rate is a literal `Infinity`, that of a trace the word "trace". Versions of 2024 have medians
only. The model is not told, and failed requests only by the details of single requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sizing.domain.levels import Level, Spread
from sizing.measuring.files.latencies import Details, completed_by, details, flat, names
from sizing.measuring.files.loops import Loop, loop
from sizing.measuring.files.points import FilePoint
from sizing.measuring.files.values import Node, ended, share, streamed
from sizing.measuring.files.vllm import saturated

TOOL = "sglang.bench_serving"


def matches(document: Node) -> bool:
    if document.has("total_output_tokens_retokenized"):
        return True
    return document.has("backend", "dataset_name") and not document.has("model_id")


def read(document: Node) -> Iterator[FilePoint]:
    completed = document["completed"].count()
    spreads = {
        name: flat(document, f"{name}_ms") if completed else Spread()
        for name in ("ttft", "tpot", "itl", "e2e_latency")
    }
    derived: list[str] = []
    single = details(document)
    if single and completed:
        spreads["ttft"], ttft = completed_by(spreads["ttft"], single.ttft)
        spreads["tpot"], tpot = completed_by(spreads["tpot"], single.tpot)
        derived = names([("ttft_ms", ttft), ("tpot_ms", tpot)])
    failed, empty = _failed(single, completed)
    rate, cap = document["request_rate"].rate(), document["max_concurrency"].number()
    duration = document["duration"].number()
    output_tokens = share(document["total_output_tokens"].number(), completed)
    tok_per_sec = document["output_throughput"].number()
    throughput = document["request_throughput"].number()
    achieved = share(completed, duration) if throughput is None else throughput
    asked = loop(rate, cap, achieved)
    answered = None if completed is None else completed - empty
    level = Level(
        arrival=asked.arrival,
        load=asked.load,
        tok_per_sec=tok_per_sec,
        duration_s=duration,
        sent=ended(answered, failed),
        completed=answered,
        failed=failed,
        requests_per_sec=achieved,
        input_tokens=share(document["total_input_tokens"].number(), completed),
        output_tokens=output_tokens,
        ttft=spreads["ttft"],
        tpot=spreads["tpot"],
        e2e=spreads["e2e_latency"],
        streamed=streamed(spreads["ttft"], spreads["tpot"], spreads["e2e_latency"], output_tokens),
        warnings=tuple(_warnings(asked, failed, empty)),
    )
    yield FilePoint(
        tool=TOOL,
        level=level,
        model=document.first("model", "model_id").text(),
        concurrency=cap,
        request_rate_target=rate,
        output_tok_s=tok_per_sec,
        total_tok_s=document.first("total_throughput", "total_token_throughput").number(),
        itl=spreads["itl"],
        said=_said(document, level, derived),
    )


def _failed(single: Details | None, completed: int | None) -> tuple[int | None, int]:
    """Failed requests, empty answers among them, and these: from single requests, which are all there."""
    if single is None or single.requests is None or completed is None or completed > single.requests:
        return None, 0
    empty = min(single.empty, completed)
    return max(single.failed or 0, single.requests - completed) + empty, empty


def _warnings(asked: Loop, failed: int | None, empty: int) -> Iterator[str]:
    if asked.warning:
        yield asked.warning
    if failed is None:
        yield "SGLang does not tell how many requests failed"
    if empty:
        yield f"{empty:,} empty answers were counted as completed; they count as failed here"


def _said(document: Node, level: Level, derived: list[str]) -> dict[str, Any]:
    shape = [document["random_input_len"].count(), document["random_output_len"].count()]
    in_flight = document["concurrency"].number()
    return {
        **({"shape": shape} if None not in shape else {}),
        **({"concurrency_mean": in_flight} if in_flight is not None else {}),
        **({"derived_from_detail": derived} if derived else {}),
        **({"saturated": True} if saturated(level) else {}),
    }
