"""Preemption against a search through every set of victims, on random clusters.

`HYPOTHESIS_PROFILE=thorough` tries many more.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sizing.domain.fleet import Fleet
from sizing.domain.placement import room
from sizing.domain.preemption import preempt
from sizing.domain.specs import ModelSpec, NodeSpec
from tests.domain import preemption_brute_force as brute_force
from tests.domain.preemption_brute_force import (
    Found,
    Key,
    Rooms,
    is_less,
    keeps_minima,
    key_of,
    possible_victims,
)
from tests.domain.preemption_strategies import Ask, asks, crowded_asks, wide_asks
from tests.domain.strategies import CLOSING

T = TypeVar("T")

NARROWING = tuple(name for name in CLOSING if name != "cordoned")

SCALE = 15 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 1


def trials(number: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=number * SCALE, deadline=None, suppress_health_check=checks)


def searched(ask: Ask) -> Found:
    return brute_force.best(*ask)


def answered(ask: Ask) -> tuple[int, Key, list[str]]:
    """What the product says: the gain, what it costs, and the victims by name."""
    result = preempt(Fleet.build(ask.nodes, ask.models, ask.replicas), ask.model, ask.variant, ask.wanted)
    assert result.optimal
    names = [victim.name for victim in result.victims]
    assert len(set(names)) == len(names)
    assert set(result.victims) <= set(ask.replicas)
    return result.gives, key_of(ask.models, result.victims), names


def assert_best(ask: Ask) -> None:
    gain, key, names = answered(ask)
    found = searched(ask)
    assert (gain, key) == (found.gain, found.key)
    assert frozenset(names) in found.sets
    assert_nobody_can_be_spared(ask, gain, names)


def assert_nobody_can_be_spared(ask: Ask, gain: int, names: list[str]) -> None:
    rooms = Rooms(ask.nodes, ask.models, ask.replicas, ask.variant)
    assert brute_force.gain_of(rooms, frozenset(names), ask.wanted) == gain
    for name in names:
        fewer = frozenset(names) - {name}
        assert brute_force.gain_of(rooms, fewer, ask.wanted) < gain


@trials(200)
@given(asks())
def test_who_gives_way_is_the_best_that_a_search_finds(ask: Ask) -> None:
    assert_best(ask)


@trials(200)
@given(asks(never=CLOSING))
def test_on_open_clusters_too(ask: Ask) -> None:
    assert_best(ask)


@trials(120)
@given(crowded_asks())
def test_where_many_victims_look_alike_too(ask: Ask) -> None:
    assert_best(ask)


@trials(100)
@given(asks(always=("many nodes", "many GPUs"), never=CLOSING))
def test_where_asks_span_nodes_too(ask: Ask) -> None:
    assert_best(ask)


@trials(100)
@given(asks(always=("many nodes", "labels"), never=("taints", "not ready", "cordoned", "stale")))
def test_where_asks_span_nodes_of_one_domain_too(ask: Ask) -> None:
    assert_best(ask)


@trials(100)
@given(asks(always=("many GPUs",), never=(*CLOSING, "many nodes"), spanning_victims=True))
def test_where_victims_span_nodes_too(ask: Ask) -> None:
    assert_best(ask)


@trials(100)
@given(asks(always=("cordoned", "many GPUs"), never=(*NARROWING, "many nodes"), spanning_victims=True))
def test_where_victims_stand_on_closed_nodes_too(ask: Ask) -> None:
    assert_best(ask)


@trials(100)
@given(asks(always=("host", "many GPUs"), never=CLOSING))
def test_where_hosts_are_short_too(ask: Ask) -> None:
    assert_best(ask)


@trials(100)
@given(asks(always=("many nodes", "many GPUs", "two types", "host"), never=CLOSING, most_replicas=8))
def test_where_types_compete_for_the_host_too(ask: Ask) -> None:
    assert_best(ask)


@trials(100)
@given(asks(always=("partitions", "mixed sizes"), never=("taints", "not ready", "cordoned", "stale")))
def test_where_gpus_are_slices_too(ask: Ask) -> None:
    assert_best(ask)


@trials(60)
@given(wide_asks())
def test_on_many_nodes_too(ask: Ask) -> None:
    gain, key, names = answered(ask)
    assert (gain, key) == brute_force.best_by_nodes(*ask)
    stopped = [replica for replica in ask.replicas if replica.name in names]
    victims = possible_victims(ask.nodes, ask.models, ask.replicas, ask.model, ask.variant)
    assert all(replica in victims for replica in stopped)
    assert keeps_minima(ask.models, ask.replicas, stopped)
    assert_nobody_can_be_spared(ask, gain, names)


@trials(40)
@given(crowded_asks())
def test_both_searches_agree(ask: Ask) -> None:
    found = searched(ask)
    assert (found.gain, found.key) == brute_force.best_by_nodes(*ask)


@trials(60)
@given(asks(never=CLOSING) | crowded_asks(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(ask: Ask, shuffler: random.Random) -> None:
    def turned(rows: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(shuffler.sample(rows, len(rows)))

    nodes = tuple(replace(node, gpus=turned(node.gpus)) for node in turned(ask.nodes))
    replicas = tuple(
        replace(replica, placement=tuple((node, turned(gpus)) for node, gpus in turned(replica.placement)))
        for replica in turned(ask.replicas)
    )
    again = ask._replace(nodes=nodes, models=turned(ask.models), replicas=replicas)
    assert answered(again) == answered(ask) == answered(ask)


@trials(80)
@given(asks(never=CLOSING) | crowded_asks(), st.data())
def test_another_free_gpu_never_makes_as_many_replicas_cost_more(ask: Ask, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(ask.nodes) - 1))
    node = ask.nodes[number]
    likes = [gpu for one in ask.nodes for gpu in one.gpus]
    if not likes:
        return
    like = data.draw(st.sampled_from(likes))
    free = replace(like, index=100, healthy=True, used_outside_mib=0)
    larger = replace(node, gpus=(*node.gpus, free))
    assert_no_dearer(ask, (*ask.nodes[:number], larger, *ask.nodes[number + 1 :]))


@trials(80)
@given(asks(never=CLOSING) | crowded_asks(), st.data())
def test_another_free_node_never_makes_as_many_replicas_cost_more(ask: Ask, data: st.DataObject) -> None:
    node = data.draw(st.sampled_from(ask.nodes))
    assert_no_dearer(ask, (*ask.nodes, replace(node, name="another")))


def assert_no_dearer(ask: Ask, nodes: tuple[NodeSpec, ...]) -> None:
    """As many replicas in all as before, free room included, for no more."""
    gain, key, _ = answered(ask)
    grown = ask._replace(nodes=nodes)
    more_room = room_of(grown) - room_of(ask)
    assert more_room >= 0
    missing = gain - more_room
    if missing > 0:
        gain_then, key_then, _ = answered(grown._replace(wanted=missing))
        assert gain_then == missing
        assert not is_less(key, key_then)


def room_of(ask: Ask) -> int:
    return room(Fleet.build(ask.nodes, ask.models, ask.replicas), ask.variant)


@trials(60)
@given(asks(never=CLOSING) | crowded_asks())
def test_asking_for_more_never_gives_less_and_never_costs_less(ask: Ask) -> None:
    gain, key, _ = answered(ask)
    gain_then, key_then, _ = answered(ask._replace(wanted=ask.wanted + 1))
    assert gain_then in ((gain, gain + 1) if gain == ask.wanted else (gain,))
    assert not is_less(key_then, key)


@trials(100)
@given(asks(never=CLOSING) | crowded_asks())
def test_a_rule_is_named_where_more_would_be_had_without_it(ask: Ask) -> None:
    fleet = Fleet.build(ask.nodes, ask.models, ask.replicas)
    result = preempt(fleet, ask.model, ask.variant, ask.wanted)
    unprotected = ask._replace(models=tuple(replace(model, min_replicas=0) for model in ask.models))
    assert ("protected_by_minimum" in result.reasons) == (searched(unprotected).gain > result.gives)
    may_preempt = replace(ask.model, preemption_policy="PreemptLowerPriority")
    if searched(with_model(ask, may_preempt)).gain > result.gives:
        assert result.reasons[0] == "preemption_never"  # higher priorities may be in the way of the rest
    elif "preemption_never" in result.reasons:  # other rules bind as well
        assert searched(with_model(unprotected, may_preempt)).gain > result.gives
    if result.gives == ask.wanted:
        assert result.reasons == ()


def with_model(ask: Ask, model: ModelSpec) -> Ask:
    others = tuple(one for one in ask.models if one.name != model.name)
    return ask._replace(models=(*others, model), model=model)
