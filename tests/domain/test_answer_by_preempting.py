"""The answer where lower priorities would have to stop: who, why nobody cheaper, and what would help."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

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
H100 = "NVIDIA-H100-80GB-HBM3"
ONE, FOUR = VariantSpec("one"), VariantSpec("four", gpus=4)

LLAMA = ModelSpec("llama", priority=50, default_profile="chat", variants=(FOUR,))
BATCH = ModelSpec("batch", priority=0, default_profile="bulk", variants=(ONE, FOUR))
SEARCH = ModelSpec("search", priority=10, variants=(ONE, FOUR))


def node(name: str, count: int = 8, **fields: Any) -> NodeSpec:
    return NodeSpec(name, tuple(GpuSpec(i, H100, 80000) for i in range(count)), **fields)


def held(name: str, model: str, where: str, *gpus: int, **fields: Any) -> ReplicaSpec:
    variant = "four" if len(gpus) == 4 else "one"
    return ReplicaSpec(name, model, fields.pop("variant", variant), placement=((where, gpus),), **fields)


def ask(
    nodes: list[NodeSpec],
    replicas: list[ReplicaSpec],
    tokens: str = "1000",
    models: tuple[ModelSpec, ...] = (LLAMA, BATCH, SEARCH),
) -> Answer:
    measured = [
        MeasurementSpec("llama", "four", "chat", Decimal(1000), NOON),
        MeasurementSpec("batch", "four", "bulk", Decimal(900), NOON),
        MeasurementSpec("batch", "four", "chat", Decimal(700), NOON),
        MeasurementSpec("search", "four", "chat", Decimal(300), NOON),
    ]
    catalog = Catalog.of(models, [ProfileSpec("chat"), ProfileSpec("bulk")], measured)
    return answer(catalog, Fleet.build(nodes, models, replicas), Question("llama", Decimal(tokens)))


FULL = [
    held("b0", "batch", "a", 0, 1, 2, 3),
    held("s0", "search", "a", 4, 5, 6, 7),
    held("b1", "batch", "b", 0, 1, 2, 3),
]


def test_the_form_names_who_would_stop_what_is_lost_and_what_is_left() -> None:
    form = ask([node("a"), node("b", 4)], FULL).as_dict(NOON)
    assert (form["free_room"], form["by_preempting"], form["room"], form["fits"]) == (0, 1, 1, True)
    assert form["preempts"] == ["batch"]
    assert "blocked" not in form
    assert form["preemption"] == {
        "victims": [{"replica": "b0", "model": "batch", "priority": 0, "nodes": ["a"], "tok_per_sec": 900.0}],
        "models": [{"model": "batch", "stopped": 1, "left": 1, "min_replicas": 0}],
        "optimal": True,
        "why": [],
    }


def test_what_a_victim_serves_is_unknown_where_it_was_not_measured_and_nothing_where_it_failed() -> None:
    models = (LLAMA, replace(BATCH, default_profile=None), SEARCH)
    unmeasured = [held("x", "search", "a", 0, variant="one")]
    form = ask([node("a", 4)], unmeasured, models=models).as_dict(NOON)
    assert form["preemption"]["victims"][0]["tok_per_sec"] is None
    failed = [held("x", "batch", "a", 0, 1, 2, 3, state="failed")]
    form = ask([node("a", 4)], failed, models=models).as_dict(NOON)
    assert form["preemption"]["victims"][0]["tok_per_sec"] == 0.0
    assert form["preemption"]["models"] == [{"model": "batch", "stopped": 1, "left": 0, "min_replicas": 0}]


def test_without_a_default_profile_the_one_asked_for_tells_what_is_lost() -> None:
    models = (LLAMA, replace(BATCH, default_profile=None), SEARCH)
    form = ask([node("a", 4)], [held("b0", "batch", "a", 0, 1, 2, 3)], models=models).as_dict(NOON)
    assert form["preemption"]["victims"][0]["tok_per_sec"] == 700.0


def test_nobody_is_asked_to_stop_for_what_fits_or_max_replicas_forbids() -> None:
    assert ask([node("a", 4)], []).as_dict(NOON)["preemption"] is None
    models = (replace(LLAMA, max_replicas=0), BATCH, SEARCH)
    form = ask([node("a", 4)], [held("b0", "batch", "a", 0, 1, 2, 3)], models=models).as_dict(NOON)
    assert form["preemption"] is None
    assert form["reasons"] == ["max_replicas"]
    assert "preempts" not in form


def test_it_says_why_nobody_cheaper_would_do() -> None:
    models = (LLAMA, replace(BATCH, min_replicas=2), SEARCH)
    form = ask([node("a"), node("b", 4)], FULL, models=models).as_dict(NOON)
    assert form["preempts"] == ["search"]
    assert form["preemption"]["why"] == ["priority 0: 2 replicas, all protected by their minimum"]


def test_where_not_all_can_be_had_it_says_what_stopping_gives_and_which_rule_binds() -> None:
    models = (LLAMA, replace(BATCH, min_replicas=1), SEARCH)
    found = ask([node("a"), node("b", 4)], FULL, "3000", models)
    assert (found.by_preempting, found.fits) == (2, False)
    assert found.reasons == ["protected_by_minimum"]
    assert found.blocked[:3] == [
        "0 of 3 more replicas fit; 3 more need 4 free GPUs of one type on one node each",
        "stopping 2 replicas of lower priority (1 of batch and 1 of search) gives 2 of 3",
        "more could be had from replicas of lower priority, but minima protect them"
        " (batch: 1 left, minimum 1)",
    ]
    assert next(str(c) for c in found.changes) == "lower min_replicas of batch to 0: +1"


def test_a_model_that_never_preempts_says_so() -> None:
    models = (replace(LLAMA, preemption_policy="Never"), BATCH, SEARCH)
    found = ask([node("a"), node("b", 4)], FULL, models=models)
    assert (found.by_preempting, found.reasons) == (0, ["preemption_never"])
    assert found.blocked[1] == "llama does not preempt (its policy is Never)"
    assert {n["preemption"] for n in found.nodes} == {"preemption_never"}


def test_each_node_tells_what_it_could_give_and_how_it_would_be_afterwards() -> None:
    models = (LLAMA, replace(BATCH, min_replicas=1), SEARCH)
    replicas = [*FULL, held("l0", "llama", "c", 0, 1, 2, 3)]
    found = ask([node("a"), node("b", 4), node("c", 4)], replicas, "2000", models)
    assert [(n["node"], n["preemption"]) for n in found.nodes] == [
        ("a", {"gives": 2}),
        ("b", {"gives": 1}),
        ("c", "no_lower_priority"),
    ]
    assert [n["after"] for n in found.nodes] == [
        {"stops": ["b0"], "code": "open", "fits": 1, "numbers": {"free": 4, "need": 4}},
        None,
        None,
    ]


def test_changes_are_asked_again_with_preemption() -> None:
    found = ask(
        [node("a", 4), node("b", 4, schedulable=False)], [held("b0", "batch", "a", 0, 1, 2, 3)], "3000"
    )
    assert (found.by_preempting, found.count.more) == (1, 3)
    assert [str(c) for c in found.changes] == ["uncordon b: +1", f"one more node like a (4 {H100}): +1"]


def test_raising_max_replicas_counts_what_preempting_adds() -> None:
    models = (replace(LLAMA, max_replicas=0), BATCH, SEARCH)
    found = ask([node("a"), node("b", 4)], FULL, "2000", models)
    assert [str(c) for c in found.changes] == ["raise max_replicas from 0 to 2: +2"]


def test_a_replica_is_moved_only_where_that_really_helps() -> None:
    alone = [held("x", "search", "a", 0, variant="one"), held("y", "search", "b", 0, variant="one")]
    models = (replace(LLAMA, priority=0), BATCH, SEARCH)
    found = ask([node("a", 4), node("b", 4)], alone, models=models)
    assert next(str(c) for c in found.changes) == "move x from a to b: +1"
    full = [*alone, *(held(f"z{i}", "search", "b", i, variant="one") for i in (1, 2, 3))]
    found = ask([node("a", 4), node("b", 4)], full, models=models)
    assert not [c for c in found.changes if "move" in str(c)]


def test_a_minimum_binds_also_where_its_model_may_lose_some() -> None:
    models = (LLAMA, replace(BATCH, min_replicas=1), SEARCH)
    replicas = [held(f"b{i}", "batch", "a", i) for i in range(2)]
    found = ask([node("a", 4)], replicas, models=models)
    assert (found.by_preempting, found.reasons) == (0, ["protected_by_minimum"])
    assert found.blocked[1] == (
        "more could be had from replicas of lower priority, but minima protect them"
        " (batch: 2 left, minimum 1)"
    )
    assert str(found.changes[0]) == "lower min_replicas of batch to 0: +1"


def test_what_draining_frees_counts_preemption_too() -> None:
    replicas = [held("b0", "batch", "a", 0, 1, 2), held("old", "batch", "a", 3, state="draining")]
    replicas[0] = replace(replicas[0], variant="one", placement=(("a", (0,)),))
    more = [held("b1", "batch", "a", 1), held("b2", "batch", "a", 2)]
    found = ask([node("a", 4)], [*replicas, *more])
    assert found.by_preempting == 0
    assert "when draining old ends: +1" in found.blocked


def test_what_preempting_gives_already_is_not_counted_for_draining_again() -> None:
    replicas = [held("b0", "batch", "a", 0, 1, 2, 3), held("old", "batch", "a", 4, 5, 6, 7, state="draining")]
    found = ask([node("a")], replicas, "3000")
    assert (found.by_preempting, found.count.more) == (1, 3)
    assert "when draining old ends: +1" in found.blocked
    fits = ask([node("a")], replicas, "1000")
    assert fits.fits
    assert fits.blocked == []


def test_a_draining_or_failed_replica_is_not_moved() -> None:
    models = (replace(LLAMA, priority=0), BATCH, SEARCH)
    for state in ("draining", "failed"):
        stuck = [held("x", "search", "a", 0, state=state), held("y", "search", "b", 0)]
        found = ask([node("a", 4), node("b", 4)], stuck, models=models)
        assert [c.text for c in found.changes if "move" in c.text] == ["move y from b to a"]


def test_changes_of_what_is_slow_to_ask_again_keep_the_same_victims() -> None:
    found = ask(
        [node("a", 4), node("b", 4, schedulable=False)], [held("b0", "batch", "a", 0, 1, 2, 3)], "3000"
    )
    assert found.preemption is not None
    slow = replace(found)
    vars(slow)["reach"] = replace(found.reach, preemption=replace(found.preemption, quick=False))
    assert [str(c) for c in slow.changes] == ["uncordon b: +1", f"one more node like a (4 {H100}): +1"]
