"""Which extended resources are accelerators, whose they are, and how their models are called.

Names come from the device plugins' own documentation: NVIDIA k8s-device-plugin and sandbox device plugin,
ROCm k8s-device-plugin, Intel device plugins, Gaudi, GKE TPU, AWS Neuron, Ascend and others.
"""

from __future__ import annotations

import re
from functools import lru_cache

NVIDIA_GPU = "nvidia.com/gpu"
NVIDIA_SHARED = "nvidia.com/gpu.shared"
MIG = "nvidia.com/mig-"
NEURON = "aws.amazon.com/neuron"
NEURON_CORE = "aws.amazon.com/neuroncore"
NEURON_DEVICE = "aws.amazon.com/neurondevice"

# nvidia.com: whole GPUs, shared ones, MIG slices, passthrough and vGPU names (`GA102GL_A10`,
# `GRID_T4-4Q`), and GPUs renamed in the plugin's configuration (`rtx-3090`). Memory and core shares
# (`gpumem`, `gpucores`) and network resources are no devices.
_DEVICES: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (domain, vendor, re.compile(pattern))
    for domain, vendor, pattern in (
        (
            "nvidia.com",
            "nvidia",
            r"gpu(\.shared)?|mig-.+|pgpu|vgpu|(?!.*NVSWITCH)[A-Z][\w.-]*"
            r"|(rtx|gtx|tesla|quadro|g[bh]|[abhklptv])[-_]?\d[\w.-]*",
        ),
        ("amd.com", "amd", r"gpu|[sdtqc]px_nps\d+"),
        ("gpu.intel.com", "intel", r"i915|xe|gpu"),
        ("habana.ai", "habana", r"gaudi\d?|goya"),
        ("google.com", "google", r"tpu"),
        ("aws.amazon.com", "aws", r"neuron|neuroncore|neurondevice"),
        ("huawei.com", "huawei", r"Ascend(?!.*-(memory|core)$).*|npu"),
        ("cambricon.com", "cambricon", r"(v?mlu|real-mlu|env-share-mlu|mlu\d+)(\.share)?"),
        ("iluvatar.ai", "iluvatar", r"v?gpu"),
        ("iluvatar.com", "iluvatar", r"v?gpu"),
        ("hygon.com", "hygon", r"dcu(num)?"),
        ("metax-tech.com", "metax", r"s?gpu"),
        ("mthreads.com", "mthreads", r"v?gpu"),
        ("enflame.com", "enflame", r"v?gcu"),
        ("kunlunxin.com", "kunlunxin", r"v?xpu"),
        ("baidu.com", "kunlunxin", r"kunlun"),
        ("birentech.com", "birentech", r"gpu"),
        ("rebellions.ai", "rebellions", r"[A-Z]+"),
        ("furiosa.ai", "furiosa", r"npu|warboy|rngd"),
        ("tenstorrent.com", "tenstorrent", r"n\d+|wormhole|blackhole|grayskull"),
        ("qualcomm.com", "qualcomm", r"qaic"),
        ("volcano.sh", "nvidia", r"vgpu-number"),
    )
)

_PREFIX = re.compile(r"^(?:nvidia|amd|intel)[-_ ]|^tesla[-_ ]", re.IGNORECASE)
_SHARED = re.compile(r"-SHARED$")
_SLICE = re.compile(r"-MIG-.*$")
_FORM_FACTOR = re.compile(r"[-_ ](?:OAM|VF)$")


@lru_cache(maxsize=4096)
def vendor_of(resource: str) -> str | None:
    """The vendor of an accelerator resource; None where the resource is no accelerator."""
    domain, _, name = resource.partition("/")
    for known, vendor, pattern in _DEVICES:
        if domain == known:
            return vendor if pattern.fullmatch(name) else None
    return None


def is_device(resource: str) -> bool:
    """Whether a resource is counted in accelerators (or in slices of them)."""
    return vendor_of(resource) is not None


def whole_type(label: str) -> str:
    """A label's type without the marks of MIG and of sharing."""
    return _SLICE.sub("", _SHARED.sub("", label))


@lru_cache(maxsize=4096)
def plain_type(label: str) -> str:
    """A type as people read it: without the vendor, MIG and sharing marks, with dashes for spaces.

    AMD's labeller writes underscores and the form factor (`AMD_Instinct_MI300X_OAM`): `Instinct-MI300X`.
    """
    name = whole_type(label).replace(" ", "-")
    if name.lower().startswith("amd"):
        name = _FORM_FACTOR.sub("", name).replace("_", "-")
    return _PREFIX.sub("", name)
