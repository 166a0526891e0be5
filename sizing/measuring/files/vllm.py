"""`vllm bench serve` and its fork InferenceX: one flat object a load point.

vLLM's latencies are in ms under names that end in `_ms`; InferenceX has the same names without it, in
seconds. A rate of "inf" with a cap on concurrency is a closed loop. Where all requests failed every
latency is written as 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sizing.domain.levels import POISSON, Level, Spread
from sizing.measuring.files.latencies import Details, completed_by, details, flat, names
from sizing.measuring.files.loops import REACHED_SHARE, Loop, loop
from sizing.measuring.files.points import FilePoint
from sizing.measuring.files.values import Node, ended, scaled, share, streamed

VLLM, INFERENCEX = "vllm bench serve", "InferenceX"

SEVERAL_TOKENS = 1.25
"""Above this ratio of the gap between chunks to TPOT, a chunk is not a token."""


def matches_vllm(document: Node) -> bool:
    return document.has("model_id", "num_prompts", "median_ttft_ms")


def matches_inferencex(document: Node) -> bool:
    return document.has("model_id", "num_prompts", "median_ttft")


def read_vllm(document: Node) -> Iterator[FilePoint]:
    yield _point(document, VLLM, "_ms", 1.0)


def read_inferencex(document: Node) -> Iterator[FilePoint]:
    yield _point(document, INFERENCEX, "", 1000.0)


def _point(document: Node, tool: str, unit: str, factor: float) -> FilePoint:
    if document["ramp_up_strategy"].there:
        raise document["ramp_up_strategy"].refused("one load level")
    completed, failed = document["completed"].count(), document["failed"].count()
    prompts = document["num_prompts"].count()
    if failed is None and completed is not None and prompts is not None:
        failed = max(prompts - completed, 0)
    spreads = {
        name: flat(document, f"{name}{unit}", factor) if completed else Spread()
        for name in ("ttft", "tpot", "itl", "e2el")
    }
    single = details(document) if completed else None
    derived = _fill(spreads, single)
    empty = single.empty if single else 0
    rate, cap = document["request_rate"].rate(), document["max_concurrency"].number()
    output_tokens = share(document["total_output_tokens"].number(), completed)
    tok_per_sec = document["output_throughput"].number()
    achieved = document["request_throughput"].number()
    asked = loop(rate, cap, achieved)
    level = Level(
        arrival=asked.arrival,
        load=asked.load,
        tok_per_sec=tok_per_sec,
        duration_s=document["duration"].number(),
        sent=ended(completed, failed),
        completed=None if completed is None else completed - min(empty, completed),
        failed=None if failed is None else failed + empty,
        requests_per_sec=achieved,
        delay_p95_s=_delay(document, asked),
        input_tokens=share(document["total_input_tokens"].number(), completed),
        output_tokens=output_tokens,
        ttft=spreads["ttft"],
        tpot=spreads["tpot"],
        e2e=spreads["e2el"],
        streamed=streamed(spreads["ttft"], spreads["tpot"], spreads["e2el"], output_tokens),
        warnings=tuple(_warnings(asked, failed, empty, spreads["tpot"].mean, spreads["itl"].mean)),
    )
    return FilePoint(
        tool=tool,
        level=level,
        model=document["model_id"].text(),
        concurrency=cap,
        request_rate_target=rate,
        output_tok_s=tok_per_sec,
        total_tok_s=document["total_token_throughput"].number(),
        itl=spreads["itl"],
        said=_said(document, level, completed, failed, empty, derived),
    )


def saturated(level: Level) -> bool:
    """Whether requests came faster than they were answered."""
    asked, achieved = level.load, level.requests_per_sec
    if level.arrival != POISSON or not asked or achieved is None:
        return False
    return achieved < REACHED_SHARE * asked


def _fill(spreads: dict[str, Spread], single: Details | None) -> list[str]:
    """Add what the values of single requests tell; the names of the percentiles that were derived."""
    if single is None:
        return []
    spreads["ttft"], ttft = completed_by(spreads["ttft"], single.ttft)
    spreads["tpot"], tpot = completed_by(spreads["tpot"], single.tpot)
    spreads["e2el"], _ = completed_by(spreads["e2el"], single.e2e)
    return names([("ttft_ms", ttft), ("tpot_ms", tpot)])


def _delay(document: Node, asked: Loop) -> float | None:
    """How late requests were sent behind a cap, where newer versions say it; closed loops plan nothing."""
    if asked.arrival != POISSON or asked.load is None:
        return None
    return scaled(document["p95_client_queue_time_ms"].number(), 0.001)


def _warnings(
    asked: Loop, failed: int | None, empty: int, tpot: float | None, gap: float | None
) -> Iterator[str]:
    if asked.warning:
        yield asked.warning
    if failed is None:
        yield "how many requests failed is not told"
    if empty:
        yield f"{empty:,} empty answers were counted as completed; they count as failed here"
    if tpot and gap and gap > SEVERAL_TOKENS * tpot:
        yield (
            f"a chunk brings {gap / tpot:.3g} tokens on average: either the server sends several at once, "
            "or it sent no counts and the client's tokenizer counted more than there were"
        )


def _said(
    document: Node, level: Level, completed: int | None, failed: int | None, empty: int, derived: list[str]
) -> dict[str, Any]:
    """Further values, those that are there. Requests are counted as the file counts them."""
    goodput = document.first("request_goodput", "request_goodput:").number()
    return {
        "completed": completed,
        "failed": failed,
        **({"empty": empty} if empty else {}),
        **({"request_goodput": goodput} if goodput is not None else {}),
        **({"derived_from_detail": derived} if derived else {}),
        **({"saturated": True} if saturated(level) else {}),
    }
