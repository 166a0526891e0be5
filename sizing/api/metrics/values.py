"""The values of the metrics now, in the form that Prometheus reads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import accumulate

from django.db.models import Count, Max
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from sizing import tally
from sizing.api.metrics.table import COUNTER, HISTOGRAM, METRICS
from sizing.models import Gpu, InventoryChange, Node, Refresh, Replica
from sizing.services.watching import broker, capacity, disk, waiting, workers
from sizing.syncing import state as sync_state

Value = tuple[str, float]


class _Values(Collector):
    """Values by name, each with the labels of its metric in their order."""

    def __init__(self) -> None:
        self._gauges: dict[str, list[tuple[tuple[str, ...], float]]] = {}
        self._sums = tally.totals()

    def tell(self, name: str, value: float, *labels: str) -> None:
        """One value of a gauge."""
        assert len(labels) == len(METRICS[name].labels), name
        self._gauges.setdefault(name, []).append((labels, float(value)))

    def collect(self) -> Iterator[Metric]:
        for name, metric in METRICS.items():
            if metric.kind == COUNTER:
                yield self._counter(name)
            elif metric.kind == HISTOGRAM:
                yield self._histogram(name)
            else:
                family = GaugeMetricFamily(name, metric.meaning, labels=metric.labels)
                for labels, value in self._gauges.get(name, ()):
                    family.add_metric(labels, value)
                yield family

    def _counter(self, name: str) -> Metric:
        family = CounterMetricFamily(name, METRICS[name].meaning, labels=METRICS[name].labels)
        found = {labels: value for (counted, labels), value in self._sums.counts.items() if counted == name}
        if not METRICS[name].labels:
            found.setdefault((), 0.0)  # else the first count of a process is no increase
        for labels, value in sorted(found.items()):
            family.add_metric([text for _, text in labels], value)
        return family

    def _histogram(self, name: str) -> Metric:
        family = HistogramMetricFamily(name, METRICS[name].meaning, labels=METRICS[name].labels)
        bounds = [*map(str, tally.BOUNDS_S), "+Inf"]
        for (counted, labels), values in sorted(self._sums.times.items()):
            if counted == name:
                buckets = list(zip(bounds, accumulate(values[:-1]), strict=True))
                family.add_metric([text for _, text in labels], buckets, sum_value=values[-1])
        return family


def exposition() -> bytes:
    """Everything in the text form. So many queries, however large the fleet: none for a row."""
    values = _Values()
    _fleet(values)
    _capacity(values)
    _background(values)
    space = disk.look()
    values.tell("llmgw_data_size_bytes", space.size)
    values.tell("llmgw_data_free_bytes", space.free)
    registry = CollectorRegistry()
    registry.register(values)
    return generate_latest(registry)


def _fleet(values: _Values) -> None:
    values.tell("llmgw_nodes", Node.objects.count())
    values.tell("llmgw_gpus", Gpu.objects.count())
    counts = dict(Replica.objects.order_by().values_list("state").annotate(number=Count("pk")))
    for state in Replica.State.values:
        values.tell("llmgw_replicas", counts.get(state, 0), state)
    revision = InventoryChange.objects.aggregate(last=Max("id"))["last"]
    values.tell("llmgw_inventory_revision", revision or 0)
    cluster = sync_state.look()
    if cluster.configured:
        values.tell("llmgw_cluster_failures", cluster.failures)
    if cluster.seen_age_s is not None:
        values.tell("llmgw_cluster_seen_seconds", cluster.seen_age_s)


def _capacity(values: _Values) -> None:
    found = capacity.numbers()
    values.tell("llmgw_snapshot_age_seconds", found.age_s)
    for model in found.models:
        values.tell("llmgw_model_current_replicas", model.current, model.model)
        values.tell("llmgw_model_measured", model.measured is not None, model.model)
        if (measured := model.measured) is not None:
            labels = (model.model, measured.variant, measured.profile)
            values.tell("llmgw_model_free_room_replicas", measured.free_room, *labels)
            values.tell("llmgw_model_replica_tokens_per_second", measured.tok_per_sec, *labels)
            values.tell("llmgw_model_current_tokens_per_second", measured.current_tok_per_sec, *labels)
    for one in found.measurements:
        labels = (one.model, one.variant, one.profile)
        values.tell("llmgw_measurement_age_seconds", one.age_s, *labels)
        values.tell("llmgw_measurement_stale", one.stale, *labels)
    for state, number in found.kinds.items():
        values.tell("llmgw_targets", number, state)
    for target in found.targets:
        of = (str(target.pk), target.model, target.variant, target.profile)
        values.tell("llmgw_target_tokens_per_second", target.tok_per_sec, *of)
        values.tell("llmgw_target_needed_replicas", target.needed, *of)
        values.tell("llmgw_target_current_replicas", target.current, *of)
        values.tell("llmgw_target_missing_replicas", target.missing, *of)
        values.tell("llmgw_target_free_room_replicas", target.free_room, *of)
        values.tell("llmgw_target_fits", math.nan if target.fits is None else target.fits, *of)


def _background(values: _Values) -> None:
    counts = dict(Refresh.objects.order_by().values_list("state").annotate(number=Count("pk")))
    for state in Refresh.State.values:
        values.tell("llmgw_refreshes", counts.get(state, 0), state)
    for state, number in waiting.of_last_day().items():
        values.tell("llmgw_refreshes_last_day", number, state)
    for queue in waiting.waiting():
        values.tell("llmgw_queue_waiting", queue.number, queue.queue)
        values.tell("llmgw_queue_oldest_seconds", queue.oldest_s, queue.queue)
    found = workers.workers()
    _each(values, "llmgw_workers", workers.serving(found).items())
    for worker in found:
        values.tell("llmgw_worker_seen_seconds", max(worker.silent_for.total_seconds(), 0.0), worker.name)
    at_broker = broker.look()
    values.tell("llmgw_broker_up", at_broker.up)
    _each(values, "llmgw_broker_messages", at_broker.messages.items())


def _each(values: _Values, name: str, pairs: Iterable[Value]) -> None:
    for label, value in pairs:
        values.tell(name, value, label)
