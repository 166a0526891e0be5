"""The `/metrics` of a simulated replica, by vLLM's names."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from sizing.measuring.simulated.engine import Engine
from sizing.measuring.simulated.ledger import TTFT_BUCKETS_S, Ledger

METRICS_TYPE = CONTENT_TYPE_LATEST


class _Numbers(Collector):
    def __init__(self, model: str, engine: Engine, ledger: Ledger, started_at: float) -> None:
        self._model = model
        self._engine = engine
        self._ledger = ledger
        self._started_at = started_at

    def collect(self) -> Iterator[Metric]:
        ledger, totals = self._ledger, self._ledger.totals
        yield GaugeMetricFamily("process_start_time_seconds", "Start, Unix time", value=self._started_at)
        yield self._gauge("vllm:num_requests_running", "Requests in the batch", len(self._engine.running))
        yield self._gauge("vllm:num_requests_waiting", "Requests in the queue", len(self._engine.waiting))
        yield self._counter("vllm:prompt_tokens", "Prompt tokens prefilled", totals.prompt_tokens)
        yield self._counter("vllm:generation_tokens", "Tokens generated", totals.generation_tokens)
        yield self._counter("vllm:prefix_cache_queries", "Prompt tokens looked up", totals.cache_queries)
        yield self._counter("vllm:prefix_cache_hits", "Prompt tokens found", totals.cache_hits)
        success = CounterMetricFamily(
            "vllm:request_success", "Requests that ended", labels=["model_name", "finished_reason"]
        )
        success.add_metric([self._model, "length"], totals.done + totals.foreign_done)
        success.add_metric([self._model, "abort"], totals.cut)
        yield success
        ttft = HistogramMetricFamily(
            "vllm:time_to_first_token_seconds", "Time to first token", labels=["model_name"]
        )
        bounds = [*map(str, TTFT_BUCKETS_S), "+Inf"]
        buckets = list(zip(bounds, accumulate(ledger.ttft_counts), strict=True))
        ttft.add_metric([self._model], buckets, ledger.ttft_sum_s)
        yield ttft

    def _gauge(self, name: str, about: str, value: float) -> Metric:
        family = GaugeMetricFamily(name, about, labels=["model_name"])
        family.add_metric([self._model], value)
        return family

    def _counter(self, name: str, about: str, value: float) -> Metric:
        family = CounterMetricFamily(name, about, labels=["model_name"])
        family.add_metric([self._model], value)
        return family


class Metrics:
    """The page of numbers."""

    def __init__(self, model: str, engine: Engine, ledger: Ledger, started_at: float) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Numbers(model, engine, ledger, started_at))

    def text(self) -> bytes:
        return generate_latest(self._registry)
