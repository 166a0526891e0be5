"""LLMPerf's summary: one flat object in seconds, a closed loop.

Its inter-token latency is the end-to-end time by all tokens, so it contains the first one and is above
TPOT wherever TTFT is. Tokens are counted by Llama's tokenizer, whatever the model.
"""

from __future__ import annotations

from collections.abc import Iterator

from sizing.domain.levels import CONCURRENCY, Level, Spread
from sizing.measuring.files.points import FilePoint
from sizing.measuring.files.values import Node, ended, scaled, spread, streamed

TOOL = "llmperf"

_PERCENTILES = (50, 90, 95, 99)


def matches(document: Node) -> bool:
    return any(key.startswith("results_ttft_s_") for key in document.names())


def read(document: Node) -> Iterator[FilePoint]:
    completed = document["results_num_completed_requests"].count()
    failed = document["results_number_errors"].count()
    ttft = _latency(document, "ttft")
    tpot = _latency(document, "inter_token_latency")
    e2e = _latency(document, "end_to_end_latency")
    output_tokens = document["results_number_output_tokens_mean"].number()
    tok_per_sec = document["results_mean_output_throughput_token_per_s"].number()
    streams = document["num_concurrent_requests"].number()
    level = Level(
        arrival=CONCURRENCY,
        load=streams,
        tok_per_sec=tok_per_sec,
        sent=ended(completed, failed),
        completed=completed,
        failed=failed,
        requests_per_sec=scaled(document["results_num_completed_requests_per_min"].number(), 1 / 60),
        input_tokens=document["results_number_input_tokens_mean"].number(),
        output_tokens=output_tokens,
        ttft=ttft,
        tpot=tpot,
        e2e=e2e,
        streamed=streamed(ttft, tpot, e2e, output_tokens),
        warnings=(
            "LLMPerf's inter-token latency contains the first token, so TPOT is lower",
            "tokens were counted by Llama's tokenizer, not by the server",
        ),
    )
    yield FilePoint(
        tool=TOOL,
        level=level,
        model=document["model"].text(),
        concurrency=streams,
        output_tok_s=tok_per_sec,
    )


def _latency(document: Node, name: str) -> Spread:
    key = f"results_{name}_s"
    at = [(float(p), document[f"{key}_quantiles_p{p}"]) for p in _PERCENTILES]
    return spread(document[f"{key}_mean"], at, 1000.0)
