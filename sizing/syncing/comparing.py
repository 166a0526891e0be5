"""What bringing in a cluster changes, told before and after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sizing.inventory.document import Document, ModelEntry, NodeEntry, ReplicaEntry


@dataclass(slots=True)
class Kind:
    """Names of one kind of objects, each in order. `details` say what changes of an object, by name."""

    added: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    details: dict[str, list[str]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "added": self.added,
            "gone": self.gone,
            "changed": self.changed,
            "moved": self.moved,
            "details": self.details,
        }

    def note(self, name: str, words: list[str]) -> None:
        if words:
            self.changed.append(name)
            self.details[name] = words


@dataclass(slots=True)
class Difference:
    """Nodes, replicas and models that bringing in a cluster adds, removes or changes."""

    nodes: Kind = field(default_factory=Kind)
    replicas: Kind = field(default_factory=Kind)
    models: Kind = field(default_factory=Kind)

    def __bool__(self) -> bool:
        kinds = (self.nodes, self.replicas, self.models)
        return any(kind.added or kind.gone or kind.changed or kind.moved for kind in kinds)

    def as_json(self) -> dict[str, Any]:
        return {
            "nodes": self.nodes.as_json(),
            "replicas": self.replicas.as_json(),
            "models": self.models.as_json(),
        }


@dataclass(frozen=True, slots=True)
class Gone:
    """Names of what the cluster has no more."""

    nodes: frozenset[str] = frozenset()
    replicas: frozenset[str] = frozenset()
    models: frozenset[str] = frozenset()


def compare(stored: Document, brought: Document, gone: Gone) -> Difference:
    """The difference between what is stored and what the cluster tells."""
    found = Difference()
    found.nodes.gone = sorted(gone.nodes)
    found.replicas.gone = sorted(gone.replicas)
    found.models.gone = sorted(gone.models)
    for name in sorted(brought.nodes):
        node_before = stored.nodes.get(name)
        if node_before is None:
            found.nodes.added.append(name)
        else:
            found.nodes.note(name, _node_words(node_before, brought.nodes[name]))
    for name in sorted(brought.replicas):
        before, after = stored.replicas.get(name), brought.replicas[name]
        if before is None:
            found.replicas.added.append(name)
        elif before.placement and before.placement != after.placement and after.placement:
            found.replicas.moved.append(name)
            found.replicas.details[name] = [f"{_places(before)} → {_places(after)}"]
        else:
            found.replicas.note(name, _replica_words(before, after))
    for name in sorted(brought.models):
        model_before = stored.models.get(name)
        if model_before is None:
            found.models.added.append(name)
        else:
            found.models.note(name, _model_words(model_before, brought.models[name]))
    return found


def _node_words(before: NodeEntry, after: NodeEntry) -> list[str]:
    words = _different(
        ("ready", before.ready, after.ready),
        ("schedulable", before.schedulable, after.schedulable),
        ("stale", before.stale, after.stale),
        ("CPU", before.cpu_millis, after.cpu_millis),
        ("host memory", before.memory_mib, after.memory_mib),
        ("pods", before.pods, after.pods),
        ("kept by", before.source or "hand", after.source or "hand"),
    )
    if before.labels != after.labels:
        keys = sorted(k for k in before.labels | after.labels if before.labels.get(k) != after.labels.get(k))
        words.append(f"labels: {_few(keys)}")
    if before.taints != after.taints:
        words.append(f"taints: {len(before.taints)} → {len(after.taints)}" if after.taints else "no taints")
    old_gpus, new_gpus = before.gpus or {}, after.gpus or {}
    if old_gpus != new_gpus:
        old, new = (sum(g.healthy for g in gpus.values()) for gpus in (old_gpus, new_gpus))
        words.append(f"healthy GPUs {old} → {new}" if old != new else "GPUs")
    if before.cost_per_hour != after.cost_per_hour:
        words.append("cost")
    return words


def _replica_words(before: ReplicaEntry, after: ReplicaEntry) -> list[str]:
    return _different(
        ("state", before.state, after.state),
        ("model", before.model, after.model),
        ("variant", before.variant, after.variant),
        ("started", before.started_at, after.started_at),
        ("endpoint", before.endpoint, after.endpoint),
        ("benchable", before.benchable, after.benchable),
        ("priority", before.priority, after.priority),
        ("kept by", before.source or "hand", after.source or "hand"),
        ("on", _places(before), _places(after)),
    )


def _model_words(before: ModelEntry, after: ModelEntry) -> list[str]:
    words = _different(
        ("priority", before.priority, after.priority),
        ("preemption policy", before.preemption_policy, after.preemption_policy),
        ("min. replicas", before.min_replicas, after.min_replicas),
        ("max. replicas", before.max_replicas, after.max_replicas),
        ("workload", before.workload, after.workload),
        ("owner", before.owner, after.owner),
    )
    old_variants, new_variants = before.variants or {}, after.variants or {}
    for name in sorted(new_variants):
        known = old_variants.get(name)
        if known is None:
            words.append(f"new variant {name}")
        elif known != new_variants[name]:
            words.append(f"variant {name}")
    return words


def _different(*fields: tuple[str, object, object]) -> list[str]:
    """In words, the fields (label, before, after) that are not alike."""
    return [f"{label} {_said(old)} → {_said(new)}" for label, old, new in fields if old != new]


def _places(replica: ReplicaEntry) -> str:
    places = (f"{node} GPU {','.join(map(str, gpus))}" for node, gpus in replica.placement)
    return ", ".join(places) or "no node"


def _said(value: object) -> str:
    if value is None or value == "":
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _few(names: Iterable[str]) -> str:
    some = list(names)
    return ", ".join(some[:3]) + (f" and {len(some) - 3} more" if len(some) > 3 else "")
