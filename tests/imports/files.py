"""Result files of an import's own making: vLLM's and others', one load point each.

Unless changed a level passes p95 TTFT 500 ms and p95 TPOT 50 ms, with 80 requests of 64 and 32 tokens.
"""

from __future__ import annotations

import json
from typing import Any

from sizing.domain.levels import CONCURRENCY, POISSON, Slo
from sizing.measuring.importing import Asked, ReadFile, read_file
from tests.files import builders

SLO = Slo(ttft_ms=500.0, itl_ms=50.0, percentile=95.0)
CHAT = Asked("chat", 64, 32, SLO, POISSON)
LOOPED = Asked("looped", 64, 32, SLO, CONCURRENCY)


def streams(count: int, tok_per_sec: float, **changes: Any) -> dict[str, Any]:
    """vLLM's file of a closed loop."""
    rate = tok_per_sec / 32
    figures = {"output_throughput": tok_per_sec, "request_throughput": rate, "max_concurrency": count}
    return builders.vllm(**(figures | changes))


def rate(rate: float, tok_per_sec: float, **changes: Any) -> dict[str, Any]:
    """vLLM's file of an open loop."""
    return streams(0, tok_per_sec, **({"request_rate": rate, "max_concurrency": None} | changes))


def slow(document: dict[str, Any]) -> dict[str, Any]:
    """The same level, but its TTFT is beyond the limit."""
    return document | {"median_ttft_ms": 800.0, "p95_ttft_ms": 900.0, "p99_ttft_ms": 950.0}


def untold(document: dict[str, Any]) -> dict[str, Any]:
    """The same level without any percentile that tells of the SLO."""
    return {key: value for key, value in document.items() if not key.startswith(("p95_", "p99_"))}


def read(**documents: Any) -> list[ReadFile]:
    """Files by name, without `.json`: text as it stands, anything else as JSON."""
    return [
        read_file(f"{name}.json", (found if isinstance(found, str) else json.dumps(found)).encode())
        for name, found in documents.items()
    ]
