"""Replicas with a priority of their own: who may be stopped, who goes first, and what the answer says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

from sizing.domain.answer import Answer, answer
from sizing.domain.catalog import Catalog, Question
from sizing.domain.fleet import Fleet
from sizing.domain.specs import (
    GpuSpec,
    MeasurementSpec,
    ModelSpec,
    NodeSpec,
    ProfileSpec,
    ReplicaSpec,
    VariantSpec,
)

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
ONE = VariantSpec("one")
ASKING = ModelSpec("asking", priority=50, default_profile="chat", variants=(ONE,))
BATCH = ModelSpec("batch", priority=10, variants=(ONE,))
VITAL = ModelSpec("vital", priority=100, variants=(ONE,))


def held(name: str, gpu: int, of: str = "batch", priority: int | None = None) -> ReplicaSpec:
    return ReplicaSpec(name, of, "one", "ready", NOON, (("n", (gpu,)),), priority)


def ask(wanted: int, replicas: list[ReplicaSpec], *models: ModelSpec) -> Answer:
    models = models or (ASKING, BATCH, VITAL)
    node = NodeSpec("n", tuple(GpuSpec(index, "L4", 24576) for index in range(len(replicas))))
    measured = [MeasurementSpec("asking", "one", "chat", Decimal(10), NOON)]
    catalog = Catalog.of(models, [ProfileSpec("chat")], measured)
    current = sum(10 for one in replicas if one.model == "asking")
    question = Question("asking", Decimal(10 * wanted + current))
    return answer(catalog, Fleet.build([node], models, replicas), question)


def stopped(found: Answer) -> list[tuple[str, int]]:
    form = found.as_dict(NOON)
    return [(victim["replica"], victim["priority"]) for victim in form["preemption"]["victims"]]


def test_a_priority_of_its_own_counts_before_its_models() -> None:
    assert stopped(ask(1, [held("r", 0)])) == [("r", 10)]
    assert stopped(ask(1, [held("r", 0, priority=49)])) == [("r", 49)]
    assert stopped(ask(1, [held("r", 0, priority=50)])) == []
    assert stopped(ask(1, [held("r", 0, of="vital")])) == []
    assert stopped(ask(1, [held("r", 0, of="vital", priority=0)])) == [("r", 0)]


def test_of_one_model_the_replica_of_the_lowest_priority_goes() -> None:
    replicas = [held("a", 0), held("b", 1, priority=-5), held("c", 2, priority=30)]
    assert stopped(ask(1, replicas)) == [("b", -5)]
    assert stopped(ask(2, replicas)) == [("a", 10), ("b", -5)]
    assert ask(3, replicas).as_dict(NOON)["preemption"]["why"] == [
        "priority -5: 1 replica; stopping all that may be stopped up to this priority"
        " gives room for at most 1 of 3",
        "priority 10: 1 replica; stopping all that may be stopped up to this priority"
        " gives room for at most 2 of 3",
    ]


def test_a_change_of_a_priority_alone_is_taken_over() -> None:
    replicas = [held("a", 0), held("b", 1)]
    before = ask(1, replicas)
    assert stopped(before) == [("a", 10)]
    fleet = before.fleet.with_replicas(added=[held("b", 1, priority=0)])
    assert stopped(answer(before.catalog, fleet, Question("asking", Decimal(10)))) == [("b", 0)]


def test_a_minimum_is_named_where_it_protects_a_low_replica_of_a_high_model() -> None:
    guarded = replace(VITAL, min_replicas=2)
    low = [held("v0", 0, "vital", 0), held("v1", 1, "vital", 0)]
    found = ask(1, low, ASKING, BATCH, guarded)
    assert found.reasons == ["protected_by_minimum"]
    assert found.blocked[1].endswith("but minima protect them (vital: 2 left, minimum 2)")
    assert str(found.changes[0]) == "lower min_replicas of vital to 1: +1"


def test_a_minimum_that_protects_only_higher_replicas_or_its_own_is_not_named() -> None:
    own, batch = replace(ASKING, min_replicas=1), replace(BATCH, min_replicas=1)
    other = ModelSpec("other", 0, min_replicas=1, variants=(ONE,))
    replicas = [held("a", 0, "asking", 0), held("b0", 1, priority=60), held("o0", 2, "other")]
    found = ask(3, replicas, own, batch, other)
    assert found.reasons == ["protected_by_minimum", "no_lower_priority"]
    assert found.blocked[1].endswith("but minima protect them (other: 1 left, minimum 1)")


def test_what_the_model_holds_itself_is_told_apart_where_it_is_of_lower_priority() -> None:
    told = "what holds the rest has no lower priority than asking (50)"
    assert told in ask(1, [held("a", 0, "asking"), held("v", 1, "vital")]).blocked
    own = ask(1, [held("a", 0, "asking", priority=0), held("v", 1, "vital")])
    assert stopped(own) == []
    assert f"{told}, or is its own" in own.blocked
