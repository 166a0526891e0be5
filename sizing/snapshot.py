"""Rows to domain values: the one translator, and the one cache.

A process keeps one snapshot of the inventory. Each question first reads the newest row of the change
log (`InventoryChange`); where it is the one that the snapshot was read at, the snapshot is current.
Else what the log names since then is read again, or everything where that is not sure. So no answer is
older than the last write that was committed before the question.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from django.db import connection
from django.db.models import Q

from sizing import tally
from sizing.domain.answer import Answer, answer
from sizing.domain.catalog import Catalog, Question
from sizing.domain.fleet import Fleet
from sizing.domain.hardware import Hardware
from sizing.domain.once import once
from sizing.domain.overlay import Overlay
from sizing.domain.specs import (
    GpuSpec,
    MeasurementSpec,
    ModelSpec,
    NodeSpec,
    ProfileSpec,
    ReplicaSpec,
    Taint,
    Toleration,
    VariantSpec,
)
from sizing.models import (
    BenchProfile,
    Gpu,
    Measurement,
    Node,
    Placement,
    Replica,
    ServedModel,
    Variant,
)
from sizing.models.reads import consistent_reads
from sizing.set_aside import set_aside

Revision = tuple[int, int]

MOST_CHANGES_PATCHED = 2000
ANSWERS_KEPT = 1024
# Each keeps a fleet of its own, of megabytes in a large cluster.
SUPPOSING_KEPT = 8


@dataclass
class Snapshot:
    """The inventory at one revision; None: the log is empty and nothing may be kept."""

    revision: Revision | None
    catalog: Catalog
    fleet: Fleet
    replica_names: Overlay[int, str]
    node_names: dict[int, str]
    variant_names: dict[int, tuple[str, str]]
    answers: dict[Question, Answer] = field(default_factory=dict)
    supposing: dict[Question, Answer] = field(default_factory=dict)
    read_at: float = field(default_factory=time.monotonic)

    @property
    def age_s(self) -> float:
        """Since it was read. However old, it is current for as long as nothing is written."""
        return time.monotonic() - self.read_at

    @once
    def node_ids(self) -> dict[str, int]:
        """The ids of the nodes, by name."""
        return {name: pk for pk, name in self.node_names.items()}

    def answer(self, question: Question) -> Answer:
        """The answer to a question, kept for as long as the snapshot is."""
        kept, most = (self.supposing, SUPPOSING_KEPT) if question.as_if else (self.answers, ANSWERS_KEPT)
        found = kept.get(question)
        if found is None:
            found = answer(self.catalog, self.fleet, question)
            if len(kept) >= most:
                kept.clear()
            found = kept.setdefault(question, found)  # where several ask at once, all wait for one search
        return found


_kept: Snapshot | None = None
_lock = Lock()


_pinned: ContextVar[Snapshot | None] = ContextVar("pinned", default=None)


@contextmanager
def pinned() -> Iterator[None]:
    """Within it every look is at the snapshot of its beginning: for a page whose parts must agree."""
    token = _pinned.set(current())
    try:
        yield
    finally:
        _pinned.reset(token)


def current() -> Snapshot:
    """The snapshot of the last committed write (within a transaction: of its own writes too)."""
    global _kept
    if (held := _pinned.get()) is not None:
        return held
    kept = _kept
    if kept is not None and kept.revision is not None and kept.revision == _newest():
        return kept
    with _lock:
        kept = _kept
        begun, how = time.perf_counter(), "part"
        with consistent_reads():
            fresh = _patched(kept) if kept is not None else None
            if fresh is None:
                fresh, how = _read(_newest()), "whole"
        if fresh is not kept:
            tally.took("llmgw_snapshot_build_seconds", time.perf_counter() - begun, read=how)
        anew = kept is None or fresh.fleet.hardware.position is not kept.fleet.hardware.position
        _kept = kept = fresh
        if anew:
            set_aside(len(fresh.fleet.hardware.nodes) + len(fresh.replica_names))
        return fresh


_CHANGES_SINCE = (
    'SELECT id, nonce, kind, "row" FROM sizing_inventorychange WHERE id >= %s ORDER BY id LIMIT %s'
)


def _newest() -> Revision | None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, nonce FROM sizing_inventorychange ORDER BY id DESC LIMIT 1")
        row: Revision | None = cursor.fetchone()
    return row


def _read(revision: Revision | None) -> Snapshot:
    models, catalog, variant_names = _read_catalog()
    nodes = _read_nodes()
    replicas = _read_replicas()
    return Snapshot(
        revision=revision,
        catalog=catalog,
        fleet=Fleet.build(nodes.values(), models, replicas.values()),
        replica_names=Overlay({pk: spec.name for pk, spec in replicas.items()}),
        node_names={pk: spec.name for pk, spec in nodes.items()},
        variant_names=variant_names,
    )


def _patched(kept: Snapshot) -> Snapshot | None:
    """The snapshot with what the log names since it was read, or None where all must be read."""
    if kept.revision is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(_CHANGES_SINCE, [kept.revision[0], MOST_CHANGES_PATCHED + 1])
        changes = cursor.fetchall()
    # The row that the snapshot was read at must still stand: else this is another history (a backup
    # that was restored) or one whose beginning was pruned.
    if not changes or changes[0][:2] != kept.revision or len(changes) > MOST_CHANGES_PATCHED:
        return None
    if len(changes) == 1:
        return kept
    revision: Revision = changes[-1][:2]
    kinds: dict[str, set[int]] = {}
    for _, _, kind, row in changes[1:]:
        kinds.setdefault(kind, set()).add(row)
    if "all" in kinds:
        return None
    catalog, fleet, variant_names = kept.catalog, kept.fleet, kept.variant_names
    replica_names, node_names = kept.replica_names, kept.node_names
    rebuilt: Hardware | None = None
    if "catalog" in kinds:
        _, catalog, variant_names = _read_catalog()
        if any(variant_names.get(pk, name) != name for pk, name in kept.variant_names.items()):
            return None  # what replicas run has another name now
        if catalog.models != fleet.models:
            try:
                fleet = fleet.on_catalog(catalog.models)
            except KeyError:
                return None
    touched = kinds.get("replica", set())
    if "node" in kinds:
        nodes = _read_nodes(kinds["node"])
        same = all(pk in nodes and nodes[pk].name == node_names.get(pk) for pk in kinds["node"])
        other = fleet.with_nodes(nodes.values()) if same else None
        if other is not None:
            fleet = other
        else:
            node_names = {pk: n for pk, n in node_names.items() if pk not in kinds["node"]}
            node_names |= {pk: spec.name for pk, spec in nodes.items()}
            names = set(node_names.values())
            if len(names) != len(node_names):
                return None
            stay = {n.name: n for n in fleet.hardware.nodes if n.name in names}
            rebuilt = Hardware((stay | {n.name: n for n in nodes.values()}).values())
        # A GPU may have another index now, or stand on another node, with the replicas that hold it.
        there = Placement.objects.filter(gpu__node_id__in=kinds["node"])
        touched = touched | set(there.values_list("replica_id", flat=True))
    replicas = _read_replicas(touched) if touched else {}
    touched = {pk for pk in touched if not _stands(replicas.get(pk), replica_names.get(pk), fleet)}
    gone = [replica_names[pk] for pk in touched if pk in replica_names]
    come = [replicas[pk] for pk in touched if pk in replicas]
    if rebuilt is not None:
        left = set(gone)
        specs = {name: held.spec for name, held in fleet.replicas.items() if name not in left}
        specs |= {spec.name: spec for spec in come}
        try:
            fleet = Fleet.on(rebuilt, catalog.models, specs.values())
        except KeyError:
            return None
    elif touched:
        fleet = fleet.with_replicas(removed=gone, added=come)
    if touched:
        renamed = {pk: replicas[pk].name if pk in replicas else None for pk in touched}
        replica_names = replica_names.changed(renamed)
        if len(replica_names) != len(fleet.replicas):
            return None
    return Snapshot(revision, catalog, fleet, replica_names, node_names, variant_names)


def _stands(now: ReplicaSpec | None, name: str | None, fleet: Fleet) -> bool:
    """Whether a replica is what it was: a node's change names all that are on it."""
    return now is not None and now.name == name and fleet.replicas[name].spec == now


def _read_catalog() -> tuple[list[ModelSpec], Catalog, dict[int, tuple[str, str]]]:
    """The models, the catalog, and by the id of a variant its model's name and its own."""
    variants: dict[int, list[VariantSpec]] = {}
    rows = ServedModel.objects.select_related("default_profile").order_by("name")
    model_names = {row.pk: row.name for row in rows}
    names = {}
    for of in Variant.objects.order_by("model_id", "position", "id"):
        variants.setdefault(of.model_id, []).append(variant_spec(of))
        names[of.pk] = model_names[of.model_id], of.name
    models = [
        ModelSpec(
            name=row.name,
            priority=row.priority,
            preemption_policy=row.preemption_policy,
            min_replicas=row.min_replicas,
            max_replicas=row.max_replicas,
            default_profile=row.default_profile.name if row.default_profile else None,
            workload=row.workload,
            variants=tuple(variants.get(row.pk, ())),
        )
        for row in rows
    ]
    profiles = [
        ProfileSpec(name=name, refresh_every_h=every)
        for name, every in BenchProfile.objects.order_by("name").values_list("name", "refresh_every_h")
    ]
    return models, Catalog.of(models, profiles, _read_measurements()), names


def _read_measurements() -> Iterator[MeasurementSpec]:
    rows = Measurement.objects.filter(Q(tok_per_sec__gt=0) | Q(slo_met=False)).values_list(
        "variant__model__name",
        "variant__name",
        "profile__name",
        "tok_per_sec",
        "measured_at",
        "source",
        "bound",
        "engine",
        "variant__engine_seen",
        "gpu_type",
        "variant_shape",
        "slo_met",
        "id",
        "warnings",
    )
    for row in rows:
        yield MeasurementSpec(*row[:-1], warnings=tuple(map(str, row[-1])))


def variant_spec(row: Variant) -> VariantSpec:
    """A variant's row as a domain value."""
    return VariantSpec(
        name=row.name,
        gpus=row.gpus,
        nodes=row.nodes,
        gpu_memory_mib=row.gpu_memory_mib,
        gpu_memory_fraction=row.gpu_memory_fraction,
        gpu_types=tuple(row.gpu_types),
        node_selector=tuple(sorted(row.node_selector.items())),
        tolerations=tuple(toleration(t) for t in row.tolerations),
        cpu_millis=row.cpu_millis,
        memory_mib=row.memory_mib,
        topology_key=row.topology_key or None,
    )


def toleration(document: dict[str, Any]) -> Toleration:
    """A toleration in Kubernetes form; `tolerationSeconds` does not matter to where a replica may start."""
    return Toleration(
        key=document.get("key") or "",
        operator=document.get("operator") or "Equal",
        value=document.get("value") or "",
        effect=document.get("effect") or "",
    )


def taint(document: dict[str, Any]) -> Taint:
    """A taint in Kubernetes form."""
    return Taint(
        key=document.get("key") or "", value=document.get("value") or "", effect=document.get("effect") or ""
    )


def _read_nodes(only: set[int] | None = None) -> dict[int, NodeSpec]:
    nodes, gpus = Node.objects.all(), Gpu.objects.all()
    if only is not None:
        nodes, gpus = nodes.filter(pk__in=only), gpus.filter(node_id__in=only)
    of_node: dict[int, list[GpuSpec]] = {}
    for node_id, index, kind, memory, healthy, outside, partition in gpus.order_by(
        "node_id", "index"
    ).values_list("node_id", "index", "type", "memory_mib", "healthy", "used_outside_mib", "partition"):
        of_node.setdefault(node_id, []).append(GpuSpec(index, kind, memory, healthy, outside, partition))
    return {
        pk: NodeSpec(
            name=name,
            gpus=tuple(of_node.get(pk, ())),
            ready=ready,
            schedulable=schedulable,
            stale=stale,
            labels=labels,
            taints=tuple(taint(t) for t in taints),
            cpu_millis=cpu,
            memory_mib=memory,
            pods=pods,
        )
        for pk, name, ready, schedulable, stale, labels, taints, cpu, memory, pods in nodes.values_list(
            "pk",
            "name",
            "ready",
            "schedulable",
            "stale",
            "labels",
            "taints",
            "cpu_millis",
            "memory_mib",
            "pods",
        )
    }


def _read_replicas(only: set[int] | None = None) -> dict[int, ReplicaSpec]:
    replicas, placements = Replica.objects.all(), Placement.objects.all()
    if only is not None:
        replicas, placements = replicas.filter(pk__in=only), placements.filter(replica_id__in=only)
    placed: dict[int, dict[str, list[int]]] = {}
    for pk, node, index in placements.order_by("replica_id", "gpu__index").values_list(
        "replica_id", "gpu__node__name", "gpu__index"
    ):
        placed.setdefault(pk, {}).setdefault(node, []).append(index)
    return {
        pk: ReplicaSpec(
            name=name,
            model=model,
            variant=variant,
            state=state,
            started_at=started_at,
            priority=priority,
            placement=tuple((node, tuple(indexes)) for node, indexes in sorted(placed.get(pk, {}).items())),
        )
        for pk, name, model, variant, state, started_at, priority in replicas.values_list(
            "pk", "name", "variant__model__name", "variant__name", "state", "started_at", "priority"
        )
    }
