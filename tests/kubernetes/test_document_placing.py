"""Which GPUs each replica has, and that they stay."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from sizing.domain.specs import VariantSpec
from sizing.inventory.document import Document, ModelEntry, ReplicaEntry, VariantEntry
from sizing.inventory.kubernetes.counted import Counted, Device, Need, NodeCount, Pool
from tests.kubernetes.facts import (
    GPU,
    NOON,
    a_listing,
    a_node,
    a_pod,
    brought,
    from_counted,
    gpus,
    places,
    variants,
)
from tests.kubernetes.test_mapping_replicas import lws


def test_pods_get_the_lowest_free_gpus_by_age_and_then_by_name():
    pods = [
        a_pod("a", gpus=2, started_at=NOON + timedelta(hours=1)),
        a_pod("b", gpus=1, started_at=NOON),
        a_pod("c", gpus=1, started_at=NOON),
    ]
    assert places(brought([a_node()], pods)) == {
        "llm/a": (("n1", (2, 3)),),
        "llm/b": (("n1", (0,)),),
        "llm/c": (("n1", (1,)),),
    }


def test_one_pod_more_or_less_moves_no_other():
    pods = [a_pod(name, gpus=2, started_at=NOON) for name in "bcd"]
    before = brought([a_node()], pods)
    older = a_pod("a", gpus=2, started_at=NOON - timedelta(hours=1))
    after = brought([a_node()], [older, pods[0], pods[2]], stored=before.document)
    assert places(after) == {
        "llm/a": (("n1", (2, 3)),),
        "llm/b": (("n1", (0, 1)),),
        "llm/d": (("n1", (4, 5)),),
    }


def test_the_order_of_the_objects_changes_nothing_and_neither_does_a_second_time():
    nodes = [a_node("n1"), a_node("n2", withdrawn=2), a_node("n3", gpus=4)]
    pods = [a_pod(f"p{i}", f"n{i % 3 + 1}", 1 + i % 2, priority=i) for i in range(9)]
    pods += [a_pod("w", "", 4), a_pod("o", "n1", words=())]
    first = brought(nodes, pods)
    shuffled = pods[:]
    random.Random(7).shuffle(shuffled)
    for again in (brought(nodes[::-1], shuffled), brought(nodes, pods, stored=first.document)):
        assert again.document == first.document
        assert [n.gpus for n in again.document.nodes.values()] == [
            n.gpus for n in first.document.nodes.values()
        ]
        assert [m.variants for m in again.document.models.values()] == [
            m.variants for m in first.document.models.values()
        ]
        assert (again.ignored, again.warnings) == (first.ignored, first.warnings)


def test_a_group_has_gpus_on_each_of_its_nodes():
    found = brought([a_node("n1"), a_node("n2")], [lws(1, "n2", gpus=4), lws(0, "n1", gpus=4)])
    assert places(found) == {"llm/r1-0": (("n1", (0, 1, 2, 3)), ("n2", (0, 1, 2, 3)))}


def test_pods_of_one_group_on_one_node_hold_their_gpus_together():
    found = brought([a_node()], [lws(0, gpus=1), lws(1, gpus=1)])
    assert places(found) == {"llm/r1-0": (("n1", (0, 1)),)}


# What the cluster tells of devices ----------------------------------------------------------------


def cards(*devices: Device, **needs: list[Need]) -> Counted:
    """A node with the devices, and a pod for each of the needs."""
    pods = [a_pod(name) for name in needs]
    counted = Counted(a_listing([a_node()], pods))
    counted.nodes["n1"] = NodeCount(a_node(), pools=[Pool(GPU, list(devices))])
    counted.needs = {f"llm/{name}": wants for name, wants in needs.items()}
    return counted


A, B = Device("V100", 32768, uuid="GPU-a"), Device("V100", 32768, uuid="GPU-b")


def test_a_pod_has_the_devices_that_the_cluster_names():
    found = from_counted(cards(A, B, first=[Need(GPU, 1)], second=[Need(GPU, 1, names=("GPU-a",))]))
    assert places(found) == {"llm/first": (("n1", (1,)),), "llm/second": (("n1", (0,)),)}


def test_parts_of_cards_share_a_card_while_their_memory_adds_up():
    part = [Need(GPU, 1, memory_mib=16000)]
    found = from_counted(cards(A, B, a=part, b=part, c=part))
    assert places(found) == {
        "llm/a": (("n1", (0,)),),
        "llm/b": (("n1", (0,)),),
        "llm/c": (("n1", (1,)),),
    }
    (variant,) = variants(found).values()
    assert (variant.name, variant.spec.gpu_memory_mib) == ("1x-v100-16000m", 16000)


def test_a_fraction_of_a_card_is_a_claim_too():
    half = [Need(GPU, 1, fraction=Decimal("0.5"))]
    found = from_counted(cards(A, a=half, b=half))
    assert places(found) == {"llm/a": (("n1", (0,)),), "llm/b": (("n1", (0,)),)}
    (variant,) = variants(found).values()
    assert (variant.name, variant.spec.gpu_memory_fraction) == ("1x-v100-0.5", Decimal("0.5"))


def test_two_parts_of_one_named_card_are_one_claim():
    needs = [Need(GPU, 1, 1000, names=("GPU-b",)), Need(GPU, 1, 500, names=("GPU-b",))]
    found = from_counted(cards(A, B, a=needs))
    assert places(found) == {"llm/a": (("n1", (1,)),)}
    assert "1x-v100-1500m" in variants(found)


def test_parts_of_different_size_are_claimed_as_the_largest():
    found = from_counted(cards(A, B, a=[Need(GPU, 1, 1000), Need(GPU, 1, 3000)]))
    assert list(variants(found)) == ["2x-v100-3000m"]


def test_a_part_of_a_card_of_unknown_memory_is_all_of_it():
    found = from_counted(
        cards(Device("V100"), Device("V100"), a=[Need(GPU, 1, 1000)], b=[Need(GPU, 1, 1000)])
    )
    assert places(found) == {"llm/a": (("n1", (0,)),), "llm/b": (("n1", (1,)),)}


def test_sound_devices_are_given_before_those_out_of_order():
    found = from_counted(cards(replace(A, healthy=False), B, a=[Need(GPU, 1)]))
    assert places(found) == {"llm/a": (("n1", (1,)),)}


def test_what_holds_more_than_can_be_shown_is_told():
    found = from_counted(cards(A, a=[Need(GPU, 2)], b=[Need(GPU, 1)]))
    assert places(found) == {"llm/a": (("n1", (0,)),)}
    assert found.ignored == [
        {
            "kind": "Pod",
            "reason": "holds devices of which its node has none left to show",
            "count": 1,
            "examples": ["llm/b"],
        }
    ]
    assert found.warnings == ['2 replicas held more devices than their nodes could show: "llm/a", "llm/b"']


# Nominated pods -----------------------------------------------------------------------------------


def test_the_scheduler_keeps_devices_for_a_nominated_pod():
    waits = a_pod("next", "", 4, nominated="n1")
    found = brought([a_node()], [a_pod(gpus=4), waits])
    replica = found.document.replicas["llm/next"]
    assert (replica.state, replica.placement) == ("starting", (("n1", (4, 5, 6, 7)),))
    assert found.warnings == [
        'pod "llm/next" waits, and the scheduler keeps its devices on n1: counted as starting'
    ]


@pytest.mark.parametrize(
    ("node", "held", "places"), [(a_node(), 5, (5, 6, 7)), (a_node(withdrawn=1), 4, (4, 5, 6))]
)
def test_a_nominated_pod_has_what_is_free_while_its_victims_hold_the_rest(node, held, places):
    waits = a_pod("next", "", 4, nominated="n1")
    found = brought([node], [a_pod(gpus=held), waits])
    replica = found.document.replicas["llm/next"]
    assert (replica.state, replica.placement) == ("starting", (("n1", places),))
    assert variants(found)[replica.variant].spec.gpus == 4
    assert found.warnings == [
        'pod "llm/next" waits, and the scheduler keeps 3 of its 4 devices on n1 until the others are free:'
        " counted as starting"
    ]


def test_a_nominated_pod_waits_where_nothing_is_free_or_it_is_being_deleted():
    for held, deleting in ((8, False), (4, True)):
        waits = a_pod("next", "", 4, nominated="n1", deleting=deleting)
        found = brought([a_node()], [a_pod(gpus=held), waits])
        replica = found.document.replicas["llm/next"]
        assert (replica.state, replica.placement, found.warnings) == ("pending", (), [])


def test_a_group_of_which_a_pod_is_nominated_has_what_is_kept_for_that():
    pods = [lws(0, gpus=4, requests={"cpu": 10}), lws(1, "", gpus=4, nominated="n2", requests={"cpu": 10})]
    found = brought([a_node("n1"), a_node("n2")], pods)
    replica = found.document.replicas["llm/r1-0"]
    assert (replica.state, replica.placement) == ("failed", (("n1", (0, 1, 2, 3)), ("n2", (0, 1, 2, 3))))
    # The variant's CPU comes from what is free where the pod is not there yet.
    assert [found.document.nodes[name].cpu_millis for name in ("n1", "n2")] == [100_000, 100_000]


def test_of_two_nominated_pods_the_more_important_gets_the_devices():
    pods = [a_pod(n, "", 8, nominated="n1", priority=p) for n, p in (("a", 1), ("b", 2))]
    replicas = brought([a_node()], pods).document.replicas
    assert {name: r.state for name, r in replicas.items()} == {
        "llm/a": "pending",
        "llm/b": "starting",
    }


def test_a_nominated_pod_takes_its_host_from_what_is_free():
    waits = a_pod("next", "", 4, nominated="n1", requests={"cpu": 9000})
    assert brought([a_node()], [waits]).document.nodes["n1"].cpu_millis == 100_000


# What the cluster gives no more of ----------------------------------------------------------------


def outside(found, node="n1"):
    return [gpu.used_outside_mib for gpu in gpus(found, node).values()]


CLOSED = replace(A, closed=True)


def test_what_is_left_of_a_device_that_takes_nothing_more_is_used_outside():
    assert outside(from_counted(cards(CLOSED, B))) == [32768, 0]
    part = [Need(GPU, 1, memory_mib=4000, names=("GPU-a",))]
    assert outside(from_counted(cards(CLOSED, B, a=part, b=part))) == [24768, 0]
    whole = from_counted(cards(CLOSED, B, a=[Need(GPU, 1, names=("GPU-a",))]))
    assert outside(whole) == [0, 0]
    assert outside(from_counted(cards(replace(CLOSED, memory_mib=None)))) == [2048]


def test_what_is_reserved_is_given_to_no_other_pod_and_is_used_outside():
    named = [replace(card, name=f"n1/{card.uuid}") for card in (A, B)]
    counted = cards(*named, next=[Need(GPU, 2)])
    counted.listing.pods["uid-llm-next"] = a_pod("next", "", nominated="n1")
    counted.reserved = {"n1": {(GPU, "n1/GPU-a"), (GPU, "gone"), ("gpu.example.com", "n1/GPU-b")}}
    found = from_counted(counted)
    assert places(found) == {"llm/next": (("n1", (1,)),)}
    assert outside(found) == [32768, 0]
    # What is reserved for the nominated pod itself it gets.
    counted.needs = {"llm/next": [Need(GPU, 1, names=("n1/GPU-a",))]}
    found = from_counted(counted)
    assert places(found) == {"llm/next": (("n1", (0,)),)}
    assert outside(found) == [0, 0]


def test_what_the_cluster_wrote_as_used_outside_goes_with_its_reason():
    part = [Need(GPU, 1, memory_mib=4000, names=("GPU-a",))]
    closed = (
        cards(CLOSED, B),
        cards(CLOSED, B, a=part, b=part),
        cards(replace(CLOSED, memory_mib=None), B),
    )
    for shut in closed:
        before = from_counted(shut).document
        assert outside(from_counted(shut, stored=before)) != [0, 0]
        shut.nodes["n1"].pools[0].devices[0] = replace(shut.nodes["n1"].pools[0].devices[0], closed=False)
        assert outside(from_counted(shut, stored=before)) == [0, 0]


def test_what_people_wrote_as_used_outside_stays():
    part = [Need(GPU, 1, memory_mib=4000, names=("GPU-a",))]
    before = from_counted(cards(A, B, a=part)).document
    (before.nodes["n1"].gpus or {})[0].used_outside_mib = 32768 - 4001
    assert outside(from_counted(cards(A, B, a=part), stored=before)) == [32768 - 4001, 0]
    # A node that nobody but people has written may be full.
    before.nodes["n1"].source = ""
    (before.nodes["n1"].gpus or {})[1].used_outside_mib = 32768
    assert outside(from_counted(cards(A, B, a=part), stored=before)) == [32768 - 4001, 32768]


# Incomplete lists ---------------------------------------------------------------------------------


def stored_on(node: str, indexes: tuple[int, ...], name: str = "llm/old") -> Document:
    spec = VariantSpec("v", gpus=len(indexes))
    model = ModelEntry("org/old", source="kubernetes", variants={"v": VariantEntry(spec, 0, "kubernetes")})
    replica = ReplicaEntry(
        name, "org/old", "v", placement=((node, indexes),), source="kubernetes", state="ready"
    )
    return Document(models={"org/old": model}, replicas={name: replica})


def test_what_an_incomplete_list_leaves_out_keeps_its_gpus():
    found = brought([a_node()], [a_pod(gpus=2)], stored=stored_on("n1", (0, 1)), staying=["llm/old"])
    assert places(found) == {"llm/llama-0": (("n1", (2, 3)),)}
    assert found.displaced == []


def test_what_an_incomplete_list_leaves_out_gives_way_to_what_it_lists():
    found = brought([a_node()], [a_pod(gpus=8)], stored=stored_on("n1", (0, 1)), staying=["llm/old"])
    assert found.displaced == ["llm/old"]
    assert found.warnings == ['1 replica not in the list, whose GPUs its pods hold now: "llm/old"']


def test_what_is_listed_is_not_left_out():
    stored = stored_on("n1", (3,), "llm/llama-0")
    found = brought([a_node()], [a_pod()], stored=stored, staying=["llm/llama-0"])
    assert (places(found), found.displaced) == ({"llm/llama-0": (("n1", (3,)),)}, [])


def test_a_nomination_that_the_node_can_never_keep_holds_nothing():
    waits = a_pod("next", "", 9, nominated="n1")
    found = brought([a_node()], [waits])
    assert (found.document.replicas["llm/next"].state, found.warnings) == ("pending", [])
