"""Faults that others were told of in public, asked of the desk."""

from __future__ import annotations

from decimal import Decimal

from sizing.domain.fleet import Fleet
from sizing.domain.placement import room
from sizing.domain.preemption import preempt
from sizing.domain.specs import GpuSpec, ModelSpec, NodeSpec, ReplicaSpec, VariantSpec


def node(name: str, gpus: int, type_: str = "H100", memory: int = 81559, **labels: str) -> NodeSpec:
    return NodeSpec(name, tuple(GpuSpec(i, type_, memory) for i in range(gpus)), labels=labels)


def holder(name: str, where: str, first: int, gpus: int, model: str = "low") -> ReplicaSpec:
    return ReplicaSpec(name, model, "v", placement=((where, tuple(range(first, first + gpus))),))


def models(variant: VariantSpec) -> tuple[ModelSpec, ModelSpec, ModelSpec]:
    return (
        ModelSpec("asking", priority=1000, variants=(variant,)),
        ModelSpec("high", priority=1000, variants=(VariantSpec("v"),)),
        ModelSpec("low", priority=10, variants=(VariantSpec("v"),)),
    )


def test_nobody_is_stopped_where_that_frees_enough_in_sum_but_not_on_one_node() -> None:
    """https://github.com/kubernetes-sigs/kueue/issues/5243"""
    eight = VariantSpec("eight", gpus=8)
    nodes = [node(f"n{n}", 8) for n in range(4)]
    high = [holder(f"h{n}-{i}", f"n{n}", i, 1, "high") for n in range(4) for i in range(6)]
    low = [holder(f"l{n}-{i}", f"n{n}", i, 1) for n in range(4) for i in (6, 7)]
    asking = models(eight)
    found = preempt(Fleet.build(nodes, asking, [*high, *low]), asking[0], eight, 1)
    assert (found.gives, found.victims) == (0, ())


def test_groups_are_placed_whole_or_not_at_all() -> None:
    """https://github.com/kubernetes-sigs/lws/issues/810"""
    group = VariantSpec("group", gpus=1, nodes=4)
    fleet = Fleet.build([node(f"n{n}", 3) for n in range(4)], models(group), [])
    assert room(fleet, group) == 3


def test_tensor_parallel_over_nodes_of_one_gpu_is_a_replica_over_two_nodes() -> None:
    """https://github.com/kserve/kserve/issues/4946 and
    https://github.com/vllm-project/production-stack/issues/653"""
    over, on_one = VariantSpec("over", gpus=1, nodes=2), VariantSpec("on-one", gpus=2)
    fleet = Fleet.build([node("a", 1), node("b", 1), node("cpu", 0)], models(over), [])
    assert (room(fleet, over), room(fleet, on_one)) == (1, 0)


def test_a_fraction_of_the_card_below_what_the_model_needs_takes_none() -> None:
    """https://github.com/gpustack/gpustack/issues/4262"""
    needs = 3769  # 3.68 GiB
    fifth = VariantSpec("fifth", gpu_memory_mib=needs, gpu_memory_fraction=Decimal("0.2"))
    third = VariantSpec("third", gpu_memory_mib=needs, gpu_memory_fraction=Decimal("0.3"))
    fleet = Fleet.build([node("r", 4, memory=16384)], models(fifth), [])
    assert (room(fleet, fifth), room(fleet, third)) == (0, 12)


def test_free_gpus_that_a_selector_keeps_others_from_are_no_room() -> None:
    """https://github.com/llm-d/llm-d-autoscaling/issues/1001"""
    pinned = VariantSpec("v", gpu_types=("H100",), node_selector=(("pool", "team-a"),))
    nodes = [node("a1", 8, pool="team-a"), node("b1", 8, pool="team-b"), node("c1", 8, "A100", pool="all")]
    fleet = Fleet.build(nodes, models(pinned), [holder("full", "a1", 0, 8)])
    assert room(fleet, pinned) == 0


def test_the_domain_that_has_room_for_a_whole_group_is_chosen() -> None:
    """https://github.com/NVIDIA/nvcf/issues/598"""
    pair = VariantSpec("pair", gpus=4, nodes=2, topology_key="clique")
    nodes = [node(f"a{n}", 4, clique="A") for n in range(2)] + [
        node(f"b{n}", 4, clique="B") for n in range(2)
    ]
    fleet = Fleet.build(nodes, models(pair), [holder("taken", "a0", 0, 4)])
    assert room(fleet, pair) == 1


def test_gpus_of_different_nodes_never_add_up_in_a_table_of_what_is_free() -> None:
    """https://github.com/skypilot-org/skypilot/pull/3499"""
    nodes = [
        node("t4-a", 4, "T4"),
        node("t4-b", 4, "T4"),
        node("v100-a", 2, "V100"),
        node("v100-b", 2, "V100"),
    ]
    four, two = VariantSpec("four", gpus=4, gpu_types=("T4",)), VariantSpec("two", gpus=2, gpu_types=("T4",))
    pair = VariantSpec("pair", gpus=2, gpu_types=("V100",))
    fleet = Fleet.build(nodes, models(four), [holder("x", "t4-a", 0, 2), holder("y", "v100-a", 0, 2)])
    assert [room(fleet, variant) for variant in (four, two, pair)] == [1, 3, 1]
