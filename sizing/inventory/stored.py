"""The tables as a document, with the ids of the rows. A few wide queries, however large the fleet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from sizing.domain.specs import VariantSpec
from sizing.inventory.document import (
    Document,
    GpuEntry,
    MeasurementEntry,
    MeasurementKey,
    ModelEntry,
    NodeEntry,
    ProfileEntry,
    ReplicaEntry,
    TargetEntry,
    TargetKey,
    VariantEntry,
)
from sizing.inventory.scheduling import taints_of, tolerations_of
from sizing.models import (
    BenchProfile,
    Gpu,
    Measurement,
    Node,
    Placement,
    Replica,
    ServedModel,
    Target,
    Variant,
)

Row = TypeVar("Row", bound=Model)


@dataclass(slots=True)
class Stored:
    """What the tables hold. Ids by name; `measurement_ids` in the order of the document's measurements, and
    by what they say those that were written since."""

    document: Document = field(default_factory=Document)
    node_ids: dict[str, int] = field(default_factory=dict)
    gpu_ids: dict[tuple[str, int], int] = field(default_factory=dict)
    profile_ids: dict[str, int] = field(default_factory=dict)
    model_ids: dict[str, int] = field(default_factory=dict)
    variant_ids: dict[tuple[str, str], int] = field(default_factory=dict)
    replica_ids: dict[str, int] = field(default_factory=dict)
    placement_ids: dict[tuple[str, str, int], int] = field(default_factory=dict)
    measurement_ids: list[int] = field(default_factory=list)
    new_measurement_ids: dict[MeasurementKey, int] = field(default_factory=dict)
    target_ids: dict[TargetKey, int] = field(default_factory=dict)


def read_stored() -> Stored:
    """Read all of the inventory."""
    stored = Stored()
    _read_profiles(stored)
    _read_models(stored)
    _read_nodes(stored, [Node.objects.all()], [Gpu.objects.all()])
    _read_replicas(stored, [Replica.objects.all()], [Placement.objects.all()])
    _read_measurements(stored)
    _read_targets(stored)
    return stored


def read_around(node_ids: Collection[int], replica_ids: Collection[int] = ()) -> Document:
    """The part of the inventory that decides what is held on some nodes and by some replicas."""
    stored = Stored()
    wanted = set(replica_ids)
    for rows in _parts(Placement.objects.all(), "gpu__node_id", node_ids):
        wanted.update(rows.values_list("replica_id", flat=True))
    placements = _parts(Placement.objects.all(), "replica_id", wanted)
    nodes = set(node_ids)
    for rows in placements:
        nodes.update(rows.values_list("gpu__node_id", flat=True))
    _read_models(stored)
    _read_nodes(stored, _parts(Node.objects.all(), "pk", nodes), _parts(Gpu.objects.all(), "node_id", nodes))
    _read_replicas(stored, _parts(Replica.objects.all(), "pk", wanted), placements)
    return stored.document


def _parts(rows: QuerySet[Row], column: str, ids: Collection[int]) -> list[QuerySet[Row]]:
    """The rows with one of the ids, in queries that a database takes however many they are."""
    ordered = sorted(ids)
    return [rows.filter(**{f"{column}__in": ordered[i : i + 500]}) for i in range(0, len(ordered), 500)]


def _values(parts: Iterable[QuerySet[Any]], columns: Sequence[str], *order: str) -> Iterator[Any]:
    """The values of all parts, one after the other."""
    for rows in parts:
        yield from rows.order_by(*order).values_list(*columns)


def _read_nodes(stored: Stored, nodes: list[QuerySet[Node]], gpus: list[QuerySet[Gpu]]) -> None:
    entries: dict[int, NodeEntry] = {}
    host_columns = ("cpu_millis", "memory_mib", "pods", "cost_per_hour", "source")
    columns = ("pk", "name", "ready", "schedulable", "stale", "labels", "taints", *host_columns)
    for pk, name, ready, schedulable, stale, labels, taints, *host in _values(nodes, columns):
        entry = NodeEntry(name, ready, schedulable, stale, labels, taints_of(taints), *host)
        entry.gpus = {}
        entries[pk] = stored.document.nodes[name] = entry
        stored.node_ids[name] = pk
    traits = ("type", "memory_mib", "uuid", "healthy", "used_outside_mib", "partition")
    for pk, node_id, index, *rest in _values(gpus, ("pk", "node_id", "index", *traits), "node_id", "index"):
        entry = entries[node_id]
        if entry.gpus is not None:
            entry.gpus[index] = GpuEntry(index, *rest)
        stored.gpu_ids[entry.name, index] = pk


def _read_profiles(stored: Stored) -> None:
    fields = ("input_tokens", "output_tokens", "ttft_ms", "itl_ms", "e2e_ms", "percentile", "arrival")
    for pk, name, *rest in BenchProfile.objects.order_by().values_list(
        "pk", "name", *fields, "refresh_every_h"
    ):
        stored.document.profiles[name] = ProfileEntry(name, *rest)
        stored.profile_ids[name] = pk


def _read_models(stored: Stored) -> None:
    entries: dict[int, ModelEntry] = {}
    fields = ("priority", "preemption_policy", "min_replicas", "max_replicas", "default_profile__name")
    for pk, name, *rest in ServedModel.objects.order_by().values_list(
        "pk", "name", *fields, "workload", "owner", "source"
    ):
        entries[pk] = stored.document.models[name] = ModelEntry(name, *rest)
        entries[pk].variants = {}
        stored.model_ids[name] = pk
    for row in Variant.objects.order_by("model_id", "position", "pk"):
        entry = entries[row.model_id]
        variants = entry.variants if entry.variants is not None else {}
        variants[row.name] = VariantEntry(variant_spec(row), row.position, row.source)
        stored.variant_ids[entry.name, row.name] = row.pk


def variant_spec(row: Variant) -> VariantSpec:
    """A row of the variants as a value."""
    return VariantSpec(
        name=row.name,
        gpus=row.gpus,
        nodes=row.nodes,
        gpu_memory_mib=row.gpu_memory_mib,
        gpu_memory_fraction=row.gpu_memory_fraction,
        gpu_types=tuple(row.gpu_types),
        node_selector=tuple(sorted(row.node_selector.items())),
        tolerations=tolerations_of(row.tolerations),
        cpu_millis=row.cpu_millis,
        memory_mib=row.memory_mib,
        topology_key=row.topology_key,
    )


def _read_replicas(
    stored: Stored, replicas: list[QuerySet[Replica]], placements: list[QuerySet[Placement]]
) -> None:
    entries: dict[int, ReplicaEntry] = {}
    variants = {pk: names for names, pk in stored.variant_ids.items()}
    fields = ("state", "started_at", "endpoint", "benchable", "priority", "source")
    for pk, name, variant_id, *rest in _values(replicas, ("pk", "name", "variant_id", *fields)):
        entries[pk] = stored.document.replicas[name] = ReplicaEntry(name, *variants[variant_id], *rest)
        stored.replica_ids[name] = pk
    gpus = {pk: place for place, pk in stored.gpu_ids.items()}
    held: dict[int, dict[str, list[int]]] = {}
    for pk, replica_id, gpu_id in _values(placements, ("pk", "replica_id", "gpu_id")):
        node, index = gpus[gpu_id]
        held.setdefault(replica_id, {}).setdefault(node, []).append(index)
        stored.placement_ids[entries[replica_id].name, node, index] = pk
    for replica_id, by_node in held.items():
        entries[replica_id].placement = tuple((n, tuple(sorted(by_node[n]))) for n in sorted(by_node))


def _read_measurements(stored: Stored) -> None:
    variants = {pk: names for names, pk in stored.variant_ids.items()}
    fields = (
        "profile__name",
        "tok_per_sec",
        "measured_at",
        "source",
        "bound",
        "engine",
        "warnings",
        "slo_met",
    )
    rows = Measurement.objects.order_by("measured_at", "pk").values_list("pk", "variant_id", *fields)
    for pk, variant_id, profile, rate, at, source, bound, engine, warnings, slo_met in rows:
        stored.document.measurements.append(
            MeasurementEntry(
                *variants[variant_id], profile, rate, at, source, bound, engine, tuple(warnings), slo_met
            )
        )
        stored.measurement_ids.append(pk)


def _read_targets(stored: Stored) -> None:
    fields = ("model__name", "profile__name", "variant__name", "utilization", "tokens_per_sec")
    for pk, *rest in Target.objects.order_by().values_list("pk", *fields):
        entry = TargetEntry(*rest)
        stored.document.targets[entry.key] = entry
        stored.target_ids[entry.key] = pk
