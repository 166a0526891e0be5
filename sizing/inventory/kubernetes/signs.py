"""What a node's labels promise of accelerators: whose they are, whether or not a device plugin offers any.

Sources: NVIDIA GPU operator and feature discovery, ROCm's node labeller, Intel's and Habana's rules for node
feature discovery, and the labels that GKE, EKS, AKS and Karpenter give to their machine types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sizing.inventory.kubernetes.labels import count_label, vendor_of_words

_SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (vendor, re.compile(pattern))
    for vendor, pattern in (
        (
            "nvidia",
            r"nvidia\.com/(gpu|gpu\.(present|product|count|deploy\.device-plugin))"
            r"|gpu\.nvidia\.com/(model|class)"
            r"|cloud\.google\.com/gke-(accelerator|gpu)"
            r"|karpenter\.azure\.com/sku-gpu-name"
            r"|feature\.node\.kubernetes\.io/pci-(030[02]_)?10de\.present",
        ),
        ("google", r"cloud\.google\.com/gke-tpu-accelerator"),
        (
            "amd",
            # Older labellers write the value into the key: `beta.amd.com/gpu.family.AI=1`.
            r"(beta\.)?amd\.com/gpu\.(product-name|device-id|family|vram)(\..+)?"
            r"|feature\.node\.kubernetes\.io/amd-gpu",
        ),
        (
            "intel",
            r"gpu\.intel\.com/(product|family|cards|gpu-numbers|device\.count|device-id\..+\.(present|count))"
            r"|intel\.feature\.node\.kubernetes\.io/gpu",
        ),
        ("habana", r"habana\.ai/product\.name|feature\.node\.kubernetes\.io/pci-(1200_)?1da3\.present"),
        ("aws", r"(karpenter\.k8s\.aws|eks\.amazonaws\.com)/instance-accelerator-name"),
    )
)
# Labels whose value tells the vendor.
_VALUES = (
    "kubernetes.azure.com/accelerator",
    "accelerator",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-manufacturer",
    "eks.amazonaws.com/instance-gpu-manufacturer",
    "karpenter.k8s.aws/instance-gpu-name",
    "eks.amazonaws.com/instance-gpu-name",
)
_NO = frozenset({"", "none", "false", "0"})


def signed_vendor(labels: Mapping[str, str]) -> str | None:
    """The vendor of the accelerators that labels promise; None where they promise none, or not whose."""
    told = [key for key, value in labels.items() if value.lower() not in _NO]
    for vendor, pattern in _SIGNS:
        if any(pattern.fullmatch(key) for key in told):
            return vendor
    for key in _VALUES:
        value = labels.get(key, "").lower()
        if value not in _NO:
            return vendor_of_words(value) or "nvidia"
    return None


def promised(labels: Mapping[str, str]) -> bool:
    """Whether labels promise accelerators."""
    return signed_vendor(labels) is not None or bool(count_label(labels))
