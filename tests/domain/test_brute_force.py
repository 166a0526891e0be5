"""The yardstick itself, on cases worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from sizing.domain.specs import GpuSpec, ModelSpec, NodeSpec, ReplicaSpec, Taint, Toleration, VariantSpec
from tests.domain import brute_force, plain_rules

A100 = "NVIDIA-A100-SXM4-80GB"
SLICE = "H100-MIG-1g.10gb"


def gpus(*memory: int | None, type: str = A100) -> tuple[GpuSpec, ...]:
    return tuple(GpuSpec(index, type, size) for index, size in enumerate(memory))


def room(variant: VariantSpec, *nodes: NodeSpec, held: tuple[ReplicaSpec, ...] = ()) -> int:
    return brute_force.free_room(nodes, [ModelSpec("m", variants=(variant, *HOLDERS))], held, variant)


def code(variant: VariantSpec, *nodes: NodeSpec, held: tuple[ReplicaSpec, ...] = ()) -> str:
    models = [ModelSpec("m", variants=(variant, *HOLDERS))]
    return brute_force.node_code(nodes, models, held, variant, nodes[0].name)


HOLDERS = (
    VariantSpec("whole"),
    VariantSpec("third", gpu_memory_fraction=Decimal("0.33")),
    VariantSpec("less than its need", gpu_memory_mib=9000, gpu_memory_fraction=Decimal("0.1")),
    VariantSpec("host", gpu_memory_mib=1, cpu_millis=3000, memory_mib=3000),
)


def holder(variant: str, index: int, state: str = "ready") -> ReplicaSpec:
    return ReplicaSpec(f"{variant}-{index}", "m", variant, state, None, (("n", (index,)),))


def test_three_shares_over_two_gpus_hold_one_replica_of_two_gpus() -> None:
    variant = VariantSpec("v", gpus=2, gpu_memory_mib=8000)
    node = NodeSpec("n", (GpuSpec(0, "L4", 24000), GpuSpec(1, "L4", 24000, used_outside_mib=15000)))
    assert room(variant, node) == 1


def test_shares_over_three_gpus_pair_up_as_well_as_they_can() -> None:
    variant = VariantSpec("v", gpus=2, gpu_memory_mib=1000)
    assert room(variant, NodeSpec("n", gpus(2000, 1000, 1000))) == 2
    assert room(variant, NodeSpec("n", gpus(3000, 1000, 1000))) == 2
    assert room(variant, NodeSpec("n", gpus(2000, 2000, 1000))) == 2


def test_a_fraction_is_rounded_up_exactly() -> None:
    variant = VariantSpec("v", gpu_memory_fraction=Decimal("0.33"))
    assert plain_rules.claim_on(80000, variant) == 26400
    assert plain_rules.claim_on(80001, variant) == 26401
    assert room(variant, NodeSpec("n", gpus(80000))) == 3


def test_a_fraction_of_one_is_a_size_and_not_a_whole_gpu() -> None:
    variant = VariantSpec("v", gpu_memory_fraction=Decimal(1))
    node = NodeSpec("n", (GpuSpec(0, A100, 80000, used_outside_mib=1),))
    assert (room(variant, node), code(variant, node)) == (0, "used_outside")
    assert room(VariantSpec("v"), node) == 1
    assert room(variant, NodeSpec("n", gpus(80000, None))) == 1


def test_a_whole_gpu_claim_needs_an_unheld_gpu_with_little_used_outside() -> None:
    variant = VariantSpec("v")
    node = NodeSpec("n", (GpuSpec(0, A100, 80000, used_outside_mib=1024), GpuSpec(1, A100, None)))
    assert room(variant, node) == 2
    assert room(variant, node, held=(holder("third", 0),)) == 1
    assert room(variant, NodeSpec("n", (GpuSpec(0, A100, 80000, used_outside_mib=1025),))) == 0


def test_a_whole_gpu_claim_leaves_nothing_free() -> None:
    variant = VariantSpec("v", gpu_memory_mib=1)
    node = NodeSpec("n", gpus(80000))
    assert room(variant, node, held=(holder("whole", 0),)) == 0
    assert code(variant, node, held=(holder("whole", 0),)) == "too_few_free_gpus"


@pytest.mark.parametrize(
    ("state", "expected"), [("starting", 2), ("ready", 2), ("draining", 2), ("failed", 2), ("pending", 3)]
)
def test_all_states_but_pending_hold_their_claim(state: str, expected: int) -> None:
    variant = VariantSpec("v", gpu_memory_fraction=Decimal("0.33"))
    assert room(variant, NodeSpec("n", gpus(80000)), held=(holder("third", 0, state),)) == expected


def test_a_fraction_below_the_need_takes_nothing_new_but_a_running_replica_holds_it() -> None:
    [small] = [variant for variant in HOLDERS if variant.name == "less than its need"]
    assert code(small, NodeSpec("n", gpus(80000))) == "fraction_below_need"
    assert code(small, NodeSpec("n", gpus(90000))) == "open"
    held = (holder("less than its need", 0),)
    assert room(VariantSpec("v", gpu_memory_mib=72000), NodeSpec("n", gpus(80000)), held=held) == 1
    assert room(VariantSpec("v", gpu_memory_mib=72001), NodeSpec("n", gpus(80000)), held=held) == 0


def test_unknown_memory_takes_only_whole_gpu_claims() -> None:
    node = NodeSpec("n", gpus(None))
    assert room(VariantSpec("v"), node) == 1
    assert code(VariantSpec("v", gpu_memory_mib=1), node) == "gpu_memory_too_small"
    both = VariantSpec("v", gpu_memory_mib=1, gpu_memory_fraction=Decimal("0.1"))
    assert code(both, node) == "gpu_memory_too_small"


def test_a_replica_stays_on_one_type_over_all_its_nodes() -> None:
    a = NodeSpec("a", gpus(80000, 80000))
    b = NodeSpec("b", gpus(80000, 80000, type="L4"))
    variant = VariantSpec("v", nodes=2)
    assert (room(variant, a, b), code(variant, a, b)) == (0, "too_few_nodes")
    assert room(variant, a, NodeSpec("b", gpus(80000, 80000, type="a100_sxm4 80gb"))) == 2


@pytest.mark.parametrize("spelling", ["nvidia h100_80gb hbm3", "H100-80GB-HBM3", "NVIDIA_H100_80GB_HBM3"])
def test_types_compare_without_vendor_case_and_separators(spelling: str) -> None:
    variant = VariantSpec("v", gpu_types=("NVIDIA-H100-80GB-HBM3",))
    assert room(variant, NodeSpec("n", gpus(81559, type=spelling))) == 1
    assert code(variant, NodeSpec("n", gpus(81559, type="H100-80GB-HBM2"))) == "gpu_type_mismatch"


def test_a_partition_takes_only_single_gpu_replicas_that_name_it() -> None:
    node = NodeSpec("n", tuple(GpuSpec(index, SLICE, 9984, partition=True) for index in range(3)))
    named = VariantSpec("v", gpu_types=(SLICE,))
    assert room(named, node) == 3
    for variant in (VariantSpec("v"), replace(named, gpus=2), replace(named, nodes=2)):
        assert room(variant, node, replace(node, name="o")) == 0
        assert code(variant, node) == "partition_not_usable"


def test_a_replica_over_nodes_takes_different_nodes() -> None:
    nodes = [NodeSpec(name, gpus(*[80000] * size)) for name, size in (("a", 4), ("b", 2), ("c", 2))]
    assert room(VariantSpec("v", gpus=2, nodes=2), *nodes) == 2
    assert room(VariantSpec("v", nodes=2), nodes[0]) == 0


def test_the_nodes_of_a_replica_share_the_value_of_the_topology_key() -> None:
    zones = {"a": "x", "b": "y", "c": "y"}
    nodes = [NodeSpec(name, gpus(80000), labels={"zone": zone}) for name, zone in zones.items()]
    variant = VariantSpec("v", nodes=2, topology_key="zone")
    assert (room(variant, *nodes), code(variant, *nodes)) == (1, "too_few_nodes")
    assert code(replace(variant, topology_key="rack"), *nodes) == "selector_mismatch"
    assert code(replace(variant, topology_key="rack", nodes=1), *nodes) == "open"


def test_the_host_caps_a_node_over_all_its_types_together() -> None:
    mixed = (GpuSpec(0, A100, 80000), GpuSpec(1, "L4", 24000))
    nodes = [NodeSpec(name, mixed, cpu_millis=4000) for name in ("a", "b")]
    assert room(VariantSpec("v", nodes=2, cpu_millis=4000), *nodes) == 1
    assert room(VariantSpec("v", nodes=2, cpu_millis=2000), *nodes) == 2
    assert room(VariantSpec("v", nodes=2), *[replace(node, pods=1) for node in nodes]) == 1


def test_the_host_rungs_come_in_order() -> None:
    variant = VariantSpec("v", gpu_memory_mib=1, cpu_millis=1500, memory_mib=1500)
    node = NodeSpec("n", gpus(80000), cpu_millis=4000, memory_mib=4000, pods=1)
    held = (holder("host", 0),)
    assert code(variant, node, held=held) == "host_cpu_short"
    assert code(variant, replace(node, cpu_millis=None), held=held) == "host_memory_short"
    assert code(variant, replace(node, cpu_millis=None, memory_mib=None), held=held) == "pods_short"
    assert code(variant, node) == "open"


def test_an_overcommitted_host_quantity_does_not_stop_who_asks_for_none() -> None:
    node = NodeSpec("n", gpus(80000), cpu_millis=1000)
    assert code(VariantSpec("v", gpu_memory_mib=1), node, held=(holder("host", 0),)) == "open"


CLOSING_TAINT = Taint("dedicated", "rag", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("dedicated", "Equal", "rag", "NoSchedule"), True),
        (Toleration("dedicated", "Equal", "rag", ""), True),
        (Toleration("dedicated", "Equal", "chat", ""), False),
        (Toleration("dedicated", "Equal", "rag", "NoExecute"), False),
        (Toleration("dedicated", "Exists"), True),
        (Toleration("other", "Exists"), False),
        (Toleration("", "Exists"), True),
        (Toleration("", "Exists", "", "NoExecute"), False),
    ],
)
def test_tolerations_work_as_in_kubernetes(toleration: Toleration, tolerated: bool) -> None:
    node = NodeSpec("n", gpus(80000), taints=(CLOSING_TAINT, Taint("any", "", "PreferNoSchedule")))
    variant = VariantSpec("v", tolerations=(toleration,))
    assert code(variant, node) == ("open" if tolerated else "taint_not_tolerated")


def test_a_missing_label_is_not_an_empty_one() -> None:
    variant = VariantSpec("v", node_selector=(("pool", ""),))
    assert code(variant, NodeSpec("n", gpus(80000), labels={"pool": ""})) == "open"
    assert code(variant, NodeSpec("n", gpus(80000))) == "selector_mismatch"


def test_each_rung_of_the_ladder_covers_the_later_ones() -> None:
    """One node with everything wrong; each step mends the rung that was named."""
    variant = VariantSpec("v", gpus=2, gpu_memory_mib=40000, gpu_types=(A100,))
    variant = replace(variant, node_selector=(("pool", "x"),))
    bad = NodeSpec("n", (), ready=False, schedulable=False, stale=True, taints=(CLOSING_TAINT,))
    held = (holder("third", 0), holder("third", 1), holder("third", 2))
    steps = [("no_gpus", bad)]

    def then(expected: str, **changes: object) -> None:
        steps.append((expected, replace(steps[-1][1], **changes)))  # type: ignore[arg-type]

    two_left_over = (GpuSpec(1, A100, 65000, healthy=False, used_outside_mib=30000), GpuSpec(2, "L4", 65000))
    then("gpu_type_mismatch", gpus=(two_left_over[1],))
    then("selector_mismatch", gpus=(GpuSpec(0, A100, 20000, partition=True), *two_left_over[1:]))
    then("taint_not_tolerated", labels={"pool": "x"})
    then("partition_not_usable", taints=())
    then("gpu_memory_too_small", gpus=(GpuSpec(0, A100, 39999), two_left_over[1]))
    then("too_few_gpus", gpus=(GpuSpec(0, A100, 39999), *two_left_over))
    then("node_not_ready", gpus=(GpuSpec(0, A100, 55000), *two_left_over))
    then("node_cordoned", ready=True)
    then("node_stale", schedulable=True)
    then("gpu_unhealthy", stale=False)
    mended = replace(two_left_over[0], healthy=True)
    then("used_outside", gpus=(GpuSpec(0, A100, 55000), mended, two_left_over[1]))
    mended = replace(mended, used_outside_mib=0)
    then("too_few_free_gpus", gpus=(GpuSpec(0, A100, 55000), mended, two_left_over[1]))
    for expected, node in steps:
        assert code(variant, node, held=held) == expected
    assert code(variant, steps[-1][1]) == "open"


def test_a_node_without_company_still_takes_its_shares_alone() -> None:
    variant = VariantSpec("v", nodes=2)
    nodes = [NodeSpec("n", gpus(80000, 80000)), NodeSpec("o", gpus(80000), ready=False)]
    models = [ModelSpec("m", variants=(variant,))]
    assert [brute_force.node_fits(nodes, models, [], variant, name) for name in ("n", "o")] == [2, 0]
    assert code(variant, *nodes) == "too_few_nodes"


@pytest.mark.parametrize(
    ("tokens", "per_replica", "utilization", "others", "expected"),
    [
        ("2.1", "0.3", "1", (), 7),
        ("2361", "1180.5", "1", (), 2),
        ("2361.000001", "1180.5", "1", (), 3),
        ("0.000001", "1000", "1", (), 1),
        ("1.08", "0.36", "1", (), 3),
        ("1000", "500", "0.8", (), 3),
        ("2000", "1000", "1", (None,), 3),
        ("2000", "1000", "0.5", (Decimal(2000),), 3),
        ("100", "1000", "1", (Decimal(2000), None), 2),
    ],
)
def test_replicas_are_added_until_the_target_is_served(
    tokens: str, per_replica: str, utilization: str, others: tuple[Decimal | None, ...], expected: int
) -> None:
    asked = (Decimal(tokens), Decimal(per_replica), Decimal(utilization))
    assert brute_force.needed(*asked, others) == expected
