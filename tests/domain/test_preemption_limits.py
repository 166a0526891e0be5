"""Preemption told without a search, what questions one after the other share, and limits of work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sizing.domain.fleet import Fleet
from sizing.domain.preemption import limits, preempt, program
from sizing.domain.preemption.classes import first_allowed
from sizing.domain.specs import ReplicaSpec
from tests.domain.preemption_strategies import Ask, asks, crowded_asks, wide_asks
from tests.domain.test_preemption_against_brute_force import trials


def fleet_of(ask: Ask) -> Fleet:
    return Fleet.build(ask.nodes, ask.models, ask.replicas)


@trials(150)
@given(st.one_of(asks(), crowded_asks(), wide_asks()))
def test_what_can_be_had_lies_within_the_limits(ask: Ask) -> None:
    fleet = fleet_of(ask)
    least, most = limits(fleet, ask.model, ask.variant, ask.wanted)
    gives = preempt(fleet, ask.model, ask.variant, ask.wanted).gives
    assert 0 <= least <= gives <= most <= ask.wanted
    assert most == ask.wanted or least == 0


@trials(60)
@given(st.one_of(asks(), crowded_asks()), st.lists(st.integers(1, 12), min_size=2, max_size=4))
def test_another_number_of_the_same_fleet_is_answered_as_on_a_fleet_of_its_own(
    ask: Ask, numbers: list[int]
) -> None:
    fleet = fleet_of(ask)
    larger = replace(ask.variant, gpus=ask.variant.gpus + 1)
    for wanted in numbers:
        for variant in (ask.variant, larger):
            found = preempt(fleet, ask.model, variant, wanted, again=True)
            assert found == preempt(fleet_of(ask), ask.model, variant, wanted)


def test_a_set_that_is_passed_over_takes_nothing_of_what_its_models_may_lose() -> None:
    models, sets = np.array([0, 1, 0, 0]), np.array([[0, 1], [2, -1], [3, -1]])
    left = np.array([1, 0])
    assert first_allowed(sets, 1, models, left).tolist() == [1]
    assert left.tolist() == [0, 0]
    # More than may be stopped: then the first of those that were passed over.
    assert first_allowed(sets, 2, models, np.array([1, 0])).tolist() == [1, 0]
    # Without a limit, in order.
    assert first_allowed(sets, 2, np.full(4, -1), left).tolist() == [0, 1]


@trials(40)
@given(crowded_asks())
def test_without_a_bound_from_the_relaxation_as_much_is_found(ask: Ask) -> None:
    whole = preempt(fleet_of(ask), ask.model, ask.variant, ask.wanted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "_RELAXED_WORK", 0)
        found = preempt(fleet_of(ask), ask.model, ask.variant, ask.wanted)
    assert (found.gives, found.victims) == (whole.gives, whole.victims)


@trials(40)
@given(asks())
def test_what_serves_is_known_anew_of_the_models_that_changed(ask: Ask) -> None:
    fleet = fleet_of(ask)

    def serving(of: Fleet) -> list[tuple[list[ReplicaSpec], Mapping[str, int]]]:
        names = [model.name for model in ask.models]
        return [(of.serving(name), of.serving_by_variant(name)) for name in names]

    serving(fleet)  # known before the change
    left = ask.replicas[1:]
    gone = [replica.name for replica in ask.replicas[:1]]
    then = fleet.with_replicas(removed=gone)
    assert serving(then) == serving(Fleet.build(ask.nodes, ask.models, left))
