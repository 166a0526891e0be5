"""What matters here of a cluster's objects, as plain values.

Quantities are whole numbers: CPU in millicores, memory in bytes, devices and pods counted. A resource that
is not named was not told.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from sizing.domain.specs import Taint, Toleration

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"

Quantities = dict[str, int]
"""By resource: `cpu` in millicores, `memory` and `ephemeral-storage` in bytes, all others counted."""

ENDED = frozenset({"Succeeded", "Failed"})
"""Phases of pods that hold nothing any more."""


@dataclass(slots=True)
class NodeFacts:
    """A node. `ready` is the status of its Ready condition: True, False or Unknown (also: not told)."""

    name: str
    uid: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    deleting: bool = False
    ready: str = "Unknown"
    created_at: datetime | None = None
    capacity: Quantities = field(default_factory=dict)
    allocatable: Quantities = field(default_factory=dict)


@dataclass(slots=True)
class ContainerFacts:
    """A container of a pod that asks for devices. `words` are its command and arguments, `env` what is
    written out in its environment (never a secret's value: those are references)."""

    name: str
    image: str = ""
    words: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    ports: tuple[tuple[str, int], ...] = ()
    requests: Quantities = field(default_factory=dict)


@dataclass(slots=True)
class PodFacts:
    """A pod.

    `requests` is what the scheduler books for it: max(containers + sidecars, each plain init container +
    the sidecars before it) + overhead, limits standing in for requests that are missing.
    `claims` are the names of its ResourceClaims (in its namespace), `extended_claim` the one that serves
    its extended resources. `selector_terms` are the required node affinities: of the terms one must hold,
    of a term each (key, operator, values). `apart` are the labels of nodes by which it must not be beside
    other pods (required podAntiAffinity). `containers` is empty where no device is asked for.
    """

    namespace: str
    name: str
    uid: str = ""
    node: str = ""
    phase: str = "Pending"
    ready: bool = False
    deleting: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner: tuple[str, str] | None = None
    priority: int = 0
    preemption_policy: str = "PreemptLowerPriority"
    requests: Quantities = field(default_factory=dict)
    containers: tuple[ContainerFacts, ...] = ()
    node_selector: dict[str, str] = field(default_factory=dict)
    selector_terms: tuple[tuple[tuple[str, str, tuple[str, ...]], ...], ...] = ()
    apart: tuple[str, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    nominated: str = ""
    gates: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    extended_claim: str = ""
    started_at: datetime | None = None
    created_at: datetime | None = None
    ip: str = ""
    reason: str = ""

    @property
    def key(self) -> str:
        """Namespace and name: how people name a pod, and the name of its replica."""
        return f"{self.namespace}/{self.name}"

    @property
    def ended(self) -> bool:
        """Whether it holds nothing any more."""
        return self.phase in ENDED

    @property
    def bound(self) -> bool:
        """Whether it holds what it asks for on its node; a pod that is being deleted still does."""
        return bool(self.node) and not self.ended


@dataclass(slots=True)
class SliceDevice:
    """A device of a ResourceSlice, its attributes without the driver's prefix."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    memory_bytes: int | None = None
    taints: tuple[Taint, ...] = ()


@dataclass(slots=True)
class SliceFacts:
    """A ResourceSlice; of a pool only the highest generation counts. `node` empty: not of one node.

    `slices` is of how many slices the pool consists at this generation; 0: not told.
    """

    name: str
    driver: str
    pool: str
    generation: int
    node: str = ""
    devices: tuple[SliceDevice, ...] = ()
    slices: int = 0


@dataclass(slots=True)
class ClaimFacts:
    """A ResourceClaim: what it asks for by device class, and the devices that it was given.

    `devices` are (driver, pool, device); `users` the uids of the pods that it is reserved for. `memory_bytes`
    is what it has of the memory of devices that it shares with other claims, where that is told.
    """

    namespace: str
    name: str
    asks: dict[str, int] = field(default_factory=dict)
    devices: tuple[tuple[str, str, str], ...] = ()
    users: tuple[str, ...] = ()
    memory_bytes: dict[tuple[str, str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaintRuleFacts:
    """A DeviceTaintRule: a taint of all devices of this driver, pool and name, each where it is not empty.

    `unread` tells that it selects by what cannot be worked out here (expressions).
    """

    name: str
    taint: Taint
    driver: str = ""
    pool: str = ""
    device: str = ""
    unread: bool = False


@dataclass(slots=True)
class BudgetFacts:
    """A PodDisruptionBudget. `match` are labels, `expressions` (key, operator, values); `desired_healthy` is
    the cluster's own sum where its status tells it; with `frozen` the cluster could not work it out and lets
    no pod go."""

    namespace: str
    name: str
    match: dict[str, str] = field(default_factory=dict)
    expressions: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    min_available: str = ""
    max_unavailable: str = ""
    desired_healthy: int | None = None
    frozen: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """An object that could not be taken, with the reason in words."""

    kind: str
    name: str
    reason: str


@dataclass(slots=True)
class Listing:
    """All that was listed. `pods` by uid (by name where a file has none), `claims` by namespace and name.

    `incomplete` says why more exists than is listed, in words. `kinds` are the kinds that were listed, also
    where there were none of them. `other` counts objects of kinds that say nothing about capacity.
    `owners` are the owners of ReplicaSets and Jobs by (kind, namespace, name); `sizes` the pods that a
    group (LeaderWorkerSet, RayCluster) has when it is whole, by (kind, namespace, name).
    `default_classes` are the priority classes of pods that name none.
    """

    nodes: dict[str, NodeFacts] = field(default_factory=dict)
    pods: dict[str, PodFacts] = field(default_factory=dict)
    slices: dict[str, SliceFacts] = field(default_factory=dict)
    claims: dict[tuple[str, str], ClaimFacts] = field(default_factory=dict)
    device_classes: dict[str, str] = field(default_factory=dict)
    taint_rules: dict[str, TaintRuleFacts] = field(default_factory=dict)
    budgets: dict[tuple[str, str], BudgetFacts] = field(default_factory=dict)
    priority_classes: dict[str, tuple[int, str]] = field(default_factory=dict)
    default_classes: set[str] = field(default_factory=set)
    owners: dict[tuple[str, str, str], tuple[str, str]] = field(default_factory=dict)
    sizes: dict[tuple[str, str, str], int] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)
    other: Counter[str] = field(default_factory=Counter)
    skipped: list[Skipped] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    duplicates: int = 0
    incomplete: str = ""
