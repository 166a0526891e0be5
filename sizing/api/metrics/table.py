"""Every metric: its kind, labels and meaning. The only names that `/metrics` can tell stand here.

The table of ``docs/watching.md`` is written from it: ``python -m sizing.api.metrics.table docs/watching.md``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from sizing.marked_part import with_part

BEGIN = "<!-- metrics: written by `python -m sizing.api.metrics.table docs/watching.md` -->"
END = "<!-- end of metrics -->"

GAUGE = "gauge"
COUNTER = "counter"
HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Metric:
    """One metric. `note`: what the table says beyond the meaning that Prometheus shows."""

    name: str
    kind: str
    meaning: str
    labels: tuple[str, ...] = ()
    note: str = ""


_MEASURED = ("model", "variant", "profile")
_TARGET = ("target", "model", "variant", "profile")

GROUPS: dict[str, tuple[Metric, ...]] = {
    "Fleet": (
        Metric("llmgw_nodes", GAUGE, "Nodes"),
        Metric("llmgw_gpus", GAUGE, "GPUs, slices included"),
        Metric("llmgw_replicas", GAUGE, "Replicas by state", ("state",)),
        Metric("llmgw_inventory_revision", GAUGE, "Grows with every change"),
        Metric(
            "llmgw_cluster_failures",
            GAUGE,
            "Failures of the cluster sync in a row",
            note="only where a cluster is followed",
        ),
        Metric(
            "llmgw_cluster_seen_seconds",
            GAUGE,
            "Since the cluster was last seen",
            note="only where a cluster is followed",
        ),
    ),
    "Models": (
        Metric(
            "llmgw_model_current_replicas", GAUGE, "Replicas of the model that serve or start", ("model",)
        ),
        Metric(
            "llmgw_model_measured",
            GAUGE,
            "Whether a question about the model has an answer: 1 or 0",
            ("model",),
        ),
        Metric(
            "llmgw_model_free_room_replicas",
            GAUGE,
            "How many more replicas fit at once",
            _MEASURED,
            "of the variant and profile that answers use where none is named",
        ),
        Metric(
            "llmgw_model_replica_tokens_per_second",
            GAUGE,
            "Output tokens per second of one replica",
            _MEASURED,
        ),
        Metric(
            "llmgw_model_current_tokens_per_second",
            GAUGE,
            "Output tokens per second of all replicas that serve or start",
            _MEASURED,
        ),
        Metric("llmgw_measurement_age_seconds", GAUGE, "Age of the measurement that counts", _MEASURED),
        Metric(
            "llmgw_measurement_stale",
            GAUGE,
            "Whether the measurement that counts is stale: 1 or 0",
            _MEASURED,
            "by age at once, by other causes within five minutes",
        ),
    ),
    "Saved targets": (
        Metric(
            "llmgw_targets",
            GAUGE,
            "Saved targets by how they stand",
            ("state",),
            "served, fits, preempts, blocked, unmeasured, or open: only a long search could tell",
        ),
        Metric(
            "llmgw_target_tokens_per_second", GAUGE, "Output tokens per second that are wished for", _TARGET
        ),
        Metric("llmgw_target_needed_replicas", GAUGE, "Replicas that the target needs", _TARGET),
        Metric("llmgw_target_current_replicas", GAUGE, "Replicas that serve or start", _TARGET),
        Metric("llmgw_target_missing_replicas", GAUGE, "Replicas that are missing", _TARGET),
        Metric("llmgw_target_free_room_replicas", GAUGE, "How many more replicas fit at once", _TARGET),
        Metric(
            "llmgw_target_fits",
            GAUGE,
            "Whether the missing replicas can be had, by stopping others too: 1 or 0",
            _TARGET,
            "NaN where only a long search could tell, which no scrape begins; the target's page does",
        ),
    ),
    "Background work": (
        Metric("llmgw_refreshes", GAUGE, "Measurement runs by state", ("state",)),
        Metric(
            "llmgw_refreshes_last_day",
            GAUGE,
            "Measurement runs asked for within a day, by state",
            ("state",),
        ),
        Metric("llmgw_queue_waiting", GAUGE, "What waits for a worker, by its rows", ("queue",)),
        Metric("llmgw_queue_oldest_seconds", GAUGE, "For how long the first of them has waited", ("queue",)),
        Metric("llmgw_workers", GAUGE, "Workers that gave a sign of life within a minute", ("queue",)),
        Metric(
            "llmgw_worker_seen_seconds", GAUGE, "Since a worker's last sign of life", ("worker",), "for a day"
        ),
        Metric("llmgw_broker_up", GAUGE, "Whether the broker can be reached: 1 or 0"),
        Metric("llmgw_broker_messages", GAUGE, "Messages that wait at the broker", ("queue",)),
    ),
    "The desk itself": (
        Metric(
            "llmgw_http_requests_total",
            COUNTER,
            "Requests that were answered",
            ("route", "method", "status"),
            "of all processes of the web server, since it was started",
        ),
        Metric("llmgw_http_request_seconds", HISTOGRAM, "Until an answer began", ("route",), "the same"),
        Metric(
            "llmgw_snapshot_build_seconds",
            HISTOGRAM,
            "Reading the inventory for answers: in whole or in part",
            ("read",),
            "the same",
        ),
        Metric(
            "llmgw_snapshot_age_seconds",
            GAUGE,
            "Since the inventory was read",
            note="of the process that answers; an old snapshot is current for as long as nothing is written",
        ),
        Metric(
            "llmgw_answers_stored_total",
            COUNTER,
            "Answers that were kept to be replayed",
            note="of all processes of the web server, since it was started",
        ),
        Metric("llmgw_answers_dropped_total", COUNTER, "Answers that could not be kept", note="the same"),
        Metric("llmgw_data_size_bytes", GAUGE, "Size of the file system of DATA_DIR"),
        Metric("llmgw_data_free_bytes", GAUGE, "Free space in it"),
    ),
}

METRICS = {metric.name: metric for metrics in GROUPS.values() for metric in metrics}


def markdown() -> str:
    """The table, a row for each metric, the groups as rows in bold."""
    lines = ["| metric | kind | labels | meaning |", "| --- | --- | --- | --- |"]
    for group, metrics in GROUPS.items():
        lines.append(f"| **{group}** | | | |")
        for metric in metrics:
            labels = ", ".join(f"`{label}`" for label in metric.labels)
            meaning = metric.meaning + (f"; {metric.note}" if metric.note else "")
            lines.append(f"| `{metric.name}` | {metric.kind} | {labels} | {meaning} |")
    return "\n".join(lines)


def with_table(document: str) -> str:
    """*document* with the table between its two markers; raises ValueError where they are missing."""
    return with_part(document, BEGIN, END, markdown())


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(with_table(path.read_text(encoding="utf-8")), encoding="utf-8")
