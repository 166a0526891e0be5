"""The rules of placement GPU by GPU and node by node, in plain Python: what the brute force goes by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from sizing.domain.specs import GpuSpec, ModelSpec, NodeSpec, ReplicaSpec, Taint, Toleration, VariantSpec

HOLDING = ("starting", "ready", "draining", "failed")
VENDORS = ("nvidia ", "amd ", "intel ")
FORM_FACTOR = " oam"
UNLIMITED = 10**9


class Card(NamedTuple):
    """A GPU as it is now. `memory` None: unknown. `left` is what is neither claimed nor used outside."""

    type: str
    memory: int | None
    left: int
    held: bool
    outside: int
    healthy: bool
    partition: bool


class Host(NamedTuple):
    """What a node has left beside its GPUs."""

    cpu: int
    memory: int
    pods: int


# ---------------------------------------------------------------- reading the inventory


def type_name(spelling: str) -> str:
    """The name that a GPU type compares by."""
    name = "".join(" " if sign in "-_ " else sign.lower() for sign in spelling)
    for vendor in VENDORS:
        if name.startswith(vendor):
            name = name[len(vendor) :]
            break
    return name[: -len(FORM_FACTOR)] if name.endswith(FORM_FACTOR) else name


def claim_on(memory: int | None, variant: VariantSpec) -> int | None:
    """MiB that the variant claims on a GPU of that memory; None: all of it, or not known."""
    if variant.gpu_memory_fraction is None:
        return variant.gpu_memory_mib
    if memory is None:
        return None
    exact = Fraction(variant.gpu_memory_fraction) * memory
    claim = exact.numerator // exact.denominator
    while claim < exact:
        claim += 1
    return claim


def is_whole(variant: VariantSpec) -> bool:
    return variant.gpu_memory_mib is None and variant.gpu_memory_fraction is None


def held_by(
    models: Iterable[ModelSpec], replicas: Iterable[ReplicaSpec], node: NodeSpec
) -> Iterator[tuple[VariantSpec, tuple[int, ...]]]:
    """Each holding share on the node: its variant and the indexes of its GPUs."""
    for replica in replicas:
        for name, indexes in replica.placement:
            if name == node.name and replica.state in HOLDING:
                [model] = [model for model in models if model.name == replica.model]
                [variant] = [variant for variant in model.variants if variant.name == replica.variant]
                yield variant, indexes


def cards_of(models: Iterable[ModelSpec], replicas: Iterable[ReplicaSpec], node: NodeSpec) -> list[Card]:
    shares = list(held_by(models, replicas, node))
    return [
        card_now(gpu, [variant for variant, indexes in shares if gpu.index in indexes]) for gpu in node.gpus
    ]


def card_now(gpu: GpuSpec, holders: Sequence[VariantSpec]) -> Card:
    left = (gpu.memory_mib or 0) - gpu.used_outside_mib
    for holder in holders:
        claim = None if is_whole(holder) else claim_on(gpu.memory_mib, holder)
        left = 0 if claim is None else left - claim
    return Card(
        type=type_name(gpu.type),
        memory=gpu.memory_mib,
        left=max(left, 0),
        held=bool(holders),
        outside=gpu.used_outside_mib,
        healthy=gpu.healthy,
        partition=gpu.partition,
    )


def host_of(models: Iterable[ModelSpec], replicas: Iterable[ReplicaSpec], node: NodeSpec) -> Host:
    """What is left, never below 0; a quantity that is not accounted never runs out."""
    cpu = UNLIMITED if node.cpu_millis is None else node.cpu_millis
    memory = UNLIMITED if node.memory_mib is None else node.memory_mib
    pods = UNLIMITED if node.pods is None else node.pods
    for variant, _ in held_by(models, replicas, node):
        cpu, memory, pods = cpu - variant.cpu_millis, memory - variant.memory_mib, pods - 1
    return Host(max(cpu, 0), max(memory, 0), max(pods, 0))


# ---------------------------------------------------------------- who may go where


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.key == "":
        return toleration.operator == "Exists"
    if toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value


def labels_match(node: NodeSpec, variant: VariantSpec) -> bool:
    for key, value in variant.node_selector:
        if key not in node.labels or node.labels[key] != value:
            return False
    return variant.nodes == 1 or variant.topology_key is None or variant.topology_key in node.labels


def taints_tolerated(node: NodeSpec, variant: VariantSpec) -> bool:
    for taint in node.taints:
        closes = taint.effect == "NoSchedule" or taint.effect == "NoExecute"
        if closes and not any(tolerates(toleration, taint) for toleration in variant.tolerations):
            return False
    return True


def is_open(node: NodeSpec, variant: VariantSpec) -> bool:
    closed = not node.ready or not node.schedulable or node.stale
    return not closed and labels_match(node, variant) and taints_tolerated(node, variant)


def type_named(card: Card, variant: VariantSpec) -> bool:
    return any(type_name(spelling) == card.type for spelling in variant.gpu_types)


def type_allowed(card: Card, variant: VariantSpec) -> bool:
    return not variant.gpu_types or type_named(card, variant)


def partition_allowed(card: Card, variant: VariantSpec) -> bool:
    if not card.partition:
        return True
    return variant.gpus == 1 and variant.nodes == 1 and type_named(card, variant)


def fraction_enough(card: Card, variant: VariantSpec) -> bool:
    if variant.gpu_memory_mib is None or variant.gpu_memory_fraction is None or card.memory is None:
        return True
    claim = claim_on(card.memory, variant)
    return claim is not None and claim >= variant.gpu_memory_mib


def large_enough(card: Card, variant: VariantSpec) -> bool:
    if is_whole(variant):
        return True
    claim = claim_on(card.memory, variant)
    return card.memory is not None and claim is not None and card.memory >= claim


def outside_leaves_enough(card: Card, variant: VariantSpec) -> bool:
    if is_whole(variant):
        return card.outside <= 1024
    claim = claim_on(card.memory, variant)
    return card.memory is not None and claim is not None and card.memory - card.outside >= claim


def with_one_more(card: Card, variant: VariantSpec) -> Card | None:
    """The card after one more claim of the variant; None where it cannot have it."""
    if not (card.healthy and type_allowed(card, variant) and partition_allowed(card, variant)):
        return None
    if is_whole(variant):
        if card.held or card.outside > 1024:
            return None
        return card._replace(left=0, held=True)
    claim = claim_on(card.memory, variant)
    if claim is None or card.memory is None or card.left < claim or not fraction_enough(card, variant):
        return None
    return card._replace(left=card.left - claim, held=True)
