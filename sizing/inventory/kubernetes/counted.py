"""A cluster counted: what each node has, what is used of it, and what closes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from sizing.inventory.kubernetes.facts import Listing, NodeFacts, PodFacts


@dataclass(slots=True)
class ResourceCount:
    """One device resource of a node. Capacity minus allocatable are devices that were withdrawn."""

    capacity: int = 0
    allocatable: int = 0
    used: int = 0

    @property
    def free(self) -> int:
        """Never capacity minus used, and never below 0."""
        return max(0, self.allocatable - self.used)

    @property
    def overcommitted(self) -> int:
        """How much more is used than is allocatable."""
        return max(0, self.used - self.allocatable)


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU of a node as the inventory stores it.

    `type` is the label's value (a partition's has its cut behind it, as `…-MIG-3g.40gb` or `…-SHARED`), or
    the resource where no label tells it. `name` is what the cluster calls the device where it tells which
    one a pod has: a uuid (HAMi) or `pool/device` (DRA); else empty. `closed` is one that takes nothing more
    though memory is left.
    """

    type: str
    memory_mib: int | None = None
    healthy: bool = True
    partition: bool = False
    uuid: str = ""
    name: str = ""
    closed: bool = False


@dataclass(slots=True)
class Pool:
    """The devices of a node that are asked for by one resource, as many as its capacity or, where pods hold
    more, as they hold. `withdrawn` of them are out of order without the cluster saying which."""

    resource: str
    devices: list[Device] = field(default_factory=list)
    withdrawn: int = 0


@dataclass(frozen=True, slots=True)
class Need:
    """What a pod holds, or waits for, of one pool: a number of devices, and of each its memory (MiB), a
    fraction of its memory, or with neither all of it. `names` are the devices where the cluster tells."""

    resource: str
    count: int
    memory_mib: int | None = None
    fraction: Decimal | None = None
    names: tuple[str, ...] = ()


@dataclass(slots=True)
class HostCount:
    """Host CPU (millicores), memory (bytes) and pods: allocatable (None: not told), and used by all pods."""

    cpu: int | None = None
    cpu_used: int = 0
    memory: int | None = None
    memory_used: int = 0
    pods: int | None = None
    pods_used: int = 0


@dataclass(slots=True)
class NodeCount:
    """A node. `type`, `memory_mib` and `physical` are as the report tells them (None: cannot be known);
    `models` are the models of resources of which labels tell it, `shared` the resources that give shares;
    `blocked` are the codes of what keeps new pods away, `details` further facts by the report's keys."""

    facts: NodeFacts
    vendor: str | None = None
    type: str | None = None
    memory_mib: int | None = None
    physical: int | None = None
    resources: dict[str, ResourceCount] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    blocked: list[str] = field(default_factory=list)
    say: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    pools: list[Pool] = field(default_factory=list)
    host: HostCount = field(default_factory=HostCount)
    # Without the taints that only repeat that it is cordoned or not ready.
    taints_that_count: tuple[Any, ...] = ()

    @property
    def schedulable(self) -> bool:
        return not self.blocked


@dataclass(slots=True)
class Counted:
    """The whole cluster. `needs` are those of every pod that is not over and asks for devices, by `key`.

    `notes` say of pods that hold nothing themselves why (a claim that they share), by `key`. `reserved` are
    the devices of each node, by resource and name, that a claim has and no pod that is bound there: they are
    not free before the claim gives them back.
    """

    listing: Listing
    nodes: dict[str, NodeCount] = field(default_factory=dict)
    needs: dict[str, list[Need]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    reserved: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    ended: list[PodFacts] = field(default_factory=list)
    unplaced: list[PodFacts] = field(default_factory=list)
    orphans: list[PodFacts] = field(default_factory=list)
    terminating: list[PodFacts] = field(default_factory=list)
    nominated: list[PodFacts] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
