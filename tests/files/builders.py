"""Small result files of every kind, of our own making: what each load generator would have written.

All describe one run unless a test changes it: 80 requests in 10 s, 32 tokens each, 256 tok/s, TTFT 40 ms
(p95 60, p99 70), TPOT 28 ms (p95 29, p99 30), end to end 908 ms (p95 959, p99 1,000), eight streams.
"""

from __future__ import annotations

import json
from typing import Any

from sizing.measuring.files import FilePoint, FileResult, read_results


def read(document: Any, name: str = "result.json") -> FileResult:
    """What the readers make of a document: text as it stands, bytes too, anything else as JSON."""
    if isinstance(document, bytes):
        return read_results(name, document)
    text = document if isinstance(document, str) else json.dumps(document)
    return read_results(name, text.encode())


def only(document: Any) -> FilePoint:
    """The one point of a document that can be read."""
    result = read(document)
    assert result.error is None, result.error
    (point,) = result.points
    return point


def vllm(**changes: Any) -> dict[str, Any]:
    return {
        "date": "20261130-120000",
        "backend": "openai-chat",
        "model_id": "sim-8b",
        "tokenizer_id": "tok",
        "num_prompts": 80,
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": 8,
        "duration": 10.0,
        "completed": 80,
        "failed": 0,
        "total_input_tokens": 5120,
        "total_output_tokens": 2560,
        "request_throughput": 8.0,
        "request_goodput": None,
        "output_throughput": 256.0,
        "total_token_throughput": 768.0,
        "mean_ttft_ms": 42.0,
        "median_ttft_ms": 40.0,
        "p95_ttft_ms": 60.0,
        "p99_ttft_ms": 70.0,
        "mean_tpot_ms": 28.0,
        "median_tpot_ms": 28.0,
        "p95_tpot_ms": 29.0,
        "p99_tpot_ms": 30.0,
        "mean_itl_ms": 28.0,
        "median_itl_ms": 28.0,
        "p95_itl_ms": 40.0,
        "p99_itl_ms": 50.0,
        **changes,
    }


def inferencex(**changes: Any) -> dict[str, Any]:
    return {
        "model_id": "sim-8b",
        "num_prompts": 80,
        "request_rate": "inf",
        "max_concurrency": 8,
        "duration": 10.0,
        "completed": 80,
        "total_input_tokens": 5120,
        "total_output_tokens": 2560,
        "request_throughput": 8.0,
        "output_throughput": 256.0,
        "median_ttft": 0.04,
        "p99_ttft": 0.07,
        "median_tpot": 0.028,
        "p99_tpot": 0.03,
        "median_e2el": 0.908,
        "p99_e2el": 1.0,
        **changes,
    }


def sglang(**changes: Any) -> dict[str, Any]:
    return {
        "backend": "sglang",
        "dataset_name": "random",
        "request_rate": 8.0,
        "max_concurrency": None,
        "random_input_len": 64,
        "random_output_len": 32,
        "duration": 10.0,
        "completed": 80,
        "total_input_tokens": 5120,
        "total_output_tokens": 2560,
        "total_output_tokens_retokenized": 4900,
        "request_throughput": 8.0,
        "output_throughput": 256.0,
        "mean_e2e_latency_ms": 908.0,
        "median_e2e_latency_ms": 908.0,
        "median_ttft_ms": 40.0,
        "p99_ttft_ms": 70.0,
        "median_tpot_ms": 28.0,
        "p99_tpot_ms": 30.0,
        "median_itl_ms": 27.0,
        "concurrency": 7.3,
        **changes,
    }


def distribution(mean: float, p95: float, p99: float, count: int = 80) -> dict[str, Any]:
    """GuideLLM's summary of one metric over one outcome."""
    percentiles = {"p50": mean, "p90": p95, "p95": p95, "p99": p99}
    return {"mean": mean, "median": mean, "count": count, "max": p99, "percentiles": percentiles}


def by_outcome(successful: dict[str, Any], total: dict[str, Any] | None = None) -> dict[str, Any]:
    nothing = distribution(0.0, 0.0, 0.0, count=0)
    return {
        "successful": successful,
        "errored": nothing,
        "incomplete": nothing,
        "total": total or successful,
    }


def guidellm_benchmark(**changes: Any) -> dict[str, Any]:
    return {
        "type_": "generative_benchmark",
        "config": {
            "strategy": {"type_": "concurrent", "streams": 8, "max_concurrency": 8},
            "backend": {"model": "sim-8b", "stream": True},
        },
        "scheduler_metrics": {"requests_made": {"successful": 80, "errored": 0, "incomplete": 3}},
        "metrics": {
            "request_totals": {"successful": 80, "errored": 0, "incomplete": 2, "total": 82},
            "requests_per_second": by_outcome(distribution(8.0, 9.0, 9.0)),
            "request_concurrency": by_outcome(distribution(7.4, 8.0, 8.0)),
            "request_latency": by_outcome(distribution(0.908, 0.959, 1.0)),
            "prompt_token_count": by_outcome(distribution(64.0, 64.0, 64.0)),
            "output_token_count": by_outcome(distribution(32.0, 32.0, 32.0)),
            "time_to_first_token_ms": by_outcome(distribution(40.0, 60.0, 70.0)),
            "inter_token_latency_ms": by_outcome(distribution(28.0, 29.0, 30.0)),
            "time_per_output_token_ms": by_outcome(distribution(28.4, 29.9, 31.0)),
            "output_tokens_per_second": by_outcome(
                distribution(250.0, 1.0, 1.0), distribution(256.0, 1.0, 1.0)
            ),
            "tokens_per_second": by_outcome(distribution(760.0, 1.0, 1.0), distribution(768.0, 1.0, 1.0)),
        },
        "requests": {"successful": [{"output": "many words"}], "errored": [], "incomplete": []},
        "duration": 10.0,
        **changes,
    }


def guidellm(*benchmarks: dict[str, Any], version: int = 2) -> dict[str, Any]:
    metadata = {"version": version, "guidellm_version": "0.8.1"}
    return {"metadata": metadata, "benchmarks": list(benchmarks) or [guidellm_benchmark()]}


def guidellm_0_2(**changes: Any) -> dict[str, Any]:
    """As 0.2 wrote it: no metadata, the strategy in `args`, the model at the worker, no p50."""
    benchmark = guidellm_benchmark()
    metrics = benchmark["metrics"]
    del metrics["request_totals"]
    for metric in metrics.values():
        for outcome in metric.values():
            outcome["percentiles"].pop("p50", None)
    return {
        "benchmarks": [
            {
                "type_": "generative_benchmark",
                "args": {"strategy": {"type_": "constant", "rate": 8.0, "max_concurrency": None}},
                "worker": {"backend_model": "sim-8b"},
                "request_totals": {"successful": 80, "errored": 0, "incomplete": 2},
                "metrics": metrics,
                "duration": 10.0,
                **changes,
            }
        ]
    }


def metric(unit: str, avg: float, p95: float | None = None, p99: float | None = None) -> dict[str, Any]:
    """AIPerf's and genai-perf's form of one metric."""
    if p95 is None:
        return {"unit": unit, "avg": avg}
    return {"unit": unit, "avg": avg, "p50": avg, "p90": p95, "p95": p95, "p99": p99}


def aiperf(**changes: Any) -> dict[str, Any]:
    return {
        "schema_version": "1.4",
        "aiperf_version": "0.13.0",
        "request_count": metric("requests", 80.0),
        "request_throughput": metric("requests/sec", 8.0),
        "request_latency": metric("ms", 908.0, 959.0, 1000.0),
        "time_to_first_token": metric("ms", 40.0, 60.0, 70.0),
        "inter_token_latency": metric("ms", 28.0, 29.0, 30.0),
        "inter_chunk_latency": metric("ms", 112.0, 115.0, 118.0),
        "output_token_throughput": metric("tokens/sec", 256.0),
        "total_token_throughput": metric("tokens/sec", 768.0),
        "output_sequence_length": metric("tokens", 32.0),
        "input_sequence_length": metric("tokens", 64.0),
        "total_usage_completion_tokens": metric("tokens", 2560.0),
        "benchmark_duration": metric("sec", 10.0),
        "was_cancelled": False,
        "is_complete": True,
        "error_summary": [],
        "input_config": {
            "models": {"items": [{"name": "sim-8b"}]},
            "endpoint": {"streaming": True},
            "datasets": [{"prompts": {"osl": {"mean": 32.0}}}],
            "phases": [
                {"kind": "warmup", "type": "concurrency", "concurrency": 2},
                {"kind": "profiling", "type": "concurrency", "concurrency": 8},
            ],
        },
        **changes,
    }


def genai_perf(**changes: Any) -> dict[str, Any]:
    return {
        "request_throughput": metric("requests/sec", 8.0),
        "request_latency": metric("ms", 908.0, 959.0, 1000.0),
        "request_count": metric("count", 80.0),
        "time_to_first_token": metric("ms", 40.0, 60.0, 70.0),
        "inter_token_latency": metric("ms", 28.0, 29.0, 30.0),
        "output_token_throughput": metric("tokens/sec", 256.0),
        "output_sequence_length": metric("tokens", 32.0),
        "input_sequence_length": metric("tokens", 64.0),
        "input_config": {
            "model_names": ["sim-8b"],
            "endpoint": {"streaming": True},
            "perf_analyzer": {"stimulus": {"concurrency": 8}},
            "input": {"output_tokens": {"mean": 32}},
        },
        **changes,
    }


def seconds(mean: float, p95: float, p99: float) -> dict[str, float]:
    return {"mean": mean, "median": mean, "p90": p95, "p95": p95, "p99": p99}


def inference_perf(**changes: Any) -> dict[str, Any]:
    return {
        "benchmark_time_seconds": 10.0,
        "load_summary": {
            "count": 80,
            "schedule_delay": {"mean": 0.0, "p95": 0.002},
            "requested_rate": 8.2,
            "achieved_rate": 8.1,
        },
        "successes": {
            "count": 80,
            "latency": {
                "request_latency": seconds(0.908, 0.959, 1.0),
                "time_to_first_token": seconds(0.04, 0.06, 0.07),
                "time_per_output_token": seconds(0.028, 0.029, 0.03),
                "inter_token_latency": seconds(0.027, 0.04, 0.05),
            },
            "throughput": {
                "output_tokens_per_sec": 256.0,
                "total_tokens_per_sec": 768.0,
                "requests_per_sec": 8.0,
            },
            "prompt_tokens": {"mean": 64.0},
            "output_len": {"mean": 32.0},
            "output_tokens": {"total": 2560.0, "mean": 32.0},
            "client_fallback_requests": {"output": 0},
        },
        "failures": {"count": 0, "by_label": {}},
        **changes,
    }


def llmperf(**changes: Any) -> dict[str, Any]:
    flat = {
        "version": "2023-08-31",
        "model": "sim-8b",
        "num_concurrent_requests": 8,
        "results_ttft_s_mean": 0.04,
        "results_inter_token_latency_s_mean": 0.0284,
        "results_end_to_end_latency_s_mean": 0.908,
        "results_number_input_tokens_mean": 64.0,
        "results_number_output_tokens_mean": 32.0,
        "results_number_output_tokens_min": "32",
        "results_mean_output_throughput_token_per_s": 256.0,
        "results_num_completed_requests": 80,
        "results_num_completed_requests_per_min": 480.0,
        "results_number_errors": 0,
    }
    quantiles = {"ttft": (0.04, 0.06, 0.07), "inter_token_latency": (0.0284, 0.0294, 0.031)}
    for name, (p50, p95, p99) in quantiles.items():
        for percentile, value in (("p50", p50), ("p90", p95), ("p95", p95), ("p99", p99)):
            flat[f"results_{name}_s_quantiles_{percentile}"] = value
    return {**flat, **changes}


VLLM_CONSOLE = """\
Traffic request rate: inf
Maximum request concurrency: 8
100%|##########| 80/80 [00:10<00:00,  8.00it/s]
============ Serving Benchmark Result ============
Successful requests:                     80
Failed requests:                         0
Maximum request concurrency:             8
Benchmark duration (s):                  10.00
Total input tokens:                      5120
Total generated tokens:                  2560
Request throughput (req/s):              8.00
Output token throughput (tok/s):         256.00
Total Token throughput (tok/s):          768.00
---------------Time to First Token----------------
Mean TTFT (ms):                          42.00
Median TTFT (ms):                        40.00
P95 TTFT (ms):                           60.00
P99 TTFT (ms):                           70.00
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          28.00
Median TPOT (ms):                        28.00
P95 TPOT (ms):                           29.00
P99 TPOT (ms):                           30.00
==================================================
Mean TTFT (ms):                          9999.00
"""

SGLANG_CONSOLE = """\
============ Serving Benchmark Result ============
Backend:                                 sglang
Traffic request rate:                    8.0
Max reqeust concurrency:                 not set
Successful requests:                     80
Benchmark duration (s):                  10.00
Total input tokens:                      5120
Total generated tokens:                  2560
Total generated tokens (retokenized):    4900
Request throughput (req/s):              8.00
Output token throughput (tok/s):         256.00
Concurrency:                             7.30
----------------End-to-End Latency----------------
Mean E2E Latency (ms):                   908.00
Median E2E Latency (ms):                 908.00
---------------Time to First Token----------------
Mean TTFT (ms):                          42.00
Median TTFT (ms):                        40.00
P99 TTFT (ms):                           70.00
==================================================
"""

ALL: dict[str, Any] = {
    "vllm": vllm(),
    "inferencex": inferencex(),
    "sglang": sglang(),
    "guidellm": guidellm(),
    "guidellm 0.2": guidellm_0_2(),
    "aiperf": aiperf(),
    "genai-perf": genai_perf(),
    "inference-perf": inference_perf(),
    "llmperf": llmperf(),
    "vllm console": VLLM_CONSOLE,
    "sglang console": SGLANG_CONSOLE,
}
