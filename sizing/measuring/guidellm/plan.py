"""What GuideLLM is told to do for one level."""

from __future__ import annotations

from math import ceil, inf
from typing import Any

from sizing.domain.levels import CONCURRENCY, WILSON_Z, Slo
from sizing.measuring.guidellm.target import Target
from sizing.measuring.seam import Endpoint, Limits, Load, Workload

PROMPTS, REPORT = "prompts.jsonl", "report.json"

ENOUGH_REQUESTS = 10
"""What a level needs that does not decide the search."""

LEAST_MEASURED_S = 5.0
POISSON_SPARE = 1.3
"""Fewer arrivals than planned can come."""

FASTEST_TOKEN_S = 0.002
MOST_ERRORS = 0.1
"""GuideLLM ends a level in which this share of the last 30 requests failed."""


def level_seconds(workload: Workload, load: Load, limits: Limits) -> float:
    """How long a level is loaded, warm-up included: GuideLLM has to know before it starts.

    Long enough for the requests that are needed where they meet the SLO; one that fails it takes longer,
    and shows that with fewer. Where the SLO does not bound the time of a request: as long as allowed.
    """
    needed = _resolving_requests(limits.slo.percentile) if limits.thorough else ENOUGH_REQUESTS
    longest = _longest_conforming_s(limits.slo, workload.output_tokens)
    if longest is None:
        return limits.seconds
    if load.arrival == CONCURRENCY:
        measured = (needed / load.value + 1) * longest
    else:
        measured = POISSON_SPARE * needed / load.value + longest
    return min(limits.seconds, limits.warmup_s + max(measured, LEAST_MEASURED_S))


def _resolving_requests(percentile: float) -> float:
    """How many requests without a violation prove a percentile at 95 %, by Wilson's interval: 73 for p95."""
    return ceil(WILSON_Z**2 * percentile / (100 - percentile)) if percentile < 100 else inf


def _longest_conforming_s(slo: Slo, output_tokens: int) -> float | None:
    bounds = [] if slo.e2e_ms is None else [slo.e2e_ms]
    if slo.ttft_ms is not None and slo.itl_ms is not None:
        bounds.append(slo.ttft_ms + slo.itl_ms * (output_tokens - 1))
    return min(bounds) / 1000 if bounds else None


def most_requests(workload: Workload, load: Load, limits: Limits, seconds: float) -> int:
    """How many requests can be sent at most, so that no prompt has to be sent twice."""
    if load.arrival == CONCURRENCY:
        sent = load.value * (1 + seconds / (FASTEST_TOKEN_S * workload.output_tokens))
    else:
        sent = 10 + 2 * load.value * seconds
    return min(limits.requests, int(sent) + 1)


def scenario(
    endpoint: Endpoint, target: Target, workload: Workload, load: Load, limits: Limits, seconds: float
) -> dict[str, Any]:
    """The level as GuideLLM's configuration; it holds the key, so keep it from other eyes."""
    profile: dict[str, Any] = {"kind": "poisson", "rate": [load.value]}
    if load.arrival == CONCURRENCY:
        profile = {"kind": "concurrent", "streams": [int(load.value)]}
    return {
        "backend": {
            "kind": "openai_http",
            "target": target.server,
            "model": endpoint.model,
            "request_format": "/v1/chat/completions",
            "api_routes": {"/v1/chat/completions": f"{target.path}/chat/completions".lstrip("/")},
            "api_key": endpoint.key or None,
            "extras": {
                "headers": {"Host": target.host},
                "body": {"max_tokens": workload.output_tokens, **workload.extras},
            },
            "timeout": limits.request_s,
            "http2": False,
            "verify": True,
            "follow_redirects": False,
            "validate_backend": False,
        },
        "data": [{"kind": "json_file", "path": PROMPTS}],
        "profile": profile | {"warmup": {"value": limits.warmup_s, "mode": "duration"}},
        "constraints": [
            {"kind": "max_duration", "seconds": seconds},
            {"kind": "max_requests", "count": limits.requests},
            {"kind": "max_error_rate", "rate": MOST_ERRORS},
        ],
        "seed": {"kind": "static", "value": workload.seed % 2**31},
        "metrics": {
            "kind": "generative",
            "sample_size": 0,
            "slo": _objectives(limits.slo),
            "warnings": [],  # levels are judged here
        },
        "outputs": [{"kind": "json", "path": REPORT}],
    }


def _objectives(slo: Slo) -> dict[str, float] | None:
    limits = {"ttft_ms": slo.ttft_ms, "tpot_ms": slo.itl_ms, "e2el_ms": slo.e2e_ms}
    return {name: limit for name, limit in limits.items() if limit is not None} or None
