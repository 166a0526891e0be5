"""Small clusters as facts, for the tests of counting and of its report."""

from __future__ import annotations

from typing import Any

from sizing.domain.specs import Taint
from sizing.inventory.kubernetes.counted import Counted, NodeCount
from sizing.inventory.kubernetes.counting import count
from sizing.inventory.kubernetes.facts import (
    ClaimFacts,
    ContainerFacts,
    Listing,
    NodeFacts,
    PodFacts,
    SliceDevice,
    SliceFacts,
)
from sizing.inventory.kubernetes.report import report

GPU = "nvidia.com/gpu"
H100 = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/gpu.count": "8",
}


def node(
    offers: dict[str, int] | None = None,
    labels: dict[str, str] | None = None,
    allocatable: dict[str, int] | None = None,
    name: str = "n1",
    **told: Any,
) -> NodeFacts:
    """A node that is ready and offers these resources, all allocatable where nothing else is said."""
    offers = offers or {}
    return NodeFacts(
        name,
        labels=dict(labels or {}),
        ready=told.pop("ready", "True"),
        capacity=dict(offers),
        allocatable={**offers, **(allocatable or {})},
        **told,
    )


def pod(
    asks: dict[str, int] | None = None,
    on: str = "n1",
    name: str = "p1",
    phase: str = "Running",
    **told: Any,
) -> PodFacts:
    """A pod of namespace `llm` with one container that asks for all of it."""
    asks = asks or {}
    requests = {resource: amount for resource, amount in asks.items() if "/gpumem" not in resource}
    containers = told.pop("containers", (ContainerFacts("main", requests=dict(asks)),))
    return PodFacts(
        "llm", name, uid=name, node=on, phase=phase, requests=requests, containers=containers, **told
    )


def listing(*facts: NodeFacts | PodFacts | SliceFacts | ClaimFacts) -> Listing:
    """A listing of these objects."""
    found = Listing()
    for one in facts:
        if isinstance(one, NodeFacts):
            found.nodes[one.name] = one
        elif isinstance(one, PodFacts):
            found.pods[one.uid] = one
        elif isinstance(one, SliceFacts):
            found.slices[one.name] = one
        else:
            found.claims[one.namespace, one.name] = one
    return found


def counted(*facts: NodeFacts | PodFacts | SliceFacts | ClaimFacts) -> Counted:
    return count(listing(*facts))


def counted_node(*facts: NodeFacts | PodFacts | SliceFacts | ClaimFacts) -> NodeCount:
    """The count of the first node."""
    return next(iter(counted(*facts).nodes.values()))


def reported(*facts: NodeFacts | PodFacts | SliceFacts | ClaimFacts) -> dict[str, Any]:
    return report(counted(*facts))


def reported_node(*facts: NodeFacts | PodFacts | SliceFacts | ClaimFacts) -> dict[str, Any]:
    """The report of the first node."""
    found: dict[str, Any] = next(iter(reported(*facts)["nodes"].values()))
    return found


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Taint:
    return Taint(key, value, effect)


def gpu_device(number: int, **told: Any) -> SliceDevice:
    """A GPU as NVIDIA's DRA driver publishes it."""
    attributes = {
        "type": "gpu",
        "productName": "NVIDIA A100-SXM4-40GB",
        "uuid": f"GPU-{number}",
        **told.pop("attributes", {}),
    }
    memory = told.pop("memory_bytes", 40 * 2**30)
    return SliceDevice(told.pop("name", f"gpu-{number}"), attributes, memory, **told)


def gpu_slice(*devices: SliceDevice, name: str = "s1", generation: int = 1) -> SliceFacts:
    return SliceFacts(name, "gpu.nvidia.com", "n1", generation, "n1", devices)


def claim(*devices: str, name: str = "c1", asks: int = 1) -> ClaimFacts:
    """A claim of namespace `llm` that holds these devices of node n1."""
    return ClaimFacts(
        "llm",
        name,
        asks={"gpu.nvidia.com": asks},
        devices=tuple(("gpu.nvidia.com", "n1", device) for device in devices),
    )
