"""What a replica holds is its placement, also where that is not its variant's shape."""

from __future__ import annotations

import pytest

from sizing.domain.fleet import Fleet
from sizing.domain.placement import room
from sizing.domain.preemption import node_preemption, preempt
from sizing.domain.specs import GpuSpec, ModelSpec, NodeSpec, ReplicaSpec, VariantSpec

FOUR, ONE = VariantSpec("four", gpus=4), VariantSpec("one")
GROUP = VariantSpec("group", gpus=4, nodes=2, cpu_millis=1000)
ASKING = ModelSpec("asking", priority=50, variants=(FOUR, ONE))
BATCH = ModelSpec("batch", variants=(GROUP, FOUR))
MODELS = (ASKING, BATCH)


def node(name: str) -> NodeSpec:
    return NodeSpec(name, tuple(GpuSpec(i, "H100", 80000) for i in range(8)), cpu_millis=10000, pods=10)


def fleet(*places: tuple[str, tuple[int, ...]], variant: str = "group", state: str = "failed") -> Fleet:
    holder = ReplicaSpec("half", "batch", variant, state, placement=places)
    return Fleet.build([node("a"), node("b")], MODELS, [holder])


def test_a_half_group_holds_exactly_its_gpus() -> None:
    half = fleet(("a", (0, 1, 2, 3)))
    assert [room(half, FOUR), room(half, ONE)] == [3, 12]
    assert half.cpu_left.tolist() == [9000, 10000]
    assert half.pods_left.tolist() == [9, 10]
    torn = fleet(("a", (0, 1)), ("b", (5,)))
    assert [room(torn, FOUR), room(torn, ONE)] == [2, 13]


def test_it_does_not_count_as_running() -> None:
    assert fleet(("a", (0, 1, 2, 3))).serving("batch") == []


def test_as_a_victim_it_gives_what_it_holds() -> None:
    found = preempt(fleet(("a", (0, 1, 2, 3))), ASKING, FOUR, 2)
    assert (found.gives, [v.name for v in found.victims], found.optimal) == (1, ["half"], True)
    found = preempt(fleet(("a", (0, 1)), ("b", (5,))), ASKING, FOUR, 5)
    assert (found.gives, [v.name for v in found.victims], found.optimal) == (2, ["half"], True)


def test_a_node_that_it_is_not_on_gives_nothing() -> None:
    found = node_preemption(fleet(("a", (0, 1, 2, 3))), ASKING, FOUR)
    assert found == [{"gives": 1}, None]


@pytest.mark.parametrize(("gpus", "left"), [((0, 1, 2, 3, 4, 5), 10), ((0,), 15)])
def test_more_or_fewer_gpus_than_the_variant_takes_are_what_is_held(gpus: tuple[int, ...], left: int) -> None:
    odd = fleet(("a", gpus), variant="four", state="ready")
    assert room(odd, ONE) == left
    assert preempt(odd, ASKING, ONE, 20).gives == 16 - left


def test_a_part_that_ends_gives_its_gpus_back() -> None:
    whole = fleet(("a", (0, 1, 2, 3)), ("b", (0, 1, 2, 3)), state="ready")
    half = whole.with_replicas(
        added=[ReplicaSpec("half", "batch", "group", "failed", placement=(("a", (0, 1, 2, 3)),))]
    )
    assert [room(whole, FOUR), room(half, FOUR)] == [2, 3]
    assert half.cpu_left.tolist() == [9000, 10000]
