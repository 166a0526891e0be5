"""GPUs that several pods share: time slices, MPS, vGPU splits.

Their number is no number of GPUs, and slices of one pod may lie on one card. Sources: NVIDIA
k8s-device-plugin ("Shared Access to GPUs": `gpu.replicas`, `gpu.sharing-strategy`, product suffix `-SHARED`,
resource `nvidia.com/gpu.shared`), GKE time-sharing labels, Intel device plugin (`shared-dev-num`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sizing.inventory.kubernetes.labels import intel_cards, number
from sizing.inventory.kubernetes.mig import profile_of
from sizing.inventory.kubernetes.vendors import NVIDIA_GPU, is_vgpu

TIME_SLICING = "time-slicing"
MPS = "mps"
VGPU = "vgpu"

_STRATEGY = "nvidia.com/gpu.sharing-strategy"
_REPLICAS = "nvidia.com/gpu.replicas"
_GKE_STRATEGY = "cloud.google.com/gke-gpu-sharing-strategy"
_GKE_REPLICAS = "cloud.google.com/gke-max-shared-clients-per-gpu"
_INTEL = ("gpu.intel.com/i915", "gpu.intel.com/xe")
_VGPU_PRODUCT = re.compile(r"(?:^|[-_])(?:GRID[-_].+|[A-Z]+\d+\w*-\d+[QCBA])$")


@dataclass(frozen=True, slots=True)
class Sharing:
    """How a node's devices are shared. `replicas` None: not told; `resources` are those of the shares."""

    strategy: str
    replicas: int | None
    resources: frozenset[str]

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
    """How the node's devices are shared; None where each serves one pod."""
    offered = [name for name, number_ in capacity.items() if number_]
    renamed = [name for name in offered if name.endswith(".shared") and not profile_of(name)]
    strategy = labels.get(_STRATEGY, "none")
    replicas = number(labels.get(_REPLICAS))
    product = labels.get("nvidia.com/gpu.product", "")
    if (replicas or 0) > 1 or product.endswith("-SHARED") or renamed:
        known = strategy if strategy not in ("", "none") else TIME_SLICING
        shares = frozenset(renamed or [NVIDIA_GPU])
        return Sharing(known, replicas if (replicas or 0) > 1 else None, shares)
    gke_replicas = number(labels.get(_GKE_REPLICAS))
    if labels.get(_GKE_STRATEGY) and (gke_replicas or 0) > 1:
        return Sharing(labels[_GKE_STRATEGY], gke_replicas, frozenset([NVIDIA_GPU]))
    if labels.get("nvidia.com/vgpu.present") == "true" or _VGPU_PRODUCT.search(product):
        return Sharing(VGPU, None, frozenset([NVIDIA_GPU]))
    virtual = frozenset(name for name in offered if is_vgpu(name))
    if virtual:
        return Sharing(VGPU, None, virtual)
    return _slices(labels, offered) or _intel(labels, capacity)


def _slices(labels: Mapping[str, str], offered: Iterable[str]) -> Sharing | None:
    """MIG slices of the mixed strategy that are shared themselves; their labels are those of the profile."""
    found: dict[str, int] = {}
    strategy = TIME_SLICING
    for resource in offered:
        own = resource.removesuffix(".shared")
        replicas = number(labels.get(f"{own}.replicas")) or 1
        told = labels.get(f"{own}.product", "").endswith("-SHARED") or resource != own
        if profile_of(resource) and (replicas > 1 or told):
            found[resource] = replicas
            strategy = labels.get(f"{own}.sharing-strategy") or strategy
    if not found:
        return None
    each = set(found.values())
    replicas = each.pop() if len(each) == 1 else 1
    return Sharing(strategy, replicas if replicas > 1 else None, frozenset(found))


def _intel(labels: Mapping[str, str], capacity: Mapping[str, int]) -> Sharing | None:
    """Intel's plugin offers each card `shared-dev-num` times; only the number of cards shows it."""
    cards = intel_cards(labels)
    resources = frozenset(name for name in _INTEL if capacity.get(name))
    offered = sum(capacity[name] for name in resources)
    if cards and offered > cards and offered % cards == 0:
        return Sharing("shared-dev-num", offered // cards, resources)
    return None
