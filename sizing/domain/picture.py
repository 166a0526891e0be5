"""A node as people look at it: its GPUs one by one, and who holds how much of each."""

from __future__ import annotations

from dataclasses import dataclass

from sizing.domain.claims import claim_mib
from sizing.domain.fleet import Fleet
from sizing.domain.specs import ReplicaSpec

ZONE_LABEL = "topology.kubernetes.io/zone"
"""The well-known label of a node's zone (Kubernetes: Well-Known Labels, Annotations and Taints)."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A replica on one GPU, and what it claims there in MiB; None where the GPU's memory is unknown.

    whole: it claims the GPU whole, whatever its memory.
    """

    replica: ReplicaSpec
    claim_mib: int | None
    whole: bool


@dataclass(frozen=True, slots=True)
class GpuPicture:
    """A GPU. `free_mib` is what is left of its memory, whole: whether a whole-GPU claim fits on it."""

    index: int
    type: str
    memory_mib: int | None
    healthy: bool
    used_outside_mib: int
    partition: bool
    free_mib: int
    whole: bool
    holders: tuple[Holder, ...]

    @property
    def free_is_known(self) -> bool:
        """Whether `free_mib` is what is left: also of unknown memory nothing is where a claim is whole."""
        return self.memory_mib is not None or any(holder.whole for holder in self.holders)


@dataclass(frozen=True, slots=True)
class NodePicture:
    """A node and its GPUs by index."""

    name: str
    zone: str
    ready: bool
    schedulable: bool
    stale: bool
    gpus: tuple[GpuPicture, ...]

    @property
    def closed(self) -> tuple[str, ...]:
        """What keeps anything new away, in words; empty where nothing does."""
        words = (
            ("not ready", not self.ready),
            ("cordoned", not self.schedulable),
            ("stale", self.stale),
        )
        return tuple(word for word, applies in words if applies)


def node_picture(fleet: Fleet, node: int) -> NodePicture:
    """The picture of a node, given by its number in the fleet's hardware."""
    hardware = fleet.hardware
    spec = hardware.nodes[node]
    held: dict[int, list[Holder]] = {}
    for name in sorted(fleet.holders_on(node)):
        replica = fleet.replicas[name].spec
        variant = fleet.models[replica.model].variant(replica.variant)
        for place, indexes in replica.placement:
            if place != spec.name:
                continue
            for index in indexes:
                memory = int(hardware.memory[hardware.position[node][index]])
                claim = None if memory < 0 else claim_mib(variant, memory)
                held.setdefault(index, []).append(Holder(replica, claim, variant.whole_gpu))
    return NodePicture(
        name=spec.name,
        zone=str(dict(spec.labels).get(ZONE_LABEL, "")),
        ready=spec.ready,
        schedulable=spec.schedulable,
        stale=spec.stale,
        gpus=tuple(
            GpuPicture(
                index=gpu.index,
                type=gpu.type,
                memory_mib=gpu.memory_mib,
                healthy=gpu.healthy,
                used_outside_mib=gpu.used_outside_mib,
                partition=gpu.partition,
                free_mib=int(fleet.free[hardware.position[node][gpu.index]]),
                whole=bool(fleet.whole_free[hardware.position[node][gpu.index]]),
                holders=tuple(held.get(gpu.index, ())),
            )
            for gpu in sorted(spec.gpus, key=lambda gpu: gpu.index)
        ),
    )
