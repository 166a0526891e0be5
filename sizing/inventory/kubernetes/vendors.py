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
# `GRID_T4-4Q`), and GPUs renamed in the plugin's configuration (`rtx-3090`, `gpu-a100`). Memory and core
# shares (`gpumem`, `gpucores`) and network resources are no devices.
_DEVICES: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (domain, vendor, re.compile(pattern))
    for domain, vendor, pattern in (
        (
            "nvidia.com",
            "nvidia",
            r"gpu|gpu[.-](?!mem|core)[\w.-]+|mig-.+|pgpu|vgpu|(?!.*NVSWITCH)[A-Z][\w.-]*"
            r"|(nvidia-)?(geforce-|quadro-|tesla-|titan|(rtx|gtx|g[bh]|[abhklptv])[-_]?\d)[\w.-]*",
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

# `GRID_T4-4Q`, MIG-backed `A100-1-5C`: the number before the letter is the frame buffer in GB.
_VGPU = re.compile(r"[A-Z].*-(?:\d-)?(\d{1,3})[QCBA](?:ME)?\d?")
# Renamed GPUs aside, what else NVIDIA's and HAMi's plugins and the network operator name under nvidia.com.
_NO_GPU = re.compile(
    r"v?gpu[.-]?(mem|core).*|v?gpu-priority|priority|.*NVSWITCH.*|hostdev.*|ib.*"
    r"|.*(nic|rdma|sriov|roce|mlnx|connectx|cx\d|bf\d|dpu|infiniband|ethernet).*"
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


def may_be_device(resource: str) -> bool:
    """Whether a resource that is not counted may be one of GPUs under a name of its owner's choice."""
    domain, _, name = resource.partition("/")
    return domain == "nvidia.com" and not is_device(resource) and _NO_GPU.fullmatch(name) is None


def is_vgpu(resource: str) -> bool:
    """Whether a resource gives virtual GPUs, as KubeVirt nodes offer them by the name of their profile."""
    domain, _, name = resource.partition("/")
    return domain == "nvidia.com" and (name == "vgpu" or _VGPU.fullmatch(name) is not None)


def vgpu_mib(resource: str) -> int | None:
    """The memory of a virtual GPU by its profile; None where the name does not tell it.

    https://docs.nvidia.com/vgpu/latest/grid-vgpu-user-guide/ (names of virtual GPU types)
    """
    found = _VGPU.fullmatch(resource.partition("/")[2])
    return int(found[1]) * 1024 or None if found else None


def is_called(resource: str, label: str) -> bool:
    """Whether the name of a renamed resource (`gpu-a100`) is made of words of a model's label."""
    words = set(re.split(r"[-_. ]", label.lower()))
    named = set(re.split(r"[-_.]", resource.partition("/")[2].lower())) - {"gpu", "nvidia", "shared"}
    return named <= words


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
