"""What the desk knows about a cluster, as plain immutable values.

These are the domain's inputs: a fleet is built from them (`sizing.domain.fleet.Fleet.build`).
Memory is in MiB, CPU in millicores, tokens per second in exact decimals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

HOLDING_STATES = frozenset({"starting", "ready", "draining", "failed"})
"""States in which a replica holds its GPUs, host CPU, host memory and pod; `pending` holds nothing."""

SERVING_STATES = frozenset({"starting", "ready"})
"""States that count as current replicas of a model."""

CLOSING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
"""Taint effects that close a node; `PreferNoSchedule` closes nothing."""

WHOLE_GPU_OUTSIDE_LIMIT_MIB = 1024
"""A whole-GPU claim needs a GPU with at most this much used outside."""


@dataclass(frozen=True, slots=True)
class Taint:
    """A Kubernetes taint."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A Kubernetes toleration: operator `Equal` or `Exists`; an empty key with `Exists` tolerates all keys;
    an empty effect tolerates all effects."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """One accelerator, or one slice of it (`partition`). `memory_mib` None: unknown."""

    index: int
    type: str
    memory_mib: int | None
    healthy: bool = True
    used_outside_mib: int = 0
    partition: bool = False


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A machine. Host quantities of None are not accounted."""

    name: str
    gpus: tuple[GpuSpec, ...] = ()
    ready: bool = True
    schedulable: bool = True
    stale: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    cpu_millis: int | None = None
    memory_mib: int | None = None
    pods: int | None = None


@dataclass(frozen=True, slots=True)
class VariantSpec:
    """One way to run a replica: `gpus` GPUs on each of `nodes` nodes.

    The claim on each GPU is `gpu_memory_mib`, or a share of the GPU's memory (`gpu_memory_fraction`),
    or with both None the whole GPU. Host quantities are per node.
    """

    name: str
    gpus: int = 1
    nodes: int = 1
    gpu_memory_mib: int | None = None
    gpu_memory_fraction: Decimal | None = None
    gpu_types: tuple[str, ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    cpu_millis: int = 0
    memory_mib: int = 0
    topology_key: str | None = None

    @property
    def whole_gpu(self) -> bool:
        """Whether a replica claims its GPUs entirely."""
        return self.gpu_memory_mib is None and self.gpu_memory_fraction is None


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A served model with its variants in order of preference."""

    name: str
    priority: int = 0
    preemption_policy: str = "PreemptLowerPriority"
    min_replicas: int = 0
    max_replicas: int | None = None
    default_profile: str | None = None
    workload: str = "model"
    variants: tuple[VariantSpec, ...] = ()

    def variant(self, name: str) -> VariantSpec:
        """The variant of that name; KeyError where there is none."""
        for variant in self.variants:
            if variant.name == name:
                return variant
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class ReplicaSpec:
    """A replica and the GPU indexes that it is bound to, by node name.

    What it holds is its placement, whatever its variant's shape: of a group of pods a part may be gone.
    `priority` None: its model's. In Kubernetes each pod has a priority of its own.
    """

    name: str
    model: str
    variant: str
    state: str = "ready"
    started_at: datetime | None = None
    placement: tuple[tuple[str, tuple[int, ...]], ...] = ()
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class MeasurementSpec:
    """What one replica of a variant served at a profile's SLO.

    `order` tells measurements of equal time apart: the one stored later is greater. `gpu_type` and
    `variant_shape` (`staleness.shape_of`) are what the desk measured itself, `engine_seen` is what the
    variant's replicas last said to run; each empty where it is not known. `warnings` came with it: what
    to know of the figure.
    """

    model: str
    variant: str
    profile: str
    tok_per_sec: Decimal
    measured_at: datetime
    source: str = "manual"
    bound: str | None = None
    engine: str = ""
    engine_seen: str = ""
    gpu_type: str = ""
    variant_shape: str = ""
    slo_met: bool = True
    order: int = 0
    warnings: tuple[str, ...] = ()

    def newer_than(self, other: MeasurementSpec) -> bool:
        """Whether it counts before another: taken later, or stored later where both were taken at once."""
        return (self.measured_at, self.order) > (other.measured_at, other.order)

    @property
    def valid(self) -> bool:
        """Whether it may size anything: above 0, from a level that met the SLO or entered by hand."""
        return self.tok_per_sec > 0 and self.slo_met


@dataclass(frozen=True, slots=True)
class ProfileSpec:
    """The part of a bench profile that an answer needs. `refresh_every_h` None: never stale."""

    name: str
    refresh_every_h: Decimal | None = None
