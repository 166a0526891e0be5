"""What a node's labels say of its accelerators: model, memory and number.

Sources: NVIDIA GPU feature discovery (`nvidia.com/gpu.*`, memory in MiB), AMD node labeller (`amd.com/gpu.*`,
formerly `beta.amd.com/gpu.*`, memory as `192G`, GiB), Intel device plugins (`gpu.intel.com/*`, memory of all
cards in bytes), CoreWeave (`gpu.nvidia.com/*`, memory in GB), GKE, EKS, AKS and Karpenter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sizing.inventory.kubernetes.vendors import whole_type

_TYPES: dict[str, tuple[str, ...]] = {
    "nvidia": (
        "nvidia.com/gpu.product",
        "gpu.nvidia.com/model",
        "gpu.nvidia.com/class",
        "cloud.google.com/gke-accelerator",
        "k8s.amazonaws.com/accelerator",
        "eks.amazonaws.com/instance-gpu-name",
        "karpenter.k8s.aws/instance-gpu-name",
        "karpenter.azure.com/sku-gpu-name",
        "aliyun.accelerator/nvidia_name",
        "accelerator",
    ),
    "amd": (
        "amd.com/gpu.product-name",
        "beta.amd.com/gpu.product-name",
        "eks.amazonaws.com/instance-gpu-name",
        "karpenter.k8s.aws/instance-gpu-name",
        "accelerator",
    ),
    "intel": ("gpu.intel.com/product", "accelerator"),
    "habana": (
        "habana.ai/product.name",
        "karpenter.k8s.aws/instance-gpu-name",
        "accelerator",
    ),
    "google": ("cloud.google.com/gke-tpu-accelerator",),
    "aws": (
        "eks.amazonaws.com/instance-accelerator-name",
        "karpenter.k8s.aws/instance-accelerator-name",
        "k8s.amazonaws.com/accelerator",
    ),
}
_OTHER_TYPES = ("accelerator",)
# Values of a type label that name no model.
_NO_MODEL = frozenset({"", "nvidia", "amd", "intel", "gpu", "true", "on", "yes", "none", "false"})

_MEMORY_MIB = (
    "nvidia.com/gpu.memory",
    "amd.com/gpu.memory",
    "gpu.intel.com/memory",
    "habana.ai/device.memory",
    "karpenter.k8s.aws/instance-gpu-memory",
    "eks.amazonaws.com/instance-gpu-memory",
)
_COUNTS = (
    "nvidia.com/gpu.count",
    "gpu.nvidia.com/count",
    "cloud.google.com/gke-accelerator-count",
    "eks.amazonaws.com/instance-gpu-count",
    "karpenter.k8s.aws/instance-gpu-count",
)
_PRODUCTS = ("nvidia.com/gpu.product", "habana.ai/product.name")
_AMD_VRAM = ("amd.com/gpu.vram", "beta.amd.com/gpu.vram")
_AMD_COUNTED = ("beta.amd.com/gpu.product-name.", "amd.com/gpu.product-name.")
_INTEL_CARDS = ("gpu.intel.com/gpu-numbers", "gpu.intel.com/cards")
_INTEL_MEMORY = "gpu.intel.com/memory.max"
# A GPU of less is none of these days: the figure is in another unit.
_LEAST_MIB = 256
_MOST_MIB = 2**24
_MOST_DIGITS = 15

_PRODUCT_GB = re.compile(r"(?:^|[-_ ])(\d{1,5})GB(?![0-9A-Za-z])", re.IGNORECASE)
_VRAM = re.compile(r"(\d+)([MGT])(?:i?B)?")
_VRAM_MIB = {"M": 1, "G": 1024, "T": 1024 * 1024}

_SIGNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "nvidia",
        (
            "nvidia.com/gpu.present",
            "nvidia.com/gpu.product",
            "nvidia.com/gpu.count",
            "nvidia.com/gpu",
            "gpu.nvidia.com/model",
            "gpu.nvidia.com/class",
            "cloud.google.com/gke-accelerator",
            "karpenter.azure.com/sku-gpu-name",
            "feature.node.kubernetes.io/pci-10de.present",
            "feature.node.kubernetes.io/pci-0302_10de.present",
            "feature.node.kubernetes.io/pci-0300_10de.present",
        ),
    ),
    ("google", ("cloud.google.com/gke-tpu-accelerator",)),
    (
        "amd",
        (
            "amd.com/gpu.product-name",
            "beta.amd.com/gpu.product-name",
            "amd.com/gpu.device-id",
            "beta.amd.com/gpu.device-id",
            "feature.node.kubernetes.io/amd-gpu",
        ),
    ),
    ("intel", ("gpu.intel.com/product", "gpu.intel.com/cards", "gpu.intel.com/gpu-numbers")),
    ("habana", ("habana.ai/product.name", "feature.node.kubernetes.io/pci-1200_1da3.present")),
    (
        "aws",
        ("karpenter.k8s.aws/instance-accelerator-name", "eks.amazonaws.com/instance-accelerator-name"),
    ),
)
# Labels whose value tells the vendor.
_VENDOR_LABELS = (
    "kubernetes.azure.com/accelerator",
    "accelerator",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-manufacturer",
    "eks.amazonaws.com/instance-gpu-manufacturer",
)
_VENDOR_WORDS = (
    ("amd", ("amd", "instinct", "radeon", "mi2", "mi3")),
    ("intel", ("intel",)),
    ("habana", ("habana", "gaudi")),
    ("aws", ("inferentia", "trainium", "neuron")),
    ("google", ("tpu",)),
)


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of one device as labels tell it.

    `mib` is what the report says, `gb` a label in decimal GB, `unparsed` a label that is no number,
    `from_product` whether the figure stands in the model's name only.
    """

    mib: int | None = None
    gb: int | None = None
    unparsed: str = ""
    from_product: bool = False

    @property
    def stored_mib(self) -> int | None:
        """The memory that can be relied on: a label in decimal GB is rounded down to MiB."""
        if self.mib is None and self.gb is not None:
            return self.gb * 10**9 // 2**20
        return self.mib


def signed_vendor(labels: Mapping[str, str]) -> str | None:
    """The vendor of the accelerators that labels promise; None where they promise none."""
    for vendor, keys in _SIGNS:
        if any(labels.get(key, "false").lower() not in ("false", "0") for key in keys):
            return vendor
    for key in _VENDOR_LABELS:
        value = labels.get(key, "").lower()
        if value in ("", "none", "false"):
            continue
        for vendor, words in _VENDOR_WORDS:
            if any(word in value for word in words):
                return vendor
        return "nvidia"
    return None


def type_label(vendor: str | None, labels: Mapping[str, str]) -> str:
    """The model as a label spells it; empty where none tells it (or several models are told)."""
    for key in _TYPES.get(vendor or "", _OTHER_TYPES):
        value = labels.get(key, "").strip()
        if value.lower() not in _NO_MODEL:
            return value
    if vendor == "amd":
        counted = counted_models(labels)
        if len(counted) == 1:
            return next(iter(counted))
    return ""


def counted_models(labels: Mapping[str, str]) -> dict[str, int]:
    """AMD's labels of how many cards of which model there are (`…product-name.<model>=<n>`)."""
    found: dict[str, int] = {}
    for key, value in labels.items():
        for prefix in _AMD_COUNTED:
            cards = number(value) if key.startswith(prefix) else None
            if cards:
                found[key[len(prefix) :]] = cards
    return found


def number(value: str | None) -> int | None:
    """A label's whole number; None where it is none, or none that any hardware has."""
    text = (value or "").strip()
    return int(text) if len(text) <= _MOST_DIGITS and text.isascii() and text.isdecimal() else None


def plausible(mib: int | None) -> int | None:
    """Memory of a device that can be stored; None where the figure is none."""
    return mib if mib and mib <= _MOST_MIB else None


def count_label(labels: Mapping[str, str]) -> int | None:
    """How many accelerators the labels promise: never what can be used."""
    return next((n for n in (number(labels.get(key)) for key in _COUNTS) if n is not None), None)


def memory_of(vendor: str | None, labels: Mapping[str, str], capacity: Mapping[str, int]) -> Memory:
    """The memory of one whole device, or of one slice where the labels describe slices."""
    unparsed = ""
    if vendor == "amd":
        value = next((labels[key] for key in _AMD_VRAM if labels.get(key)), "")
        parsed = _VRAM.fullmatch(value)
        size = number(parsed[1]) if parsed else None
        if parsed and size:
            return Memory(mib=size * _VRAM_MIB[parsed[2]])
        unparsed = value
    for key in _MEMORY_MIB:
        value = labels.get(key, "").strip()
        mib = number(value)
        if mib is not None and _LEAST_MIB <= mib <= _MOST_MIB:
            return Memory(mib=mib)
        unparsed = unparsed or value
    vram = labels.get("gpu.nvidia.com/vram", "").strip()
    gb = number(vram)
    if gb:
        return Memory(gb=gb, unparsed=unparsed)
    if vendor == "intel":
        return Memory(mib=_intel_memory(labels, capacity), unparsed=unparsed)
    found = _product_mib(next((labels[key] for key in _PRODUCTS if labels.get(key)), ""))
    return Memory(mib=found, unparsed=unparsed or vram, from_product=found is not None)


def _product_mib(product: str) -> int | None:
    """The memory that a model's name tells. A slice's is not its card's, a GH200's is the processor's."""
    name = whole_type(product)
    found = _PRODUCT_GB.search(name)
    if found is None or name != product or ("GH200" in name and int(found[1]) > 200):
        return None
    return int(found[1]) * 1024


def intel_cards(labels: Mapping[str, str]) -> int | None:
    """The number of Intel cards: labels list them (`card0.card1`), long lists in several labels."""
    for key in _INTEL_CARDS:
        if labels.get(key):
            lists = [value for name, value in labels.items() if re.fullmatch(rf"{re.escape(key)}\d*", name)]
            return sum(len([card for card in value.split(".") if card]) for value in lists)
    return None


def _intel_memory(labels: Mapping[str, str], capacity: Mapping[str, int]) -> int | None:
    """The memory of one card; label and resource tell that of all cards, in bytes."""
    cards = intel_cards(labels)
    total = number(labels.get(_INTEL_MEMORY)) or capacity.get(_INTEL_MEMORY)
    return total // cards // 2**20 if total and cards else None
