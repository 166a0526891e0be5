"""Answers as if something were other than it is: each suggested change, asked again, gives what was told."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from sizing.domain.answer import Answer, answer
from sizing.domain.catalog import Catalog, Question, QuestionError
from sizing.domain.changes import Change
from sizing.domain.fleet import Fleet
from sizing.domain.hardware import Hardware
from sizing.domain.picture import node_picture
from sizing.domain.specs import (
    GpuSpec,
    MeasurementSpec,
    ModelSpec,
    NodeSpec,
    ProfileSpec,
    ReplicaSpec,
    VariantSpec,
)
from sizing.domain.supposing import MOST_SUPPOSED, in_words, suppose, supposed_too
from tests.domain.preemption_strategies import Ask, asks, crowded_asks
from tests.domain.strategies import Cluster, clusters, pick

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
TRIALS = 1000 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 60


def catalog_of(models: tuple[ModelSpec, ...]) -> Catalog:
    """Each model's first variant serves 10, the second 15, the third 20 tokens per second."""
    measured = [
        MeasurementSpec(model.name, variant.name, "chat", Decimal(10 + 5 * at), NOON)
        for model in models
        for at, variant in enumerate(model.variants)
    ]
    return Catalog.of(models, [ProfileSpec("chat")], measured)


def told_of(found: Answer) -> list[Change]:
    awaited = found.awaited
    return [*found.changes, *([awaited] if awaited and awaited.as_if else [])]


# ---------------------------------------------------------------- any cluster

SELDOM = ("named types", "partitions", "unknown memory", "taints", "labels", "many nodes", "mixed sizes")
"""Complications that no change helps against, but another variant or node."""


@st.composite
def questions(draw: st.DrawFn) -> tuple[Ask, Question, list[int]]:
    """More than fits, on a cluster where much is closed, full or limited; and which changes to go on with."""
    random = asks(always=("many GPUs",), never=pick(draw, SELDOM, ()), most_replicas=9)
    ask = draw(pick(draw, random, crowded_asks()))
    nodes = tuple(closed(node, pick(draw, *"-----crsho")) for node in ask.nodes)
    limited = replace(ask.model, max_replicas=pick(draw, None, None, None, None, 0, 1, 3))
    models = tuple(limited if model is ask.model else model for model in ask.models)
    tokens = 10 * pick(draw, 2, 4, 7, 15)
    question = Question("ask", Decimal(tokens), "chat", pick(draw, None, ask.variant.name))
    return (
        ask._replace(nodes=nodes, models=models, model=limited),
        question,
        [draw(st.integers(0, 4)) for _ in range(2)],
    )


def closed(node: NodeSpec, how: str) -> NodeSpec:
    """The node cordoned, not ready, stale, its GPUs unhealthy or used outside, or as it is."""
    match how:
        case "c":
            return replace(node, schedulable=False)
        case "r":
            return replace(node, ready=False)
        case "s":
            return replace(node, stale=True)
        case "h":
            return replace(node, gpus=tuple(replace(gpu, healthy=False) for gpu in node.gpus))
        case "o":
            return replace(node, gpus=tuple(replace(gpu, used_outside_mib=90000) for gpu in node.gpus))
    return node


@settings(
    max_examples=TRIALS,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(questions())
def test_each_change_asked_again_gives_the_gain_that_was_told(
    asked: tuple[Ask, Question, list[int]],
) -> None:
    ask, question, ways = asked
    catalog, fleet = catalog_of(ask.models), Fleet.build(ask.nodes, ask.models, ask.replicas)
    for way in [*ways, 0]:
        found = answer(catalog, fleet, question)
        changes = told_of(found)
        for change in changes:
            event(change.as_if[0].partition(":")[0] if change.as_if else "variant")
            again = answer(catalog, fleet, change.asked(question))
            before = 0 if change.variant else found.reach.had
            assert again.reach.had - before == change.gain, str(change)
            assert form(again) == form(built_so(ask, again)), str(change)
        if not changes:
            break
        question = changes[way % len(changes)].asked(question)  # one change on top of another


def form(found: Answer) -> dict[str, object]:
    """The answer without what tells the two ways to suppose apart."""
    form = found.as_dict(NOON, explain_nodes=True)
    nodes = sorted((node["code"], node["fits"], node["holders"]) for node in form["nodes"])
    public = {key: form[key] for key in ("needed", "current", "more", "room", "free_room", "fits", "reasons")}
    return {**public, "nodes": nodes, "preempts": form["preemption"] and len(form["preemption"]["victims"])}


def built_so(ask: Ask, supposed: Answer) -> Answer:
    """The same question to a cluster that is built as was supposed."""
    nodes = {node.name: node for node in ask.nodes}
    models = {model.name: model for model in ask.models}
    replicas = {replica.name: replica for replica in ask.replicas}
    for text in supposed.question.as_if:
        kind, *parts = map(unquote, text.split(":"))
        match kind, parts:
            case "uncordon", [name]:
                nodes[name] = replace(nodes[name], schedulable=True)
            case "ready", [name]:
                nodes[name] = replace(nodes[name], ready=True)
            case "seen", [name]:
                nodes[name] = replace(nodes[name], stale=False)
            case "healthy", [name]:
                gpus = tuple(replace(gpu, healthy=True) for gpu in nodes[name].gpus)
                nodes[name] = replace(nodes[name], gpus=gpus)
            case "nothing_outside", [name]:
                gpus = tuple(replace(gpu, used_outside_mib=0) for gpu in nodes[name].gpus)
                nodes[name] = replace(nodes[name], gpus=gpus)
            case "more_like", [name]:
                like = nodes[name]
                gpus = tuple(replace(gpu, healthy=True, used_outside_mib=0) for gpu in like.gpus)
                # It does not matter where among the others it stands.
                new = next(new for i in range(1, 9) if (new := f"{name} +{i}") not in nodes)
                nodes[new] = replace(like, name=new, gpus=gpus, ready=True, schedulable=True, stale=False)
            case "ended", [name]:
                del replicas[name]
            case "move", [name, _]:
                replicas[name] = supposed.fleet.replicas[name].spec
            case "max_replicas", [count]:
                models["ask"] = replace(models["ask"], max_replicas=int(count))
            case "min_replicas", [name, count]:
                models[name] = replace(models[name], min_replicas=int(count))
            case _:
                raise AssertionError(text)
    fleet = Fleet.build(nodes.values(), models.values(), replicas.values())
    return answer(catalog_of(tuple(models.values())), fleet, replace(supposed.question, as_if=()))


@given(clusters(always=("two types", "labels", "taints", "host")))
def test_a_node_that_is_put_behind_the_others_makes_the_hardware_that_is_built_with_it(
    cluster: Cluster,
) -> None:
    node = replace(cluster.nodes[-1], name="~")
    before = Hardware(cluster.nodes)
    assert len(before.mix) == len(cluster.nodes)
    quick = before.with_node(node)
    built = Hardware([*cluster.nodes, node])
    assert vars(quick).keys() == vars(built).keys()
    for name, value in vars(built).items():
        if not name.startswith("taint_set"):
            np.testing.assert_equal(vars(quick)[name], value, name)
    assert [quick.taint_sets[number] for number in quick.taint_set] == [n.taints for n in built.nodes]
    assert quick.mix.tolist() == built.mix.tolist()


# ---------------------------------------------------------------- by hand

ONE = VariantSpec("one")
PAIR = VariantSpec("pair", nodes=2)
MODELS = (ModelSpec("m", max_replicas=9, variants=(ONE,)), ModelSpec("b: x/y", variants=(ONE, PAIR)))


def gpus(count: int, **fields: Any) -> tuple[GpuSpec, ...]:
    return tuple(GpuSpec(index, "L4", 24000, **fields) for index in range(count))


NODES = (
    NodeSpec("cordoned", gpus(1), schedulable=False),
    NodeSpec("down", gpus(1), ready=False),
    NodeSpec("full", gpus(2)),
    NodeSpec("mixed", (GpuSpec(0, "L4", 24000, False), GpuSpec(1, "L4", 24000, used_outside_mib=2000))),
    NodeSpec("old", gpus(1), stale=True),
)
REPLICAS = (
    ReplicaSpec("m-0", "m", "one", placement=(("full", (0,)),)),
    ReplicaSpec("over: 2", "b: x/y", "pair", placement=(("full", (1,)), ("old", (0,)))),
    ReplicaSpec("waiting", "m", "one", "pending"),
)


def ask(*as_if: str, tokens: int = 1000) -> Answer:
    fleet = Fleet.build(NODES, MODELS, REPLICAS)
    return answer(catalog_of(MODELS), fleet, Question("m", Decimal(tokens), as_if=as_if))


@pytest.mark.parametrize(
    ("as_if", "room", "current"),
    [
        ((), 0, 1),
        (("uncordon:cordoned",), 1, 1),
        (("ready:down",), 1, 1),
        (("seen:old",), 0, 1),
        (("seen:old", "ended:over%3A%202"), 2, 1),
        (("healthy:mixed",), 1, 1),
        (("nothing_outside:mixed",), 1, 1),
        (("healthy:mixed", "nothing_outside:mixed", "uncordon:cordoned"), 3, 1),
        (("healthy:full", "uncordon:full", "ended:waiting"), 0, 1),
        (("more_like:full",), 2, 1),
        (("more_like:full", "more_like:cordoned", "more_like:full"), 5, 1),
        (("more_like:full", "move:m-0:full%20%2B1"), 2, 1),
        (("uncordon:cordoned", "move:m-0:cordoned"), 1, 1),
        (("move:m-0:full",), 0, 1),
        (("ended:m-0",), 1, 0),
        (("more_like:full", "max_replicas:2"), 1, 1),
        (("more_like:full", "max_replicas:1", "max_replicas:none"), 2, 1),
        (("min_replicas:b%3A%20x/y:5",), 0, 1),
    ],
)
def test_what_is_supposed_is_counted(as_if: tuple[str, ...], room: int, current: int) -> None:
    found = ask(*as_if)
    form = found.as_dict(NOON)
    assert (form["room"], form["current"]) == (room, current)
    assert form.get("as_if", []) == list(as_if)
    assert sum(nodes for _, nodes, _ in found.node_counts()) == len(found.fleet.hardware.nodes)


def test_a_supposed_node_is_drawn_as_it_would_be_and_the_known_fleet_stays_as_it_is() -> None:
    known = Fleet.build(NODES, MODELS, REPLICAS)
    texts = ("uncordon:cordoned", "ready:down", "seen:old", "healthy:mixed", "nothing_outside:mixed")
    question = Question("m", Decimal(1), as_if=(*texts, "more_like:mixed"))
    _, fleet = suppose(catalog_of(MODELS), known, question)
    pictures = [node_picture(fleet, number) for number in range(len(fleet.hardware.nodes))]
    assert [(picture.name, picture.closed) for picture in pictures] == [
        ("cordoned", ()),
        ("down", ()),
        ("full", ()),
        ("mixed", ()),
        ("old", ()),
        ("mixed +1", ()),
    ]
    assert [(gpu.healthy, gpu.used_outside_mib) for gpu in pictures[3].gpus] == [(True, 0), (True, 0)]
    assert known.hardware.nodes == NODES
    assert not known.hardware.healthy.all()


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("uncordon:nowhere", 'no node "nowhere"'),
        ("ended:nobody", 'no replica "nobody"'),
        ("move:m-0:nowhere", 'no node "nowhere"'),
        ("move:m-0:mixed", "mixed takes no replica of m · one"),
        ("move:over%3A 2:full", "only a replica on one node can be moved"),
        ("move:waiting:full", "only a replica on one node can be moved"),
        ("min_replicas:nobody:1", 'no model "nobody"'),
        ("max_replicas:-1", "a whole number from 0 to 2,147,483,647 is needed"),
        ("max_replicas:2147483648", "a whole number from 0 to 2,147,483,647 is needed"),
        ("max_replicas:\u0661", "a whole number from 0 to 2,147,483,647 is needed"),
        ("min_replicas:m:none", "a whole number from 0 to 2,147,483,647 is needed"),
    ],
)
def test_what_cannot_be_supposed_is_named(text: str, wrong: str) -> None:
    with pytest.raises(QuestionError) as refused:
        ask("uncordon:cordoned", text)
    assert (refused.value.code, refused.value.message) == ("invalid", f'as_if "{text}": {wrong}')


@pytest.mark.parametrize(
    "text", ["", "cordon:full", "uncordon", "uncordon:full:2", "move:over: 2:full", "x" * 500]
)
def test_what_is_no_supposition_is_told_which_there_are(text: str) -> None:
    with pytest.raises(
        QuestionError, match=r"uncordon:NODE, .*, min_replicas:MODEL:N, names perc"
    ) as refused:
        ask(text)
    assert len(refused.value.message) < 400
    assert in_words(text) == text


def test_at_most_so_many_are_supposed() -> None:
    assert ask(*["more_like:full"] * MOST_SUPPOSED).fits is False
    with pytest.raises(QuestionError, match="at most 20 times"):
        ask(*["more_like:full"] * (MOST_SUPPOSED + 1))


def test_a_later_limit_takes_the_place_of_an_earlier_one_of_the_same_model() -> None:
    before = ("max_replicas:2", "min_replicas:a:1", "min_replicas:b:1", "more_like:n", "ended:max_replicas")
    assert supposed_too(before, ["min_replicas:a:0", "more_like:n", "max_replicas:5"]) == (
        "min_replicas:b:1",
        "more_like:n",
        "ended:max_replicas",
        "min_replicas:a:0",
        "more_like:n",
        "max_replicas:5",
    )


def test_suppositions_are_told_in_words() -> None:
    texts = ["uncordon:n", "ready:n", "seen:n", "healthy:n", "nothing_outside:n", "more_like:n"]
    texts += ["move:r%3A1:n", "ended:r", "max_replicas:5", "max_replicas:none", "min_replicas:m%3A1:0"]
    assert [in_words(text) for text in texts] == [
        "n were uncordoned",
        "n were ready",
        "n were seen again",
        "the GPUs of n were healthy",
        "nothing ran outside replicas on n",
        "there were one more node like n",
        "r:1 ran on n",
        "r had ended",
        "max_replicas were 5",
        "there were no max_replicas",
        "min_replicas of m:1 were 0",
    ]


def test_draining_replicas_are_a_change_to_ask_with_until_they_are_too_many() -> None:
    for many, as_if in ((2, ("ended:r%2F0", "ended:r%2F1")), (MOST_SUPPOSED + 1, ())):
        nodes = [NodeSpec("n", gpus(many))]
        leaving = [
            ReplicaSpec(f"r/{i}", "m", "one", "draining", placement=(("n", (i,)),)) for i in range(many)
        ]
        model = ModelSpec("m", variants=(ONE,))
        fleet = Fleet.build(nodes, [model], leaving)
        found = answer(catalog_of((model,)), fleet, Question("m", Decimal(10000)))
        assert found.awaited is not None
        assert (found.awaited.gain, found.awaited.as_if) == (many, as_if)


@pytest.mark.parametrize(
    ("changed", "told", "as_if"),
    [
        ({"schedulable": False}, "uncordon b%: +1", "uncordon:b%25"),
        ({"ready": False}, "bring b% back to ready: +1", "ready:b%25"),
        ({"stale": True}, "let b% be seen again: +1", "seen:b%25"),
        ({"gpus": gpus(2, healthy=False)}, "repair the unhealthy GPUs of b%: +1", "healthy:b%25"),
        (
            {"gpus": gpus(2, used_outside_mib=2000)},
            "stop what runs outside replicas on b%: +1",
            "nothing_outside:b%25",
        ),
        ({"gpus": gpus(1)}, "move r:1 from a to b%: +1", "move:r%3A1:b%25"),
    ],
)
def test_a_change_says_what_to_ask_again(changed: dict[str, object], told: str, as_if: str) -> None:
    model = ModelSpec("m", variants=(VariantSpec("two", gpus=2),))
    small = ModelSpec("s", 1, variants=(ONE,))
    nodes = [NodeSpec("a", gpus(2)), replace(NodeSpec("b%", gpus(2)), **changed)]  # type: ignore[arg-type]
    fleet = Fleet.build(nodes, [model, small], [ReplicaSpec("r:1", "s", "one", placement=(("a", (0,)),))])
    question = Question("m", Decimal(20))
    first = answer(catalog_of((model, small)), fleet, question).changes[0]
    assert (str(first), first.as_dict()["as_if"]) == (told, [as_if])
    again = answer(catalog_of((model, small)), fleet, first.asked(question))
    assert (again.reach.had, again.count.more) == (1, 2)


def test_another_variant_is_asked_for_in_its_place() -> None:
    big, little = VariantSpec("big", gpus=4), VariantSpec("little")
    model = ModelSpec("m", variants=(big, little))
    fleet = Fleet.build([NodeSpec("a", gpus(2))], [model], [])
    question = Question("m", Decimal(30), as_if=("more_like:a",))
    change = answer(catalog_of((model,)), fleet, question).changes[0]
    assert change.as_dict() == {"text": "variant little", "gain": 2, "note": "", "variant": "little"}
    again = answer(catalog_of((model,)), fleet, change.asked(question))
    assert (again.fits, again.reach.had, again.question.as_if) == (True, 2, ("more_like:a",))
