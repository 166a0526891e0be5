"""The nodes of an answer counted and paged through, against the whole list of them."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sizing.domain.answer import Answer, answer
from sizing.domain.catalog import Catalog, Question
from sizing.domain.fleet import Fleet
from sizing.domain.preemption import node_preemption
from sizing.domain.reasons import survey
from sizing.domain.specs import MeasurementSpec, ProfileSpec
from tests.domain.preemption_strategies import Ask, wide_asks

CODES = ("open", "too_few_free_gpus", "node_cordoned", "gpu_type_mismatch", "no such code")


def answer_to(ask: Ask) -> Answer:
    fleet = Fleet.build(ask.nodes, ask.models, ask.replicas)
    variant = ask.variant
    measured = MeasurementSpec(
        ask.model.name, variant.name, "chat", Decimal(1), datetime(2026, 1, 1, tzinfo=UTC)
    )
    catalog = Catalog.of(ask.models, [ProfileSpec("chat")], [measured])
    return answer(catalog, fleet, Question(ask.model.name, Decimal(3), "chat", variant.name))


def plain_rows(asked: Answer) -> list[dict[str, Any]]:
    """Each node's entry without its sentence, from the survey, and from a fleet that has lost the victims."""
    fleet, counted = asked.fleet, asked.count
    now = survey(fleet, counted.variant)
    gone = [victim.name for victim in asked.reach.victims]
    then = survey(fleet.with_replicas(removed=gone), counted.variant)
    stopping = node_preemption(fleet, counted.model, counted.variant)
    rows = []
    for number, node in enumerate(fleet.hardware.nodes):
        stops = [name for name in gone if node.name in dict(fleet.replicas[name].spec.placement)]
        after = {
            "stops": stops,
            "code": then.codes[number],
            "fits": then.fits[number],
            "numbers": then.numbers(number),
        }
        rows.append(
            {
                "node": node.name,
                "code": now.codes[number],
                "fits": now.fits[number],
                "numbers": now.numbers(number),
                "holders": sorted(fleet.holders_on(number)),
                "preemption": stopping[number],
                "after": after if stops else None,
            }
        )
    return rows


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(wide_asks(), st.sets(st.sampled_from(CODES)), st.integers(0, 4), st.integers(0, 4))
def test_counts_and_pages_say_what_the_whole_list_says(
    ask: Ask, codes: set[str], start: int, size: int
) -> None:
    asked = answer_to(ask)
    everything = plain_rows(asked)
    told = asked.node_rows()
    said = {row["node"]: row.pop("say") for row in told}
    assert told == everything
    number = Counter(row["code"] for row in everything)
    fits: Counter[str] = Counter()
    for row in everything:
        fits[row["code"]] += row["fits"]
    order = sorted(number, key=lambda code: (code != "open", -number[code], code))
    assert asked.node_counts() == [(code, number[code], fits[code]) for code in order]
    chosen = [row | {"say": said[row["node"]]} for row in everything if row["code"] in codes]
    assert asked.node_rows(codes, start, start + size) == chosen[start : start + size]
