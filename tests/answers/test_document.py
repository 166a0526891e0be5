"""An inventory as a document: what comes back is what went in, whole and through differences."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sizing.domain.answer import answer
from sizing.domain.catalog import Catalog, Question
from sizing.domain.fleet import Fleet
from sizing.domain.overlay import Overlay
from sizing.domain.specs import MeasurementSpec, NodeSpec, ProfileSpec
from sizing.services.answers.document import (
    Document,
    Inventory,
    difference,
    inventory_of,
    merged,
    packed,
    sharing,
    unpacked,
    whole,
)
from sizing.services.answers.noting import form_of
from tests.domain.preemption_strategies import Ask, asks

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def measured(ask: Ask, rate: str = "10.5", **fields: Any) -> MeasurementSpec:
    known: dict[str, Any] = {
        "source": "builtin",
        "bound": "floor",
        "warnings": ("few_requests: 60",),
        "order": 7,
    }
    spec = MeasurementSpec(
        ask.model.name, ask.variant.name, "chat", Decimal(rate), NOW - timedelta(hours=1, microseconds=3)
    )
    return replace(spec, **(known | fields))


def inventory(ask: Ask, *measurements: MeasurementSpec) -> tuple[Inventory, Fleet]:
    profiles = [ProfileSpec("chat", Decimal("0.5")), ProfileSpec("rag")]
    catalog = Catalog.of(ask.models, profiles, measurements or [measured(ask)])
    fleet = Fleet.build(ask.nodes, ask.models, ask.replicas)
    return Inventory.of(catalog, fleet), fleet


def specs(of: Inventory) -> tuple[Any, ...]:
    replicas = {name: held.spec for name, held in of.replicas.items()}
    return of.nodes, replicas, of.catalog


def changed(draw: st.DrawFn, ask: Ask, come: str) -> Ask:
    """The cluster after some writes: replicas ended, nodes come, other, gone, a model of another rank."""
    nodes = list(ask.nodes)
    replicas = [one for one in ask.replicas if draw(st.booleans())]
    held = {name for one in replicas for name, _ in one.placement}
    if draw(st.booleans()):
        nodes[0] = replace(nodes[0], schedulable=not nodes[0].schedulable, labels={"zone": "new"})
    if draw(st.booleans()):
        nodes.append(NodeSpec(come, nodes[0].gpus))
    if draw(st.booleans()):
        nodes = [node for node in nodes if node.name in held or node is nodes[-1]]
    models = ask.models
    if draw(st.booleans()):
        models = tuple(replace(one, min_replicas=one.min_replicas + 1) for one in models)
    model = next(one for one in models if one.name == ask.model.name)
    return ask._replace(nodes=tuple(nodes), replicas=tuple(replicas), models=models, model=model)


@st.composite
def histories(draw: st.DrawFn) -> list[Ask]:
    """A cluster at three moments."""
    first = draw(asks())
    second = changed(draw, first, "new-1")
    return [first, second, changed(draw, second, "new-2")]


def read(*documents: Document) -> Inventory:
    plain: Document = {}
    for document in documents:
        plain = merged(plain, unpacked(packed(document)))
    return inventory_of(plain)


@given(histories())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_an_answer_is_the_same_on_what_was_kept_whole_or_as_a_difference(history: list[Ask]) -> None:
    before, _ = inventory(history[0])
    for ask in history:
        now, fleet = inventory(ask, measured(ask, "10.5"), measured(ask, "0", slo_met=False, order=8))
        question = Question(ask.model.name, Decimal(105), "chat", ask.variant.name)
        given_then = form_of(answer(now.catalog, fleet, question), NOW)
        for kept in (read(whole(now)), read(whole(before), difference(before, now))):
            assert specs(kept) == specs(now)
            assert form_of(answer(kept.catalog, kept.fleet(), question), NOW) == given_then
            again = sharing(kept, before, difference(kept, before))
            assert specs(again) == specs(now)


def test_what_is_the_same_in_both_is_neither_looked_into_nor_told() -> None:
    node = NodeSpec("a")
    catalog = Catalog({}, {}, {}, {})
    base = Inventory((node,), Overlay({}), catalog)
    assert difference(base, Inventory((node,), base.replicas, catalog)) == {}
    assert difference(base, Inventory((replace(node, ready=False),), base.replicas, catalog)) == {
        "nodes": {"a": replace(node, ready=False)}
    }
    assert difference(base, Inventory((), base.replicas, catalog)) == {"nodes": {"a": None}}


def test_a_large_section_is_written_in_pieces_that_make_one() -> None:
    nodes = tuple(NodeSpec(f"n{i:04}") for i in range(1001))
    kept = read(whole(Inventory(nodes, Overlay({}), Catalog({}, {}, {}, {}))))
    assert kept.nodes == nodes
