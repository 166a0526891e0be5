"""ETags of the API: a write for an object that is another one by now is a conflict, and changes nothing."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from sizing.models import Node, Replica, ServedModel
from tests.api.conftest import LLAMA

NODE, MODEL = "/api/v1/nodes/gpu-a1", f"/api/v1/models/{LLAMA}"


def test_a_write_that_names_the_object_as_it_is_goes_through(
    admin: APIClient,
    fleet: dict[str, Any],
) -> None:
    read = admin.get(NODE)
    first = admin.patch(NODE, {"schedulable": False}, headers={"If-Match": read["ETag"]})
    assert (first.status_code, first["ETag"] == read["ETag"]) == (200, False)
    assert first["ETag"] == admin.get(NODE)["ETag"]
    second = admin.patch(NODE, {"cost_per_hour": 2}, headers={"If-Match": f'"x", {first["ETag"]}'})
    assert second.status_code == 200
    assert admin.patch(NODE, {"cost_per_hour": 3}, headers={"If-Match": "*"}).status_code == 200


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_a_write_for_what_was_changed_meanwhile_is_refused_with_who_did_it(
    admin: APIClient,
    fleet: dict[str, Any],
    method: str,
) -> None:
    read = admin.get(NODE)
    admin.patch(NODE, {"schedulable": False})
    body = {"name": "gpu-a1", "schedulable": True, "cost_per_hour": 5, "gpus": read.json()["gpus"]}
    answer = getattr(admin, method)(NODE, body, headers={"If-Match": read["ETag"]})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    begin = 'node "gpu-a1" is not the one that If-Match names: it was last changed by ada at 20'
    assert answer.json()["error"].startswith(begin)
    assert answer.json()["error"].endswith(" UTC by API; read it again and retry")
    assert list(Node.objects.values_list("schedulable", "cost_per_hour")) == [(False, None)]


def test_the_etag_is_of_all_that_can_be_written_parts_included(
    admin: APIClient,
    fleet: dict[str, Any],
) -> None:
    before = {url: admin.get(url)["ETag"] for url in (NODE, MODEL, "/api/v1/replicas/llama-70b-0")}
    assert before == {url: admin.get(url)["ETag"] for url in before}
    fleet["nodes"].gpus.filter(index=3).update(healthy=False)
    ServedModel.objects.get().variants.filter(name="h100-x1").update(cpu_millis=5)
    Replica.objects.get().placements.filter(gpu__index=0).delete()
    assert {url: admin.get(url)["ETag"] == etag for url, etag in before.items()} == dict.fromkeys(
        before, False
    )


def test_what_is_made_anew_by_the_same_name_is_another_object(
    admin: APIClient,
    db: None,
) -> None:
    first = admin.post("/api/v1/nodes", {"name": "n"})
    assert first["ETag"] == admin.get("/api/v1/nodes/n")["ETag"]
    Node.objects.all().delete()
    admin.post("/api/v1/nodes", {"name": "n"})
    answer = admin.delete("/api/v1/nodes/n", headers={"If-Match": first["ETag"]})
    assert (answer.status_code, Node.objects.count()) == (409, 1)


def test_a_conflict_is_told_also_where_what_was_sent_is_wrong(
    admin: APIClient, fleet: dict[str, Any]
) -> None:
    etag = admin.get(NODE)["ETag"]
    for method in (admin.put, admin.patch):
        assert method(NODE, {"pods": -5}, headers={"If-Match": '"x"'}).status_code == 409
        assert method(NODE, {"pods": -5}, headers={"If-Match": etag}).status_code == 400


def test_saving_a_form_as_it_was_is_no_last_change(admin: APIClient, fleet: dict[str, Any]) -> None:
    admin.patch(NODE, {"schedulable": False})
    node, carl = fleet["nodes"], User.objects.create_user("carl")
    LogEntry.objects.log_actions(carl.pk, [node], CHANGE, [], single_object=True)
    answer = admin.patch(NODE, {}, headers={"If-Match": '"x"'})
    assert "it was last changed by ada at 20" in answer.json()["error"]


def test_what_is_gone_is_a_404_whatever_was_meant(admin: APIClient) -> None:
    for method in (admin.delete, admin.put, admin.patch):
        assert method("/api/v1/nodes/n", headers={"If-Match": '"x"'}).status_code == 404


def test_every_collection_that_is_written_has_etags(
    admin: APIClient,
    fleet: dict[str, Any],
) -> None:
    for name in ("models", "profiles", "variants", "nodes", "replicas", "measurements", "targets"):
        url = f"/api/v1/{name}/{LLAMA if name == 'models' else fleet[name].pk}"
        etag = admin.get(url)["ETag"]
        assert re.fullmatch('"[0-9a-f]{32}"', etag)
        assert admin.patch(url, {}, headers={"If-Match": '"other"'}).status_code == 409, name
        assert admin.patch(url, {}, headers={"If-Match": etag}).status_code == 200, name
    assert "ETag" not in admin.get(f"/api/v1/refreshes/{fleet['refreshes'].pk}")
