"""The answer as a whole: figures, warnings, reasons, sentences, and changes that were tried."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from sizing.domain.answer import Answer, answer
from sizing.domain.catalog import Catalog, Question, QuestionError
from sizing.domain.fleet import Fleet
from sizing.domain.reasons import LADDER
from sizing.domain.specs import (
    GpuSpec,
    MeasurementSpec,
    ModelSpec,
    NodeSpec,
    ProfileSpec,
    ReplicaSpec,
    Taint,
    VariantSpec,
)

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
H100 = "NVIDIA-H100-80GB-HBM3"


def node(name: str, count: int = 8, kind: str = H100, bad: int = 0, **fields: Any) -> NodeSpec:
    gpus = tuple(GpuSpec(i, kind, 80000, healthy=i >= bad) for i in range(count))
    return NodeSpec(name, gpus, **fields)


def measured(variant: str, rate: str, profile: str = "chat", **fields: Any) -> MeasurementSpec:
    fields.setdefault("measured_at", NOON - timedelta(hours=1))
    return MeasurementSpec("llama", variant, profile, Decimal(rate), **fields)


def replica(name: str, where: str, gpus: tuple[int, ...], **fields: Any) -> ReplicaSpec:
    fields = {"model": "llama", "variant": "tp4"} | fields
    return ReplicaSpec(name, placement=((where, gpus),), **fields)


TP4 = VariantSpec("tp4", gpus=4, gpu_types=(H100,))
TP8 = VariantSpec("tp8", gpus=8)
LLAMA = ModelSpec("llama", default_profile="chat", variants=(TP4, TP8))
OTHER = ModelSpec("other", priority=5, variants=(VariantSpec("one"),))


def ask(
    nodes: list[NodeSpec],
    replicas: list[ReplicaSpec] | None = None,
    tokens: str = "3000",
    model: ModelSpec = LLAMA,
    measurements: list[MeasurementSpec] | None = None,
    every: str | None = None,
    **question: Any,
) -> Answer:
    profiles = [ProfileSpec("chat", Decimal(every) if every else None), ProfileSpec("rag")]
    catalog = Catalog.of([model, OTHER], profiles, measurements or [measured("tp4", "1000")])
    fleet = Fleet.build(nodes, [model, OTHER], replicas or [])
    return answer(catalog, fleet, Question("llama", Decimal(tokens), **question))


def test_the_answer_has_every_figure() -> None:
    found = ask([node("a"), node("b", 3)], [replica("llama-0", "a", (0, 1, 2, 3))])
    assert found.as_dict(NOON) == {
        "model": "llama",
        "tok_per_sec": 3000.0,
        "per_replica_tok_per_sec": 1000.0,
        "profile": "chat",
        "variant": "tp4",
        "utilization": 1.0,
        "needed": 3,
        "current": 1,
        "more": 2,
        "surplus": 0,
        "room": 1,
        "free_room": 1,
        "by_preempting": 0,
        "fits": False,
        "blocked": [
            f"1 of 2 more replicas fits; 1 more needs 4 free {H100} on one node",
            "what holds the rest has no lower priority than llama (0)",
            "1 node (a): takes 1 more",
            "1 node (b): 3 such GPUs in all, 4 are needed on one node",
            f"one more node like a (8 {H100}): +1",
        ],
        "changes": [
            {"text": f"one more node like a (8 {H100})", "gain": 1, "note": "", "as_if": ["more_like:a"]}
        ],
        "preemption": {"victims": [], "models": [], "optimal": True, "why": []},
        "current_tok_per_sec": 1000.0,
        "measurement": {
            "measured_at": "2026-11-30T11:00:00Z",
            "age_s": 3600,
            "stale": False,
            "source": "manual",
            "bound": None,
        },
        "reasons": ["no_lower_priority"],
        "warnings": [],
    }


def test_an_answer_that_fits_has_no_blocked_list() -> None:
    found = ask([node("a"), node("b")])
    assert found.fits
    assert "blocked" not in found.as_dict(NOON)
    assert "preempts" not in found.as_dict(NOON)


def test_what_runs_beyond_the_need_is_surplus() -> None:
    found = ask([node("a")], [replica("x", "a", (0, 1, 2, 3)), replica("y", "a", (4, 5, 6, 7))], "500")
    form = found.as_dict(NOON)
    assert (form["needed"], form["current"], form["more"], form["surplus"], form["fits"]) == (
        1,
        2,
        0,
        1,
        True,
    )
    assert form["free_room"] == 0


@pytest.mark.parametrize(
    ("state", "current", "free_room"),
    [("starting", 1, 1), ("ready", 1, 1), ("draining", 0, 1), ("failed", 0, 1), ("pending", 0, 2)],
)
def test_states_hold_and_count_as_they_should(state: str, current: int, free_room: int) -> None:
    found = ask([node("a")], [replica("x", "a", (0, 1, 2, 3), state=state)])
    assert (found.count.current, found.count.free_room) == (current, free_room)


def test_max_replicas_caps_the_room_and_is_named() -> None:
    found = ask([node("a"), node("b")], model=replace(LLAMA, max_replicas=2))
    form = found.as_dict(NOON)
    assert (form["more"], form["free_room"], form["fits"], form["reasons"]) == (3, 2, False, ["max_replicas"])
    assert form["blocked"][0] == "2 of 3 more replicas fit; max_replicas is 2 and 0 replicas run"
    assert form["blocked"][-1] == "raise max_replicas from 2 to 3: +1"


def test_max_replicas_below_what_runs_leaves_no_room() -> None:
    found = ask([node("a")], [replica("x", "a", (0, 1, 2, 3))], model=replace(LLAMA, max_replicas=0))
    assert found.count.free_room == 0
    assert found.reasons == ["max_replicas"]


def test_replicas_of_another_variant_count_with_their_own_rate() -> None:
    rates = [measured("tp4", "1000"), measured("tp8", "1500")]
    found = ask(
        [node("a"), node("b")],
        [replica("big", "a", tuple(range(8)), variant="tp8")],
        "2500",
        measurements=rates,
    )
    assert (found.count.needed, found.count.more) == (2, 1)
    assert found.as_dict(NOON)["current_tok_per_sec"] == 1500.0


def test_an_unmeasured_other_counts_as_nothing_and_warns() -> None:
    found = ask([node("a"), node("b")], [replica("big", "a", tuple(range(8)), variant="tp8")], "2000")
    assert (found.count.needed, found.count.more) == (3, 2)
    assert found.as_dict(NOON)["warnings"] == [
        "1 current replica of variant tp8 counted as 0 tok/s: not measured on chat"
    ]


def test_current_replicas_on_closed_nodes_and_unhealthy_gpus_count_with_a_warning() -> None:
    found = ask(
        [node("a", schedulable=False), node("b", bad=1)],
        [replica("x", "a", (0, 1, 2, 3)), replica("y", "b", (0, 1, 2, 3))],
    )
    assert found.count.current == 2
    assert found.count.warnings == (
        "current replicas on closed nodes: x on a (cordoned)",
        "current replicas on unhealthy GPUs: y",
    )


def test_a_measurement_is_stale_from_the_age_of_the_profile_on() -> None:
    found = ask([node("a")], every="1")
    form = found.as_dict(NOON)
    assert form["measurement"]["stale"] is True
    assert form["warnings"][0] == "the measurement of tp4 is stale: older than 1 h"
    assert found.as_dict(NOON - timedelta(seconds=1))["measurement"]["stale"] is False


def test_a_floor_is_said_to_be_one() -> None:
    found = ask([node("a")], measurements=[measured("tp4", "1000", bound="floor")])
    form = found.as_dict(NOON)
    assert form["measurement"]["bound"] == "floor"
    assert form["warnings"] == [
        "the measurement of tp4 is a floor: no load tried failed the SLO, so fewer replicas may do"
    ]


def test_the_newest_valid_measurement_counts_and_of_equal_times_the_one_stored_later() -> None:
    rates = [
        measured("tp4", "1", measured_at=NOON - timedelta(days=1), order=9),
        measured("tp4", "2", order=1),
        measured("tp4", "3", order=2),
        measured("tp4", "0", measured_at=NOON, order=3),
        measured("tp4", "5", measured_at=NOON, slo_met=False, order=4),
    ]
    assert ask([node("a")], measurements=rates).count.measurement.tok_per_sec == 3


def test_the_first_measured_variant_in_order_of_preference_is_chosen() -> None:
    assert ask([node("a")], measurements=[measured("tp8", "10")]).count.variant == TP8
    rates = [measured("tp8", "10"), measured("tp4", "1")]
    assert ask([node("a")], measurements=rates).count.variant == TP4


NO_DEFAULT = replace(LLAMA, default_profile=None)


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ({"profile": "x"}, "unknown_profile", 'no profile "x"; there are chat, rag'),
        ({"variant": "x"}, "unknown_variant", 'llama has no variant "x"; there are tp4, tp8'),
        (
            {"variant": "tp8"},
            "not_measured",
            "llama has not been measured; run `manage.py bench llama --save` first",
        ),
        (
            {"model": NO_DEFAULT, "measurements": [measured("tp4", "1"), measured("tp8", "1", "rag")]},
            "profile_required",
            "llama is measured on several profiles; name one of chat, rag",
        ),
        (
            {"model": NO_DEFAULT, "measurements": [measured("tp4", "0")]},
            "not_measured",
            "llama has not been measured; run `manage.py bench llama --save` first",
        ),
    ],
)
def test_a_question_without_an_answer_is_refused_with_what_there_is(
    given: dict[str, Any], code: str, message: str
) -> None:
    with pytest.raises(QuestionError) as refused:
        ask([node("a")], **given)
    assert (refused.value.code, refused.value.message) == (code, message)


def test_the_only_measured_profile_is_taken_where_there_is_no_default() -> None:
    found = ask([node("a")], model=NO_DEFAULT, measurements=[measured("tp4", "1", "rag")])
    assert found.count.measurement.profile == "rag"


def every_rung() -> list[NodeSpec]:
    """A node for each code that a variant of 4 GPUs with host demands can meet."""
    outside = tuple(GpuSpec(i, H100, 80000, used_outside_mib=2000) for i in range(4))
    slices = tuple(GpuSpec(i, H100, 80000, partition=True) for i in range(7))
    return [
        node("n01", 0),
        node("n02", kind="NVIDIA-L4"),
        node("n03", labels={"pool": "b"}),
        node("n04", labels={"pool": "a"}, taints=(Taint("dedicated", "x"),)),
        NodeSpec("n05", slices, labels={"pool": "a"}),
        node("n08", 3, labels={"pool": "a"}),
        node("n09", labels={"pool": "a"}, ready=False),
        node("n10", labels={"pool": "a"}, schedulable=False),
        node("n11", labels={"pool": "a"}, stale=True),
        node("n12", bad=5, labels={"pool": "a"}),
        NodeSpec("n13", outside, labels={"pool": "a"}),
        node("n14", 4, labels={"pool": "a"}),
        node("n15", labels={"pool": "a"}, cpu_millis=999),
        node("n16", labels={"pool": "a"}, memory_mib=999),
        node("n17", labels={"pool": "a"}, pods=0),
        node("n19", labels={"pool": "a"}),
    ]


PICKY = replace(TP4, node_selector=(("pool", "a"),), cpu_millis=1000, memory_mib=1000)


def test_every_node_has_one_code_with_its_quantities() -> None:
    found = ask(
        every_rung(),
        [ReplicaSpec("held", "other", "one", placement=(("n14", (0,)),))],
        model=replace(LLAMA, variants=(PICKY,)),
    )
    assert [(n["node"], n["code"], n["fits"], n["numbers"]) for n in found.nodes] == [
        ("n01", "no_gpus", 0, {}),
        ("n02", "gpu_type_mismatch", 0, {"gpus": 8}),
        ("n03", "selector_mismatch", 0, {}),
        ("n04", "taint_not_tolerated", 0, {}),
        ("n05", "partition_not_usable", 0, {"partitions": 7}),
        ("n08", "too_few_gpus", 0, {"gpus": 3, "need": 4}),
        ("n09", "node_not_ready", 0, {}),
        ("n10", "node_cordoned", 0, {}),
        ("n11", "node_stale", 0, {}),
        ("n12", "gpu_unhealthy", 0, {"healthy": 3, "need": 4}),
        ("n13", "used_outside", 0, {"usable": 0, "need": 4}),
        ("n14", "too_few_free_gpus", 0, {"free": 3, "need": 4}),
        ("n15", "host_cpu_short", 0, {"free_millis": 999, "need_millis": 1000}),
        ("n16", "host_memory_short", 0, {"free_mib": 999, "need_mib": 1000}),
        ("n17", "pods_short", 0, {"free": 0, "need": 1}),
        ("n19", "open", 2, {"free": 8, "need": 4}),
    ]
    assert found.nodes[11]["holders"] == ["held"]


def test_blocked_names_the_nearest_nodes_first_and_changes_that_were_tried() -> None:
    found = ask(
        every_rung(),
        [ReplicaSpec("held", "other", "one", placement=(("n14", (0,)),))],
        tokens="9000",
        model=replace(LLAMA, variants=(PICKY,)),
    )
    assert found.blocked == [
        f"2 of 9 more replicas fit; 7 more need 4 free {H100} on one node each",
        "what holds the rest has no lower priority than llama (0)",
        "1 node (n19): takes 2 more",
        "1 node (n17): its limit of pods is reached",
        "1 node (n16): 999 MiB of host memory are left, 1,000 are needed",
        "1 node (n15): 999 millicores of host CPU are left, 1,000 are needed",
        "1 node (n14): 3 of 4 GPUs are free, 4 are needed on one node; held by held",
        "1 node (n13): 0 of 4 GPUs have room beside what runs outside replicas, 4 are needed on one node",
        "1 node (n12): 3 of 8 GPUs are healthy, 4 are needed on one node",
        "1 node (n11): not seen lately",
        "1 node (n10): cordoned",
        "1 node (n09): not ready",
        "1 node (n08): 3 such GPUs in all, 4 are needed on one node",
        "1 node (n05): only partitions, which take no replica of several GPUs",
        "1 node (n04): taints are not tolerated (dedicated=x:NoSchedule)",
        "1 node (n03): lacks a label that is asked for (pool=a)",
        "1 node (n02): GPU type does not match (NVIDIA-L4)",
        "1 node (n01): no GPUs",
        "uncordon n10: +2",
        "move held from n14 to n08: +1",
        "stop what runs outside replicas on n13: +1",
        "bring n09 back to ready: +2",
        "let n11 be seen again: +2",
    ]


def test_each_change_gives_what_it_says() -> None:
    nodes = [node("a", schedulable=False), node("b", 2)]
    before = ask(nodes)
    assert [str(c) for c in before.changes] == ["uncordon a: +2", f"one more node like a (8 {H100}): +2"]
    after = ask([replace(nodes[0], schedulable=True), nodes[1]])
    assert after.count.free_room - before.count.free_room == 2


def test_another_measured_variant_is_a_change() -> None:
    nodes = [node("a", kind="NVIDIA-A100-SXM4-80GB")]
    found = ask(nodes, tokens="1500", measurements=[measured("tp4", "1000"), measured("tp8", "1500")])
    assert [str(c) for c in found.changes] == ["variant tp8: +1"]
    found = ask(nodes, tokens="3000", measurements=[measured("tp4", "1000"), measured("tp8", "1500")])
    assert [str(c) for c in found.changes] == [
        "variant tp8: +1 (serves 1,500 of the 3,000 tok/s that are missing)"
    ]


def test_a_type_is_told_of_a_node_in_the_nodes_own_spelling() -> None:
    nodes = [node("a", kind="L4"), node("b", kind="NVIDIA-L4")]
    told = {row["node"]: row["say"] for row in ask(nodes).node_table().rows(preemption=False)}
    assert told == {"a": "GPU type does not match (L4)", "b": "GPU type does not match (NVIDIA-L4)"}


def test_fragmentation_is_named_as_such() -> None:
    held = [
        ReplicaSpec(f"{n}-{i}", "other", "one", placement=((n, (i,)),))
        for n, many in (("a", 5), ("b", 6), ("c", 5))
        for i in range(many)
    ]
    found = ask([node("a"), node("b"), node("c")], held, tokens="1000")
    assert "8 GPUs are free, but at most 3 on one node (a)" in found.blocked
    assert [str(c) for c in found.changes] == [
        "move a-0 from a to b: +1",
        f"one more node like a (8 {H100}): +1",
    ]


def test_what_draining_replicas_will_free_is_said() -> None:
    found = ask([node("a", 4)], [replica("old", "a", (0, 1, 2, 3), state="draining")], tokens="1000")
    assert "when draining old ends: +1" in found.blocked


def test_shares_on_several_nodes_that_make_no_replica_are_explained() -> None:
    pair = VariantSpec("pair", gpus=8, nodes=2, topology_key="zone")
    nodes = [node("a", labels={"zone": "1"}), node("b", labels={"zone": "2"}), node("c")]
    found = ask(
        nodes,
        tokens="1000",
        model=replace(LLAMA, variants=(pair,)),
        measurements=[measured("pair", "1000")],
    )
    assert [(n["code"], n["fits"], n["numbers"]) for n in found.nodes] == [
        ("too_few_nodes", 1, {"nodes": 1, "need": 2}),
        ("too_few_nodes", 1, {"nodes": 1, "need": 2}),
        ("selector_mismatch", 0, {}),
    ]
    assert found.blocked[:3] == [
        "0 of 1 more replicas fit; 1 more needs 8 free GPUs of one type on each of 2 nodes of one zone",
        "2 shares of a replica fit in all, and 2 on different nodes make a replica: 0 fit",
        "2 nodes (a and b): takes a share, but only 1 of the 2 nodes of one zone that a replica spans do",
    ]


def test_the_codes_of_the_ladder_are_the_public_ones() -> None:
    assert len(LADDER) == len(set(LADDER)) == 19


def test_a_replica_that_is_added_again_replaces_the_one_of_its_name() -> None:
    fleet = Fleet.build([node("a")], [LLAMA], [replica("x", "a", (0, 1, 2, 3))])
    again = fleet.with_replicas(added=[replica("x", "a", (4, 5, 6, 7)), replica("x", "a", (0, 1, 2, 3))])
    assert again.free.tolist() == fleet.free.tolist()
    assert len(again.replicas) == 1


def test_of_the_draining_replicas_only_those_that_help_are_named() -> None:
    nodes = [node("a", 4), node("b", 4, kind="NVIDIA-L4")]
    draining = [
        replica("helps", "a", (0, 1, 2, 3), state="draining"),
        ReplicaSpec("other-type", "other", "one", "draining", placement=(("b", (0,)),)),
    ]
    assert "when draining helps ends: +1" in ask(nodes, draining, tokens="1000").blocked


def test_draining_replicas_give_nothing_beyond_max_replicas() -> None:
    draining = [replica("old", "a", (0, 1, 2, 3), state="draining")]
    found = ask([node("a")], draining, tokens="3000", model=replace(LLAMA, max_replicas=1))
    assert found.count.free_room == 1
    assert not [sentence for sentence in found.blocked if "draining" in sentence]


def test_another_variant_is_a_change_only_where_it_serves_more() -> None:
    nodes = [node("a"), node("b", kind="NVIDIA-A100-SXM4-80GB")]
    rates = [measured("tp4", "1000"), measured("tp8", "900")]
    found = ask(nodes, tokens="5000", measurements=rates)
    assert found.count.free_room == 2
    assert not [change for change in found.changes if "variant" in change.text]


def test_a_measurement_from_the_future_warns() -> None:
    found = ask([node("a")], measurements=[measured("tp4", "1000", measured_at=NOON + timedelta(hours=1))])
    assert found.as_dict(NOON)["warnings"] == [
        "the measurement of tp4 is dated in the future, so its age is not known"
    ]
    assert found.as_dict(NOON)["measurement"]["age_s"] == 0


def test_unknown_memory_is_not_said_to_be_small() -> None:
    share = VariantSpec("share", gpu_memory_mib=40000)
    unknown = NodeSpec("u", (GpuSpec(0, H100, None),))
    small = NodeSpec("s", (GpuSpec(0, H100, 24000),))
    model = replace(LLAMA, variants=(share,))
    found = ask([unknown, small], tokens="1", model=model, measurements=[measured("share", "1")])
    assert found.nodes[0]["say"] == "the GPUs have 24,000 MiB, 40,000 MiB are needed"
    assert (
        found.nodes[1]["say"]
        == "the memory of the GPUs is unknown, and only claims of whole GPUs can use such"
    )
    assert found.nodes[1]["numbers"] == {"memory_mib": None, "need_mib": 40000}
    assert (
        "2 nodes (s and u): the GPUs have 24,000 MiB or an unknown size, 40,000 MiB are needed"
        in found.blocked
    )
