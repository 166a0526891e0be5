"""GPUs that several pods share: time slices, MPS, vGPU splits.

Their number is no number of GPUs, and slices of one pod may lie on one card. Sources: NVIDIA
k8s-device-plugin ("Shared Access to GPUs": `gpu.replicas`, `gpu.sharing-strategy`, product suffix `-SHARED`,
resource `nvidia.com/gpu.shared`), GKE time-sharing labels, Intel device plugin (`shared-dev-num`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sizing.inventory.kubernetes.labels import intel_cards, number
from sizing.inventory.kubernetes.vendors import NVIDIA_GPU

TIME_SLICING = "time-slicing"
MPS = "mps"
VGPU = "vgpu"

_STRATEGY = "nvidia.com/gpu.sharing-strategy"
_REPLICAS = "nvidia.com/gpu.replicas"
_GKE_STRATEGY = "cloud.google.com/gke-gpu-sharing-strategy"
_GKE_REPLICAS = "cloud.google.com/gke-max-shared-clients-per-gpu"
_VGPU_PRODUCT = re.compile(r"(?:^|[-_])(?:GRID[-_].+|[A-Z]+\d+\w*-\d+[QCBA])$")


@dataclass(frozen=True, slots=True)
class Sharing:
    """How a node's devices are shared. `replicas` None: not told; `resource` is the one whose devices are."""

    strategy: str
    replicas: int | None
    resource: str

    @property
    def isolated(self) -> bool:
        """Whether each share has memory of its own; time slices have none."""
        return self.strategy in (MPS, VGPU)

    def as_report(self) -> dict[str, object]:
        """The report's `sharing`."""
        if self.replicas is None:
            return {"strategy": self.strategy}
        return {"strategy": self.strategy, "replicas": self.replicas}


def sharing_of(labels: Mapping[str, str], capacity: Mapping[str, int]) -> Sharing | None:
    """How the node's whole devices are shared; None where each serves one pod."""
    resource = next((name for name in capacity if name.endswith(".shared") and capacity[name]), NVIDIA_GPU)
    strategy = labels.get(_STRATEGY, "none")
    replicas = number(labels.get(_REPLICAS))
    product = labels.get("nvidia.com/gpu.product", "")
    if (replicas or 0) > 1 or product.endswith("-SHARED") or resource != NVIDIA_GPU:
        known = strategy if strategy not in ("", "none") else TIME_SLICING
        return Sharing(known, replicas if (replicas or 0) > 1 else None, resource)
    gke_replicas = number(labels.get(_GKE_REPLICAS))
    if labels.get(_GKE_STRATEGY) and (gke_replicas or 0) > 1:
        return Sharing(labels[_GKE_STRATEGY], gke_replicas, NVIDIA_GPU)
    if labels.get("nvidia.com/vgpu.present") == "true" or _VGPU_PRODUCT.search(product):
        return Sharing(VGPU, None, NVIDIA_GPU)
    return _intel(labels, capacity)


def _intel(labels: Mapping[str, str], capacity: Mapping[str, int]) -> Sharing | None:
    """Intel's plugin offers each card `shared-dev-num` times; only the number of cards shows it."""
    cards = intel_cards(labels)
    for resource in ("gpu.intel.com/i915", "gpu.intel.com/xe"):
        offered = capacity.get(resource, 0)
        if cards and offered > cards and offered % cards == 0:
            return Sharing("shared-dev-num", offered // cards, resource)
    return None
