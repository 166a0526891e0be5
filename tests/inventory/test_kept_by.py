"""Who keeps an object, a replica's own priority, and placements as a cluster runs them."""

from __future__ import annotations

from typing import Any

import pytest

from sizing.models import Node, Replica, ServedModel, Variant
from sizing.services.inventory import check_nodes, dump, dump_text
from sizing.services.inventory import load as load_bytes
from tests.inventory.documents import errors, load, replica, revision, sound

pytestmark = pytest.mark.django_db

BY_CLUSTER = (
    ("nodes.0.source", "kubernetes"),
    ("models.0.source", "kubernetes"),
    ("models.0.variants.1.source", "kubernetes"),
    ("replicas.1.source", "kubernetes"),
    ("replicas.1.priority", -7),
)


def kept() -> dict[str, list[str]]:
    tables: tuple[Any, ...] = (Node, ServedModel, Variant, Replica)
    return {
        table.__name__: sorted(
            table.objects.filter(source="kubernetes").order_by("pk").values_list("name", flat=True)
        )
        for table in tables
    }


def test_what_the_cluster_keeps_is_loaded_and_written() -> None:
    load(sound(*BY_CLUSTER))
    assert kept() == {
        "Node": ["gpu-a1"],
        "ServedModel": ["llama"],
        "Variant": ["half"],
        "Replica": ["llama-1"],
    }
    assert dict(Replica.objects.values_list("name", "priority")) == {"llama-0": None, "llama-1": -7}
    document = dump()
    assert document["nodes"][0]["source"] == "kubernetes"
    assert document["models"][0]["source"] == "kubernetes"
    assert document["models"][0]["variants"][1]["source"] == "kubernetes"
    assert (document["replicas"][1]["source"], document["replicas"][1]["priority"]) == ("kubernetes", -7)


def test_what_is_kept_by_hand_is_written_without_the_keys() -> None:
    load(sound(("replicas.0.source", ""), ("replicas.0.priority", None), ("nodes.0.source", "")))
    document = dump()
    written = [*document["nodes"], *document["models"], *document["replicas"]]
    written += document["models"][0]["variants"]
    assert [key for one in written for key in ("source",) if key in one] == []
    assert [one["name"] for one in document["replicas"] if "priority" in one] == []


def test_a_dump_loads_to_the_same_again() -> None:
    load(sound(*BY_CLUSTER))
    text, before = dump_text(), revision()
    assert load_bytes(text.encode(), replace=True).changed == 0
    assert revision() == before
    load(sound(), replace=True)
    assert dump_text() != text
    load_bytes(text.encode(), replace=True)
    assert dump_text() == text


def test_what_is_loaded_without_a_source_is_kept_by_hand_from_then_on() -> None:
    load(sound(*BY_CLUSTER))
    done = load(sound())
    assert kept() == {"Node": [], "ServedModel": [], "Variant": [], "Replica": []}
    assert Replica.objects.get(name="llama-1").priority is None
    updated = done.changes.updated
    assert {kind: updated[kind] for kind in ("nodes", "models", "variants", "replicas")} == {
        "nodes": 1,
        "models": 1,
        "variants": 1,
        "replicas": 1,
    }


def test_variants_that_a_file_leaves_out_keep_who_keeps_them() -> None:
    load(sound(*BY_CLUSTER))
    load({"version": 1, "models": [{"name": "llama", "default_profile": "chat"}]})
    assert kept()["ServedModel"] == []
    assert kept()["Variant"] == ["half"]


@pytest.mark.parametrize(
    ("path", "at"),
    [
        ("nodes.0", "nodes[0].source"),
        ("models.0", "models[0].source"),
        ("models.0.variants.1", "models[0].variants[1].source"),
        ("replicas.1", "replicas[1].source"),
    ],
)
@pytest.mark.parametrize("source", ["helm", None, 5])
def test_an_unknown_source_is_refused_with_its_path(path: str, at: str, source: object) -> None:
    told = {"helm": 'the text "helm"', None: "null", 5: "5"}[source]  # type: ignore[index]
    assert errors(sound((f"{path}.source", source))) == [f'{at}: must be one of "", kubernetes, not {told}']


@pytest.mark.parametrize("priority", [2**31, -(2**31) - 1, 1.5, "high"])
def test_a_priority_out_of_range_is_refused_with_its_path(priority: object) -> None:
    [problem] = errors(sound(("replicas.1.priority", priority)))
    assert problem.startswith("replicas[1].priority: must be ")


def test_the_largest_and_smallest_priorities_are_kept() -> None:
    load(sound(("replicas.0.priority", 2**31 - 1), ("replicas.1.priority", -(2**31))))
    assert dict(Replica.objects.values_list("name", "priority")) == {
        "llama-0": 2**31 - 1,
        "llama-1": -(2**31),
    }


# Placements that are not of the variant's shape ----------------------------------------------------

HALF_GROUP = ('replica "group" is on 1 node, but variant "pair" spans 2',)


def test_another_shape_is_an_error_where_people_say_it() -> None:
    found = errors(sound(("replicas.+", replica("group", "pair", ("gpu-a2", [0])))))
    assert found == [f"replicas[2].placement: {HALF_GROUP[0]}"]


@pytest.mark.parametrize("more", [{"source": "kubernetes"}, {"state": "failed"}])
def test_another_shape_is_a_warning_of_what_a_cluster_runs_and_of_what_failed(more: dict[str, str]) -> None:
    done = load(sound(("replicas.+", replica("group", "pair", ("gpu-a2", [0]), **more))))
    assert done.warning_lines() == [f"replicas[2].placement: {HALF_GROUP[0]}"]
    assert Replica.objects.get(name="group").placements.count() == 1
    found = check_nodes(set(Node.objects.values_list("pk", flat=True)))
    assert found.errors == []


def test_the_same_goes_for_the_gpus_of_a_node() -> None:
    edit = ("replicas.+", replica("odd", "tp2", ("gpu-a2", [0]), source="kubernetes"))
    assert load(sound(edit)).warning_lines() == [
        'replicas[2].placement[0].gpus: replica "odd" holds 1 GPU of node "gpu-a2",'
        ' but variant "tp2" takes 2 on each node'
    ]


def test_a_replica_of_the_cluster_must_name_what_it_holds_too() -> None:
    found = errors(sound(("replicas.+", replica("x", "tp2", source="kubernetes"))))
    assert found == ['replicas[2].placement: replica "x" is ready, so it must name the GPUs that it holds']


def test_what_a_half_group_claims_is_checked_like_any_other() -> None:
    edit = ("replicas.+", replica("group", "pair", ("gpu-a1", [0]), source="kubernetes"))
    assert errors(sound(edit)) == [
        'replicas[2].placement[0].gpus[0]: GPU 0 of node "gpu-a1": replica "llama-0" claims the whole GPU,'
        ' but "group" holds it too'
    ]
