"""Small random clusters where things happen: tight memory, mixed types, slices, shared GPUs, closed nodes.

Each cluster has only some of the complications, so that they meet each other without closing everything.
Running replicas are placed validly: their claims fit the GPUs' memory, and a whole-GPU claim stands alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from typing import NamedTuple, TypeVar

from hypothesis import strategies as st

from sizing.domain.specs import GpuSpec, ModelSpec, NodeSpec, ReplicaSpec, Taint, Toleration, VariantSpec
from tests.domain.plain_rules import HOLDING, claim_on, is_whole

SPELLINGS = {
    "a100": ("NVIDIA-A100-SXM4-80GB", "a100_sxm4 80gb", "Nvidia A100-SXM4_80GB"),
    "mi300x": ("AMD-Instinct-MI300X", "instinct mi300x", "AMD_Instinct_MI300X_OAM"),
    "l4": ("L4", "NVIDIA-L4", "nvidia_l4"),
    "max": ("Intel-Max_1550", "MAX 1550"),
    "slice": ("NVIDIA-H100-MIG-1g.10gb", "h100_mig 1g.10gb"),
    "time slice": ("L4-SHARED", "nvidia l4 shared"),
}
WHOLE_TYPES = ("a100", "mi300x", "l4", "max")
PARTITION_TYPES = ("slice", "time slice")
MEMORY_SIZES = ((8000, 10000, 12000), (20000, 24564, 25000), (80000, 81559, 81920))
FRACTIONS = tuple(map(Decimal, ("0.2", "0.28", "0.33", "0.333333", "0.5", "0.500001", "0.55", "0.9", "1")))
NODE_NAMES = ("gpu-a", "gpu-10", "gpu-9", "GPU-z")
LABEL_KEYS = ("zone", "pool")
TAINT_KEYS = ("dedicated", "maintenance")
TAINT_VALUES = ("", "rag", "chat")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
STATES = ("ready", "ready", "ready", "ready", "starting", "draining", "failed", "pending")

COMPLICATIONS = (
    "two types",
    "partitions",
    "named types",
    "unknown memory",
    "unhealthy",
    "used outside",
    "not ready",
    "cordoned",
    "stale",
    "labels",
    "taints",
    "host",
    "many nodes",
    "many GPUs",
    "mixed sizes",
)

CLOSING = (
    "not ready",
    "cordoned",
    "stale",
    "taints",
    "named types",
    "partitions",
    "unknown memory",
    "unhealthy",
)
"""Complications that mostly leave less to place on."""

T = TypeVar("T")


class Cluster(NamedTuple):
    """A fleet and the variant that more replicas are asked of."""

    nodes: tuple[NodeSpec, ...]
    models: tuple[ModelSpec, ...]
    replicas: tuple[ReplicaSpec, ...]
    model: ModelSpec
    variant: VariantSpec


class Flavor(NamedTuple):
    """What a cluster is made of: few kinds, so that GPUs and asks meet."""

    types: tuple[str, ...]
    sizes: tuple[int, ...]
    has: frozenset[str]


@cache
def index_below(number: int) -> st.SearchStrategy[int]:
    return st.integers(0, number - 1)


def pick(draw: st.DrawFn, *choices: T) -> T:
    """One of the choices; shrinks to the first."""
    return choices[draw(index_below(len(choices)))]


def once_in(draw: st.DrawFn, number: int) -> bool:
    """True about once in that many draws; shrinks to False."""
    return draw(index_below(number)) + 1 == number


def flavor(draw: st.DrawFn, always: Sequence[str], never: Sequence[str]) -> Flavor:
    has = {name for name in COMPLICATIONS if name not in never and (name in always or once_in(draw, 4))}
    first = pick(draw, *WHOLE_TYPES)
    types = [first]
    if "two types" in has:
        types.append(pick(draw, *(kind for kind in WHOLE_TYPES if kind != first)))
    if "partitions" in has:
        types.append(pick(draw, *PARTITION_TYPES))
    return Flavor(tuple(types), pick(draw, *MEMORY_SIZES), frozenset(has))


# ---------------------------------------------------------------- nodes


def gpu_spec(draw: st.DrawFn, of: Flavor, index: int) -> GpuSpec:
    kind = pick(draw, *of.types)
    size = pick(draw, *of.sizes) if "mixed sizes" in of.has else of.sizes[0]
    outside = 0
    if "used outside" in of.has:
        outside = pick(draw, 0, 0, 0, 1, 1024, 1025, size // 4, size // 2 - 1, size // 2, size, size + 5)
    return GpuSpec(
        index=index,
        type=pick(draw, *SPELLINGS[kind]),
        memory_mib=None if "unknown memory" in of.has and once_in(draw, 3) else size,
        healthy=not ("unhealthy" in of.has and once_in(draw, 4)),
        used_outside_mib=outside,
        # Now and then a slice and a whole GPU go by one name.
        partition=(kind in PARTITION_TYPES) != ("partitions" in of.has and once_in(draw, 12)),
    )


def node_spec(draw: st.DrawFn, of: Flavor, name: str) -> NodeSpec:
    number = pick(draw, 1, 2, 3, 4, 4, 0) if "many GPUs" in of.has else pick(draw, 1, 1, 2, 2, 2)
    first, step = pick(draw, (0, 1), (0, 3), (7, -2))  # indexes have gaps, and no order
    return NodeSpec(
        name=name,
        gpus=tuple(gpu_spec(draw, of, first + step * i) for i in range(number)),
        ready=not ("not ready" in of.has and once_in(draw, 4)),
        schedulable=not ("cordoned" in of.has and once_in(draw, 4)),
        stale="stale" in of.has and once_in(draw, 4),
        labels=labels(draw) if "labels" in of.has else {},
        taints=tuple(taint(draw) for _ in range(pick(draw, 0, 0, 1, 2))) if "taints" in of.has else (),
        cpu_millis=host_limit(draw, of),
        memory_mib=host_limit(draw, of),
        pods=pick(draw, None, None, 0, 1, 2, 3, 5) if "host" in of.has else None,
    )


def labels(draw: st.DrawFn) -> dict[str, str]:
    found = {key: pick(draw, "x", "x", "x", "y", "y", "", None) for key in LABEL_KEYS}
    return {key: value for key, value in found.items() if value is not None}


def taint(draw: st.DrawFn) -> Taint:
    return Taint(pick(draw, *TAINT_KEYS), pick(draw, *TAINT_VALUES), pick(draw, *EFFECTS))


def host_limit(draw: st.DrawFn, of: Flavor) -> int | None:
    return pick(draw, None, None, 0, 1000, 3000, 4000, 8000) if "host" in of.has else None


# ---------------------------------------------------------------- models and variants


def toleration(draw: st.DrawFn) -> Toleration:
    effect = pick(draw, "", "", "", *EFFECTS)
    if once_in(draw, 2):
        return Toleration(pick(draw, "", *TAINT_KEYS), "Exists", "", effect)
    return Toleration(pick(draw, *TAINT_KEYS), "Equal", pick(draw, *TAINT_VALUES), effect)


def memory_claim(draw: st.DrawFn, of: Flavor) -> tuple[int | None, Decimal | None]:
    """Size and fraction: the whole GPU, or about a half, a third ... of one, off by one at times."""
    kind = pick(draw, "whole", "size", "size", "fraction", "fraction", "both")
    if kind == "whole":
        return None, None
    if kind == "size":
        size = pick(draw, *of.sizes) // pick(draw, 1, 2, 3, 4)
        return size + pick(draw, 0, 0, 0, -1, 1), None
    fraction = pick(draw, *FRACTIONS)
    if kind == "fraction":
        return None, fraction
    near = claim_on(pick(draw, *of.sizes), VariantSpec("", gpu_memory_fraction=fraction))
    return (near or 1) + pick(draw, 0, -1, 1), fraction


def selector(draw: st.DrawFn) -> tuple[tuple[str, str], ...]:
    return ((pick(draw, *LABEL_KEYS), pick(draw, "x", "x", "y", "")),)


def variant_spec(draw: st.DrawFn, of: Flavor, name: str) -> VariantSpec:
    nodes = pick(draw, 2, 2, 3, 1) if "many nodes" in of.has else 1
    size, fraction = memory_claim(draw, of)
    kinds: list[str] = []
    if "named types" in of.has:
        kinds = [pick(draw, *of.types * 4, *SPELLINGS) for _ in range(pick(draw, 1, 2))]
    elif "partitions" in of.has and once_in(draw, 2):
        kinds = [of.types[-1]]
    labeled, tainted, hosted = "labels" in of.has, "taints" in of.has, "host" in of.has
    return VariantSpec(
        name=name,
        gpus=pick(draw, 1, 1, 2, 2, 3, 4) if "many GPUs" in of.has else pick(draw, 1, 1, 2),
        nodes=nodes,
        gpu_memory_mib=size,
        gpu_memory_fraction=fraction,
        gpu_types=tuple(pick(draw, *SPELLINGS[kind]) for kind in kinds),
        node_selector=selector(draw) if labeled and once_in(draw, 3) else (),
        tolerations=tuple(toleration(draw) for _ in range(pick(draw, 0, 1, 2, 3))) if tainted else (),
        cpu_millis=pick(draw, 0, 0, 1000, 2000, 4000) if hosted else 0,
        memory_mib=pick(draw, 0, 0, 1000, 2000, 4000) if hosted else 0,
        topology_key=pick(draw, None, *LABEL_KEYS) if labeled else None,
    )


def model_spec(draw: st.DrawFn, of: Flavor, name: str) -> ModelSpec:
    # Variants of different models have the same names: only model and variant together say what is meant.
    variants = pick(draw, ("v",), ("v", "w"))
    return ModelSpec(name, variants=tuple(variant_spec(draw, of, variant) for variant in variants))


# ---------------------------------------------------------------- replicas

Claims = dict[tuple[str, int], list[int | None]]
"""Claims that stand on each GPU, by node name and index; None: the whole of it."""


def may_hold(gpu: GpuSpec, there: Sequence[int | None], variant: VariantSpec) -> bool:
    """Whether an inventory accepts one more holder of this GPU."""
    if is_whole(variant):
        return not there
    claim = claim_on(gpu.memory_mib, variant)
    if gpu.memory_mib is None or claim is None or None in there:
        return False
    return sum(other or 0 for other in there) + claim <= gpu.memory_mib


def replica_specs(
    draw: st.DrawFn, nodes: Sequence[NodeSpec], models: Sequence[ModelSpec], most: int
) -> list[ReplicaSpec]:
    claims: Claims = {}
    replicas = []
    for number in range(pick(draw, *range(most + 1))):
        model = pick(draw, *models)
        variant = pick(draw, *model.variants)
        state = pick(draw, *STATES)
        placement = torn(draw, place(draw, nodes, claims, variant))
        if placement or state == "pending":
            replicas.append(
                ReplicaSpec(f"r{number}", model.name, variant.name, state, None, tuple(placement))
            )
        if state in HOLDING:
            memory = {(node.name, gpu.index): gpu.memory_mib for node in nodes for gpu in node.gpus}
            for key in [(name, index) for name, indexes in placement for index in indexes]:
                claim = None if is_whole(variant) else claim_on(memory[key], variant)
                claims.setdefault(key, []).append(claim)
    return replicas


def place(
    draw: st.DrawFn, nodes: Sequence[NodeSpec], claims: Claims, variant: VariantSpec
) -> list[tuple[str, tuple[int, ...]]]:
    """A valid placement, from a random node and GPU onwards; none where there is no room."""
    placement: list[tuple[str, tuple[int, ...]]] = []
    for node in rotated(draw, nodes):
        able = [
            gpu.index
            for gpu in rotated(draw, node.gpus)
            if may_hold(gpu, claims.get((node.name, gpu.index), []), variant)
        ]
        if len(able) >= variant.gpus:
            placement.append((node.name, tuple(able[: variant.gpus])))
        if len(placement) == variant.nodes:
            return placement
    return []


def torn(draw: st.DrawFn, placement: list[tuple[str, tuple[int, ...]]]) -> list[tuple[str, tuple[int, ...]]]:
    """The placement, or at times what is left of it without its last node or GPU."""
    if not placement or not once_in(draw, 8):
        return placement
    *others, (node, gpus) = placement
    if len(gpus) > 1 and once_in(draw, 2):
        return [*others, (node, gpus[:-1])]
    return others or placement


def rotated(draw: st.DrawFn, items: Sequence[T]) -> list[T]:
    start = pick(draw, *range(len(items))) if items else 0
    return [*items[start:], *items[:start]]


# ---------------------------------------------------------------- all together


@st.composite
def clusters(
    draw: st.DrawFn, always: Sequence[str] = (), never: Sequence[str] = (), max_replicas: int = 6
) -> Cluster:
    """A cluster of up to four nodes with up to four GPUs each, and one of its variants to ask for.

    `always` and `never` name complications that each cluster has, or has not.
    """
    of = flavor(draw, always, never)
    names = NODE_NAMES[: pick(draw, 2, 3, 4, 4) if "many nodes" in of.has else pick(draw, 1, 2, 3, 4)]
    nodes = tuple(node_spec(draw, of, name) for name in names)
    models = tuple(model_spec(draw, of, name) for name in pick(draw, ("m",), ("m", "o")))
    replicas = tuple(replica_specs(draw, nodes, models, max_replicas))
    model = pick(draw, *models)
    return Cluster(nodes, models, replicas, model, pick(draw, *model.variants))
