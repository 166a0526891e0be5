"""`vllm bench serve` and its fork InferenceX: one flat object a load point.

vLLM's latencies are in ms under names that end in `_ms`; InferenceX has the same names without it, in
seconds. A rate of "inf" with a cap on concurrency is a closed loop. Where all requests failed every
latency is written as 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isinf
from typing import Any

from sizing.domain.levels import CONCURRENCY, POISSON, Level, Spread
from sizing.measuring.files.latencies import Details, completed_by, details, flat, names
from sizing.measuring.files.points import FilePoint
from sizing.measuring.files.values import Node, ended, scaled, share, streamed

VLLM, INFERENCEX = "vllm bench serve", "InferenceX"

SEVERAL_TOKENS = 1.25
"""Above this ratio of the gap between chunks to TPOT, a chunk is not a token."""

SATURATED_SHARE = 0.9
"""An achieved rate below this share of the asked one, with all requests sent, is saturation."""


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
    level = Level(
        arrival=arrival(rate, cap),
        load=load(rate, cap),
        tok_per_sec=tok_per_sec,
        duration_s=document["duration"].number(),
        sent=ended(completed, failed),
        completed=None if completed is None else completed - min(empty, completed),
        failed=None if failed is None else failed + empty,
        requests_per_sec=document["request_throughput"].number(),
        delay_p95_s=_delay(document, rate),
        input_tokens=share(document["total_input_tokens"].number(), completed),
        output_tokens=output_tokens,
        ttft=spreads["ttft"],
        tpot=spreads["tpot"],
        e2e=spreads["e2el"],
        streamed=streamed(spreads["ttft"], spreads["tpot"], spreads["e2el"], output_tokens),
        warnings=tuple(_warnings(rate, cap, empty, spreads["tpot"].mean, spreads["itl"].mean)),
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


def arrival(rate: float | None, cap: float | None) -> str | None:
    """Closed loop where only the cap limits; open loop at a rate, or with everything sent at once."""
    if rate is not None and isinf(rate) and cap is not None:
        return CONCURRENCY
    return None if rate is None else POISSON


def load(rate: float | None, cap: float | None) -> float | None:
    """Streams or requests/s as asked; None where everything was sent at once."""
    return cap if rate is None or isinf(rate) else rate


def saturated(level: Level) -> bool:
    """Whether requests came faster than they were answered."""
    asked, achieved = level.load, level.requests_per_sec
    if level.arrival != POISSON or not asked or achieved is None:
        return False
    return achieved < SATURATED_SHARE * asked


def _fill(spreads: dict[str, Spread], single: Details | None) -> list[str]:
    """Add what the values of single requests tell; the names of the percentiles that were derived."""
    if single is None:
        return []
    spreads["ttft"], ttft = completed_by(spreads["ttft"], single.ttft)
    spreads["tpot"], tpot = completed_by(spreads["tpot"], single.tpot)
    spreads["e2el"], _ = completed_by(spreads["e2el"], single.e2e)
    return names([("ttft_ms", ttft), ("tpot_ms", tpot)])


def _delay(document: Node, rate: float | None) -> float | None:
    """How late requests were sent behind a cap, where newer versions say it; closed loops plan nothing."""
    if rate is None or isinf(rate):
        return None
    return scaled(document["p95_client_queue_time_ms"].number(), 0.001)


def _warnings(
    rate: float | None, cap: float | None, empty: int, tpot: float | None, gap: float | None
) -> Iterator[str]:
    if rate is not None and not isinf(rate) and cap is not None:
        yield f"at most {cap:,g} requests at once: the cap may have held requests back"
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
