"""Which rules bind, why nobody cheaper would do, and what each node alone could give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from sizing.domain.fleet import Fleet
from sizing.domain.placement import room
from sizing.domain.preemption import node_preemption, preempt
from sizing.domain.specs import GpuSpec, ModelSpec, NodeSpec, ReplicaSpec, VariantSpec
from tests.domain.preemption_brute_force import keeps_minima, possible_victims
from tests.domain.preemption_strategies import Ask, asks, crowded_asks
from tests.domain.strategies import CLOSING

ONE = VariantSpec("one")
TWO = VariantSpec("two", gpus=2)
ASKING = ModelSpec("high", 10, variants=(TWO,))


def node(name: str, **flags: Any) -> NodeSpec:
    return NodeSpec(name, (GpuSpec(0, "A100", 80_000), GpuSpec(1, "A100", 80_000)), **flags)


def model(name: str, priority: int = 0, minimum: int = 0) -> ModelSpec:
    return ModelSpec(name, priority, min_replicas=minimum, variants=(ONE, TWO))


def replica(name: str, of: str, where: str, *gpus: int, state: str = "ready") -> ReplicaSpec:
    return ReplicaSpec(name, of, "one" if len(gpus) == 1 else "two", state, None, ((where, gpus),))


def fleet(nodes: Sequence[NodeSpec], models: Sequence[ModelSpec], replicas: Sequence[ReplicaSpec]) -> Fleet:
    return Fleet.build(nodes, [*models, ASKING], replicas)


def reasons(found: Fleet, wanted: int = 1, asking: ModelSpec = ASKING) -> tuple[str, ...]:
    return preempt(found, asking, TWO, wanted).reasons


def test_no_rule_binds_where_all_can_be_had() -> None:
    found = preempt(fleet([node("a")], [model("low")], [replica("l", "low", "a", 0)]), ASKING, TWO, 1)
    assert (found.gives, found.reasons, found.bound, found.why_not_cheaper) == (1, (), None, ())


def test_no_rule_binds_where_the_nodes_are_too_few() -> None:
    assert reasons(fleet([node("a")], [model("low")], [replica("l", "low", "a", 0)]), wanted=2) == ()


def test_the_minimum_binds() -> None:
    kept = fleet([node("a")], [model("low", minimum=1)], [replica("l", "low", "a", 0)])
    assert reasons(kept) == ("protected_by_minimum",)


@pytest.mark.parametrize("priority", [10, 11])
def test_the_priority_binds(priority: int) -> None:
    equal = fleet([node("a")], [model("peer", priority)], [replica("p", "peer", "a", 0)])
    assert reasons(equal) == ("no_lower_priority",)


def test_both_bind_each_on_its_node() -> None:
    both = fleet(
        [node("a"), node("b")],
        [model("low", minimum=1), model("peer", 10)],
        [replica("l", "low", "a", 0), replica("p", "peer", "b", 0)],
    )
    assert reasons(both, wanted=2) == ("protected_by_minimum", "no_lower_priority")
    assert node_preemption(both, ASKING, TWO) == ["protected_by_minimum", "no_lower_priority"]


def test_the_policy_binds() -> None:
    never = replace(ASKING, preemption_policy="Never")
    low = fleet([node("a"), node("b", schedulable=False)], [model("low")], [replica("l", "low", "a", 0)])
    assert reasons(low, asking=never) == ("preemption_never",)
    assert node_preemption(low, never, TWO) == ["preemption_never", None]


def test_draining_replicas_are_no_question_of_priority() -> None:
    draining = fleet([node("a")], [model("low")], [replica("l", "low", "a", 0, state="draining")])
    assert reasons(draining) == ()
    assert node_preemption(draining, ASKING, TWO) == [None]


def test_each_lower_priority_is_said_to_be_too_little() -> None:
    nodes = [node(name) for name in "abcd"] + [node("e", schedulable=False)]
    models = [model("p0", 0, minimum=3), model("p1", 1), model("p2", 2), model("p3", 3)]
    replicas = [
        *(replica(f"p0-{name}", "p0", name, 0) for name in "abc"),
        replica("p1-a", "p1", "e", 0),
        replica("p2-d", "p2", "d", 0),
        replica("p3-d", "p3", "d", 1),
    ]
    found = preempt(fleet(nodes, models, replicas), ASKING, TWO, 1)
    assert [victim.name for victim in found.victims] == ["p2-d", "p3-d"]
    assert found.why_not_cheaper == (
        "priority 0: 3 replicas, all protected by their minimum",
        "priority 1: 1 replica, on nodes that are closed to two",
        "priority 2: 1 replica; stopping all that may be stopped up to this priority gives no room",
    )


def test_many_lower_priorities_are_said_in_five_sentences() -> None:
    nodes = [node("a"), *(node(f"n{i}") for i in range(8))]
    models = [model(f"p{i}", i, minimum=1) for i in range(8)] + [model("top", 9)]
    replicas = [replica(f"r{i}", f"p{i}", f"n{i}", 0) for i in range(8)] + [replica("t", "top", "a", 0)]
    found = preempt(fleet(nodes, models, replicas), ASKING, TWO, 1)
    assert found.why_not_cheaper[4:] == (
        "priority 4: 1 replica, protected by its minimum",
        "3 more priorities up to 7: too few as well",
    )


def test_a_node_gives_what_its_minima_leave() -> None:
    """Each node may lose one of the two, looked at alone; both together would break the minimum."""
    low = model("low", minimum=1)
    pair = [replica("l0", "low", "a", 0), replica("l1", "low", "a", 1)]
    one = replace(ASKING, variants=(ONE,))
    assert node_preemption(Fleet.build([node("a")], [low, one], pair), one, ONE) == [{"gives": 1}]
    assert node_preemption(Fleet.build([node("a")], [low, one], pair), one, TWO) == ["protected_by_minimum"]


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(asks(never=CLOSING) | asks(spanning_victims=True) | crowded_asks())
def test_each_node_alone_gives_the_best_of_every_set_there(ask: Ask) -> None:
    fleet = Fleet.build(ask.nodes, ask.models, ask.replicas)
    found = node_preemption(fleet, ask.model, ask.variant)
    victims = possible_victims(ask.nodes, ask.models, ask.replicas, ask.model, ask.variant)
    for spec, said in zip(fleet.hardware.nodes, found, strict=True):
        here = [victim for victim in victims if spec.name in dict(victim.placement)]
        if ask.variant.nodes > 1:
            continue
        now, most = alone(ask, spec, ()), 0
        for count in range(len(here) + 1):
            for stopped in combinations(here, count):
                if keeps_minima(ask.models, ask.replicas, stopped):
                    most = max(most, alone(ask, spec, stopped) - now)
        assert (said["gives"] if isinstance(said, dict) else 0) == most
        if now:
            assert not isinstance(said, str)


def alone(ask: Ask, spec: NodeSpec, stopped: Sequence[ReplicaSpec]) -> int:
    """Room on one node, the others closed."""
    nodes = [one if one.name == spec.name else replace(one, ready=False) for one in ask.nodes]
    left = [replica for replica in ask.replicas if replica not in stopped]
    return room(Fleet.build(nodes, ask.models, left), ask.variant)
