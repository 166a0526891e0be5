"""Who keeps an object: told and filtered by, never taken; and the priority of a replica."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from sizing.models import Node, Replica, ServedModel, Variant
from tests.api.conftest import LLAMA

pytestmark = pytest.mark.usefixtures("fleet")

CLUSTER = "kubernetes"


@pytest.fixture(autouse=True)
def kept_by_the_cluster(fleet: dict[str, Any]) -> None:
    tables: tuple[Any, ...] = (Node, Replica, ServedModel, Variant)
    for table in tables:
        table.objects.update(source=CLUSTER)


def model_sources() -> tuple[str, dict[str, str]]:
    model = ServedModel.objects.get(name=LLAMA)
    return model.source, dict(model.variants.values_list("name", "source"))


@pytest.mark.parametrize("collection", ["nodes", "models", "variants", "replicas"])
def test_lists_tell_it_and_are_filtered_by_it(admin: APIClient, collection: str) -> None:
    found = admin.get(f"/api/v1/{collection}").json()["results"]
    assert {row["source"] for row in found} == {CLUSTER}
    assert admin.get(f"/api/v1/{collection}?source=kubernetes").json()["count"] == len(found)
    assert admin.get(f"/api/v1/{collection}?source=hand").json()["count"] == 0
    assert admin.get(f"/api/v1/{collection}?source=helm").status_code == 400


def test_a_model_that_a_script_changes_is_kept_by_hand_and_its_variants_are_not(admin: APIClient) -> None:
    _, before = model_sources()
    changed = admin.patch(f"/api/v1/models/{LLAMA}", {"owner": "team search"})
    assert (changed.status_code, changed.json()["source"]) == (200, "")
    assert model_sources() == ("", before)


def test_another_default_profile_is_a_change_too(admin: APIClient) -> None:
    admin.patch(f"/api/v1/models/{LLAMA}", {"default_profile": None})
    assert model_sources()[0] == ""


def test_what_comes_back_as_it_is_changes_nothing(admin: APIClient) -> None:
    form = admin.get(f"/api/v1/models/{LLAMA}").json()
    assert admin.put(f"/api/v1/models/{LLAMA}", form).json() == form
    variant = admin.get("/api/v1/variants").json()["results"][0]
    assert admin.put(f"/api/v1/variants/{variant['id']}", variant).json() == variant
    source, variants = model_sources()
    assert {source, *variants.values()} == {CLUSTER}


def test_of_a_models_variants_only_the_changed_are_kept_by_hand(admin: APIClient) -> None:
    form = admin.get(f"/api/v1/models/{LLAMA}").json()
    names = [variant["name"] for variant in form["variants"]]
    form["variants"][0]["cpu_millis"] = 1234
    form["variants"].append({"name": "new"})
    put = admin.put(f"/api/v1/models/{LLAMA}", form).json()
    expected = dict.fromkeys(names, CLUSTER) | {names[0]: "", "new": ""}
    assert {variant["name"]: variant["source"] for variant in put["variants"]} == expected
    assert model_sources() == (CLUSTER, expected)


def test_a_variant_that_a_script_changes_is_kept_by_hand(admin: APIClient) -> None:
    variant = admin.get("/api/v1/variants").json()["results"][0]
    changed = admin.patch(f"/api/v1/variants/{variant['id']}", {"cpu_millis": 4321})
    assert (changed.status_code, changed.json()["source"]) == (200, "")
    assert ServedModel.objects.get(name=variant["model"]).source == CLUSTER


def test_nodes_and_replicas_stay_the_clusters(admin: APIClient) -> None:
    node = Node.objects.values_list("name", flat=True)[0]
    assert admin.patch(f"/api/v1/nodes/{node}", {"cost_per_hour": 3}).json()["source"] == CLUSTER
    replica = Replica.objects.values_list("name", flat=True)[0]
    assert admin.patch(f"/api/v1/replicas/{replica}", {"benchable": True}).json()["source"] == CLUSTER


def test_it_is_never_taken_from_a_request(admin: APIClient) -> None:
    made = admin.post("/api/v1/nodes", {"name": "n1", "source": CLUSTER})
    assert (made.status_code, made.json()["source"]) == (201, "")


@pytest.mark.parametrize("priority", [-(2**31), 2**31 - 1, None])
def test_a_replica_may_have_a_priority_of_its_own(admin: APIClient, priority: int | None) -> None:
    replica = Replica.objects.all()[0]
    Replica.objects.update(priority=7)
    changed = admin.patch(f"/api/v1/replicas/{replica.name}", {"priority": priority})
    assert (changed.status_code, changed.json()["priority"]) == (200, priority)
    replica.refresh_from_db()
    assert replica.priority == priority


@pytest.mark.parametrize("priority", [-(2**31) - 1, 2**31, 1.5, "1", True])
def test_a_priority_out_of_range_is_a_400_that_names_it(admin: APIClient, priority: object) -> None:
    replica = Replica.objects.all()[0]
    refused = admin.patch(f"/api/v1/replicas/{replica.name}", {"priority": priority})
    assert refused.status_code == 400
    assert list(refused.json()["fields"]) == ["priority"]


def test_its_own_priority_decides_whether_it_gives_way(admin: APIClient) -> None:
    batch = ServedModel.objects.create(name="batch")
    held = Variant.objects.create(model=batch, name="tp2", gpus=2)
    Replica.objects.update(variant=held, priority=200)
    question = f"/api/v1/models/{LLAMA}/target?tokens_per_sec=2361"  # two replicas fill what there is
    assert admin.get(question).json()["preemption"]["victims"] == []
    [replica] = Replica.objects.all()
    assert admin.patch(f"/api/v1/replicas/{replica.name}", {"priority": 3}).status_code == 200
    [victim] = admin.get(question).json()["preemption"]["victims"]
    assert (victim["replica"], victim["priority"]) == (replica.name, 3)
