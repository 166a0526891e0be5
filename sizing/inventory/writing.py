"""A document in the form of the inventory file: in one canonical order, as YAML or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sizing.inventory.document import (
    VERSION,
    Document,
    GpuEntry,
    MeasurementEntry,
    ModelEntry,
    NodeEntry,
    ProfileEntry,
    ReplicaEntry,
    TargetEntry,
    VariantEntry,
)
from sizing.inventory.fields import plain_decimal
from sizing.inventory.scheduling import taints_form, tolerations_form


def form(document: Document) -> dict[str, Any]:
    """The file's form: names sorted, variants by preference, measurements by time, then as stored."""
    return {
        "version": VERSION,
        "nodes": [_node(document.nodes[name]) for name in sorted(document.nodes)],
        "profiles": [_profile(document.profiles[name]) for name in sorted(document.profiles)],
        "models": [_model(document.models[name]) for name in sorted(document.models)],
        "measurements": [_measurement(entry) for entry in _in_order(document.measurements)],
        "replicas": [_replica(document.replicas[name]) for name in sorted(document.replicas)],
        "targets": [
            _target(document.targets[key])
            for key in sorted(document.targets, key=lambda k: (k[0], k[1] or "", k[2] or ""))
        ],
    }


def _in_order(measurements: Iterable[MeasurementEntry]) -> list[MeasurementEntry]:
    """By time; entirely equal ones once, for the file has no two."""
    once = {entry.key: entry for entry in measurements}
    return sorted(once.values(), key=lambda entry: entry.measured_at)


def time_form(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC, with Z."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _node(node: NodeEntry) -> dict[str, Any]:
    return {
        "name": node.name,
        "ready": node.ready,
        "schedulable": node.schedulable,
        **({"stale": True} if node.stale else {}),
        "labels": dict(sorted(node.labels.items())),
        "taints": taints_form(node.taints),
        "cpu_millis": node.cpu_millis,
        "memory_mib": node.memory_mib,
        "pods": node.pods,
        "cost_per_hour": node.cost_per_hour,
        **_source(node),
        "gpus": _gpus(node.gpus or {}),
    }


def _gpus(gpus: Mapping[int, GpuEntry]) -> list[dict[str, Any]]:
    """Runs of GPUs that differ in their index only."""
    runs: list[dict[str, Any]] = []
    expected = 0
    alike: tuple[object, ...] | None = None
    for index in sorted(gpus):
        gpu = gpus[index]
        traits = (gpu.type, gpu.memory_mib, gpu.healthy, gpu.used_outside_mib, gpu.partition)
        if index == expected and traits == alike and not gpu.uuid:
            runs[-1]["count"] = runs[-1].get("count", 1) + 1
        else:
            run: dict[str, Any] = {"index": index} if index != expected or gpu.uuid else {}
            if gpu.uuid:
                run["uuid"] = gpu.uuid
            run |= {"type": gpu.type, "memory_mib": gpu.memory_mib}
            if not gpu.healthy:
                run["healthy"] = False
            if gpu.used_outside_mib:
                run["used_outside_mib"] = gpu.used_outside_mib
            if gpu.partition:
                run["partition"] = True
            runs.append(run)
            # A run begins only where no index and no uuid stand.
            alike = None if "index" in run else traits
        expected = index + 1
    return runs


def _profile(profile: ProfileEntry) -> dict[str, Any]:
    return {
        "name": profile.name,
        "input_tokens": profile.input_tokens,
        "output_tokens": profile.output_tokens,
        "slo": {
            "ttft_ms": profile.ttft_ms,
            "itl_ms": profile.itl_ms,
            "e2e_ms": profile.e2e_ms,
            "percentile": profile.percentile,
        },
        "arrival": profile.arrival,
        "refresh_every_h": profile.refresh_every_h,
    }


def _model(model: ModelEntry) -> dict[str, Any]:
    variants = sorted((model.variants or {}).values(), key=lambda v: v.position)
    return {
        "name": model.name,
        "priority": model.priority,
        "preemption_policy": model.preemption_policy,
        "min_replicas": model.min_replicas,
        "max_replicas": model.max_replicas,
        "default_profile": model.default_profile,
        "workload": model.workload,
        "owner": model.owner,
        **_source(model),
        "variants": [_variant(variant) for variant in variants],
    }


def _variant(variant: VariantEntry) -> dict[str, Any]:
    spec = variant.spec
    return {
        "name": spec.name,
        "nodes": spec.nodes,
        "gpus": spec.gpus,
        "gpu_memory_mib": spec.gpu_memory_mib,
        "gpu_memory_fraction": spec.gpu_memory_fraction,
        "gpu_types": list(spec.gpu_types),
        "node_selector": dict(sorted(spec.node_selector)),
        "tolerations": tolerations_form(spec.tolerations),
        "cpu_millis": spec.cpu_millis,
        "memory_mib": spec.memory_mib,
        "topology_key": spec.topology_key,
        **_source(variant),
    }


def _measurement(entry: MeasurementEntry) -> dict[str, Any]:
    return {
        "model": entry.model,
        "variant": entry.variant,
        "profile": entry.profile,
        "tok_per_sec": entry.tok_per_sec,
        "measured_at": time_form(entry.measured_at),
        "source": entry.source,
        "bound": entry.bound,
        "engine": entry.engine,
        "warnings": list(entry.warnings),
        **({} if entry.slo_met else {"slo_met": False}),
    }


def _replica(replica: ReplicaEntry) -> dict[str, Any]:
    return {
        "name": replica.name,
        "model": replica.model,
        "variant": replica.variant,
        "state": replica.state,
        "started_at": time_form(replica.started_at),
        "endpoint": replica.endpoint,
        "benchable": replica.benchable,
        **({} if replica.priority is None else {"priority": replica.priority}),
        **_source(replica),
        "placement": [{"node": node, "gpus": list(indexes)} for node, indexes in replica.placement],
    }


def _source(entry: NodeEntry | ModelEntry | VariantEntry | ReplicaEntry) -> dict[str, str]:
    return {"source": entry.source} if entry.source else {}


def _target(target: TargetEntry) -> dict[str, Any]:
    return {
        "model": target.model,
        "profile": target.profile,
        "variant": target.variant,
        "utilization": target.utilization,
        "tokens_per_sec": target.tokens_per_sec,
    }


# As JSON -----------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """The form without decimals: whole ones as integers, others as the float that is read back the same."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    if not isinstance(value, Decimal):
        return value
    if value == value.to_integral_value():
        return int(value)
    nearest = float(value)
    return nearest if Decimal(repr(nearest)) == value else value


def to_json(value: Any) -> str:
    """JSON with every number exact, one object of a section a line."""
    sections = []
    for key, part in value.items():
        if isinstance(part, list) and part:
            lines = ",\n    ".join(_json(item) for item in part)
            sections.append(f"{json.dumps(key)}: [\n    {lines}\n  ]")
        else:
            sections.append(f"{json.dumps(key)}: {_json(part)}")
    return "{\n  " + ",\n  ".join(sections) + "\n}\n"


def _json(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{json.dumps(k, ensure_ascii=False)}: {_json(v)}" for k, v in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(_json(part) for part in value) + "]"
    if isinstance(value, Decimal):
        return plain_decimal(value)
    return json.dumps(value, ensure_ascii=isinstance(value, str) and not value.isprintable())
