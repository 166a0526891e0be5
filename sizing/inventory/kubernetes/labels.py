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
_OF_ANY_VENDOR = frozenset(
    {
        "accelerator",
        "k8s.amazonaws.com/accelerator",
        "eks.amazonaws.com/instance-gpu-name",
        "karpenter.k8s.aws/instance-gpu-name",
    }
)
# GPU feature discovery writes so where the cards of a node are not all cut alike.
_INVALID_CUT = "-MIG-INVALID"
# Values of a type label that name no model.
_NO_MODEL = frozenset({"", "nvidia", "amd", "intel", "gpu", "true", "on", "yes", "none", "false"})

_CLOUD_MEMORY_MIB = ("karpenter.k8s.aws/instance-gpu-memory", "eks.amazonaws.com/instance-gpu-memory")
_MEMORY_MIB: dict[str, tuple[str, ...]] = {
    "nvidia": ("nvidia.com/gpu.memory", *_CLOUD_MEMORY_MIB),
    "amd": ("amd.com/gpu.memory", *_CLOUD_MEMORY_MIB),
    "intel": ("gpu.intel.com/memory",),
    "habana": ("habana.ai/device.memory", *_CLOUD_MEMORY_MIB),
}
DISCOVERED = "nvidia.com/gpu.count"
"""The number of cards of the model that GPU feature discovery labels; of slices where it labels those."""
_COUNTS = (
    DISCOVERED,
    "gpu.nvidia.com/count",
    "cloud.google.com/gke-accelerator-count",
    "eks.amazonaws.com/instance-gpu-count",
    "karpenter.k8s.aws/instance-gpu-count",
)
_PRODUCTS = {"nvidia": "nvidia.com/gpu.product", "habana": "habana.ai/product.name"}
_AMD_VRAM = ("amd.com/gpu.vram", "beta.amd.com/gpu.vram")
_AMD_COUNTED = ("beta.amd.com/gpu.product-name.", "amd.com/gpu.product-name.")
_INTEL_CARDS = ("gpu.intel.com/gpu-numbers", "gpu.intel.com/cards")
_INTEL_COUNT = "gpu.intel.com/device.count"
_INTEL_COUNT_BY_ID = re.compile(r"gpu\.intel\.com/device-id\..+\.count")
_INTEL_MEMORY = "gpu.intel.com/memory.max"
# A GPU of less is none of these days: the figure is in another unit.
_LEAST_MIB = 256
_MOST_MIB = 2**24
_MOST_DIGITS = 15

_PRODUCT_GB = re.compile(r"(?:^|[-_ ])(\d{1,5})GB(?![0-9A-Za-z])", re.IGNORECASE)
_VRAM = re.compile(r"(\d+)([MGT])(?:i?B)?")
_VRAM_MIB = {"M": 1, "G": 1024, "T": 1024 * 1024}

# Words in the value of a label that serves all vendors.
_VENDOR_WORDS = (
    ("nvidia", ("nvidia", "tesla", "geforce", "quadro", "rtx", "gtx")),
    ("amd", ("amd", "instinct", "radeon", "mi2", "mi3")),
    ("habana", ("habana", "gaudi")),
    ("intel", ("intel",)),
    ("aws", ("inferentia", "trainium", "neuron")),
    ("google", ("tpu",)),
    ("huawei", ("huawei", "ascend")),
    ("cambricon", ("cambricon", "mlu")),
    ("iluvatar", ("iluvatar",)),
    ("hygon", ("hygon",)),
    ("metax", ("metax",)),
    ("mthreads", ("mthreads",)),
    ("enflame", ("enflame",)),
    ("kunlunxin", ("kunlun",)),
    ("birentech", ("biren",)),
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


def vendor_of_words(value: str) -> str | None:
    """The vendor that a value names, itself or by a series of its devices; None where it names none."""
    words = value.lower()
    return next((vendor for vendor, known in _VENDOR_WORDS if any(word in words for word in known)), None)


def type_label(vendor: str | None, labels: Mapping[str, str]) -> str:
    """The model as a label spells it; empty where none tells it (or several models are told)."""
    for key in _TYPES.get(vendor or "", _OTHER_TYPES):
        value = labels.get(key, "").strip()
        others = key in _OF_ANY_VENDOR and vendor_of_words(value) not in (None, vendor)
        if value.lower() not in _NO_MODEL and not others:
            return value.removesuffix(_INVALID_CUT)
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
        value = _amd_vram(labels)
        parsed = _VRAM.fullmatch(value)
        size = number(parsed[1]) if parsed else None
        if parsed and size:
            return Memory(mib=size * _VRAM_MIB[parsed[2]])
        unparsed = value
    for key in _MEMORY_MIB.get(vendor or "", ()):
        value = labels.get(key, "").strip()
        mib = number(value)
        if mib is not None and _LEAST_MIB <= mib <= _MOST_MIB:
            return Memory(mib=mib)
        unparsed = unparsed or value
    vram = labels.get("gpu.nvidia.com/vram", "").strip() if vendor == "nvidia" else ""
    gb = number(vram)
    if gb:
        return Memory(gb=gb, unparsed=unparsed)
    if vendor == "intel":
        return Memory(mib=_intel_memory(labels, capacity), unparsed=unparsed)
    found = _product_mib(labels.get(_PRODUCTS.get(vendor or "", ""), ""))
    return Memory(mib=found, unparsed=unparsed or vram, from_product=found is not None)


def _amd_vram(labels: Mapping[str, str]) -> str:
    """`192G`; older labellers write it into the key, `…vram.16G=1`. Empty where the cards differ."""
    told = next((labels[key] for key in _AMD_VRAM if labels.get(key)), "")
    if told:
        return told
    sizes = {
        key[len(prefix) + 1 :]
        for prefix in _AMD_VRAM
        for key, value in labels.items()
        if key.startswith(f"{prefix}.") and number(value)
    }
    return sizes.pop() if len(sizes) == 1 else ""


def _product_mib(product: str) -> int | None:
    """The memory that a model's name tells. A slice's is not its card's, a GH200's is the processor's."""
    name = whole_type(product)
    found = _PRODUCT_GB.search(name)
    if found is None or name != product or ("GH200" in name and int(found[1]) > 200):
        return None
    return int(found[1]) * 1024


def intel_cards(labels: Mapping[str, str]) -> int | None:
    """The number of Intel cards; None where it is not told.

    Labels list them (`card0.card1`), long lists in several labels, or today count them, in all or by model.
    """
    for key in _INTEL_CARDS:
        if labels.get(key):
            lists = [value for name, value in labels.items() if re.fullmatch(rf"{re.escape(key)}\d*", name)]
            return sum(len([card for card in value.split(".") if card]) for value in lists)
    by_id = [number(value) for name, value in labels.items() if _INTEL_COUNT_BY_ID.fullmatch(name)]
    return number(labels.get(_INTEL_COUNT)) or sum(told or 0 for told in by_id) or None


def _intel_memory(labels: Mapping[str, str], capacity: Mapping[str, int]) -> int | None:
    """The memory of one card; label and resource tell that of all cards, in bytes."""
    cards = intel_cards(labels)
    total = number(labels.get(_INTEL_MEMORY)) or capacity.get(_INTEL_MEMORY)
    return total // cards // 2**20 if total and cards else None
