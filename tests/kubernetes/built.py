"""Kubernetes objects as `kubectl get -o json` prints them, built from the little that matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

Object = dict[str, Any]

GPU = "nvidia.com/gpu"
SHARED = "nvidia.com/gpu.shared"
MIG_1G = "nvidia.com/mig-1g.10gb"
MIG_3G = "nvidia.com/mig-3g.40gb"
AMD = "amd.com/gpu"
NVIDIA_TAINT: Object = {"key": GPU, "value": "present", "effect": "NoSchedule"}
H100_LABELS = {
    "nvidia.com/gpu.present": "true",
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/gpu.count": "8",
}
WITH_MIG = H100_LABELS | {"nvidia.com/mig.strategy": "mixed", "nvidia.com/mig.config.state": "success"}
TIME_SLICED = H100_LABELS | {
    "nvidia.com/gpu.replicas": "4",
    "nvidia.com/gpu.sharing-strategy": "time-slicing",
}
MI300X_LABELS = {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"}
CPX_LABELS = MI300X_LABELS | {"amd.com/compute-memory-partition": "cpx_nps1"}


def node(
    name: str = "gpu-a1",
    capacity: Mapping[str, Any] | None = None,
    allocatable: Mapping[str, Any] | None = None,
    *,
    ready: str | None = "True",
    unschedulable: bool | None = None,
    taints: Sequence[Object] = (),
    labels: Mapping[str, str] | None = None,
    deleting: bool = False,
) -> Object:
    """A Node; without `allocatable` all of its capacity is. `ready` None: it has no Ready condition."""
    spec: Object = {}
    if unschedulable is not None:
        spec["unschedulable"] = unschedulable
    if taints:
        spec["taints"] = list(taints)
    conditions = [{"type": "MemoryPressure", "status": "False"}]
    if ready is not None:
        conditions.append({"type": "Ready", "status": ready})
    capacity = {"cpu": "128", "memory": "1Ti", "pods": "110", GPU: "8"} if capacity is None else capacity
    found: Object = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-of-{name}", "labels": dict(labels or {})},
        "spec": spec,
        "status": {
            "capacity": dict(capacity),
            "allocatable": dict(capacity if allocatable is None else allocatable),
            "conditions": conditions,
        },
    }
    if deleting:
        found["metadata"]["deletionTimestamp"] = "2026-11-30T09:50:00Z"
    return found


def container(
    requests: Any = None, limits: Any = None, *, name: str = "main", always: bool = False
) -> Object:
    """A container; with `always` one that is a sidecar where it stands among the init containers."""
    found: Object = {"name": name, "image": "example.com/server:1", "resources": {}}
    if requests is not None:
        found["resources"]["requests"] = requests
    if limits is not None:
        found["resources"]["limits"] = limits
    if always:
        found["restartPolicy"] = "Always"
    return found


def pod(
    name: str = "llama-0",
    on: str | None = "gpu-a1",
    containers: Sequence[Object] | None = None,
    *,
    phase: str | None = "Running",
    init: Sequence[Object] = (),
    overhead: Mapping[str, Any] | None = None,
    deleting: bool = False,
    number: int | None = None,
    **spec: Any,
) -> Object:
    """A Pod of one GPU where nothing else is said. `number` makes its uid."""
    found: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "llm",
            "name": name,
            "uid": f"uid-of-{name}" if number is None else str(UUID(int=number)),
        },
        "spec": {"containers": list([container({GPU: "1"})] if containers is None else containers), **spec},
        "status": {},
    }
    if on is not None:
        found["spec"]["nodeName"] = on
    if phase is not None:
        found["status"]["phase"] = phase
    if init:
        found["spec"]["initContainers"] = list(init)
    if overhead is not None:
        found["spec"]["overhead"] = dict(overhead)
    if deleting:
        found["metadata"]["deletionTimestamp"] = "2026-11-30T09:50:00Z"
    return found


def listing(objects: Sequence[Object]) -> Object:
    """What `kubectl get nodes,pods -A -o json` prints."""
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": list(objects)}
