"""Every address × who asks × method: refused calls change nothing."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from sizing.models import InventoryChange, Refresh
from tests.api.conftest import LLAMA, Caller

TABLES = {
    "models": "servedmodel",
    "profiles": "benchprofile",
    "variants": "variant",
    "nodes": "node",
    "replicas": "replica",
    "measurements": "measurement",
    "targets": "target",
    "refreshes": "refresh",
    "imports": "measurement",
}
INVENTORY = ("node", "gpu", "benchprofile", "servedmodel", "variant", "measurement", "replica", "target")
ALL = [
    f"{verb}_{table}"
    for verb in ("view", "add", "change", "delete")
    for table in {*TABLES.values(), *INVENTORY}
]
METHODS = ("get", "head", "options", "post", "put", "patch", "delete")
VERBS = {"get": "view", "head": "view", "post": "add", "put": "change", "patch": "change", "delete": "delete"}
ADDRESSES = [
    *TABLES,
    *(f"{collection}/" + "{key}" for collection in TABLES),
    "models/{key}/target",
    "models/{key}/refresh",
    "refreshes/{key}/cancel",
    "refreshes/{key}/retry",
    "measurements/import",
    "measurements/{key}/report",
    "imports/{key}/store",
    "inventory",
    "inventory/kubernetes",
    "schema",
    "docs",
    "nowhere",
]


def address(pattern: str, fleet: dict[str, Any]) -> str:
    """The address with a key in it: names where an object is found by its name."""
    collection = pattern.split("/")[0]
    row = fleet.get(collection)
    named = collection in ("models", "profiles", "nodes", "replicas")
    return "/api/v1/" + pattern.replace("{key}", str(row.name if named else row.pk) if row else "")


def written() -> Any:
    """What tells whether anything was written."""
    return InventoryChange.objects.count(), list(Refresh.objects.values())


def ask(client: APIClient, method: str, path: str) -> Any:
    return getattr(client, method)(path, data=None if method in ("get", "head") else {})


@pytest.mark.parametrize("pattern", ADDRESSES)
def test_who_is_not_signed_in_is_told_so_first(fleet: dict[str, Any], pattern: str) -> None:
    before = written()
    for method in METHODS:
        answer = ask(APIClient(), method, address(pattern, fleet))
        assert answer.status_code == 401, method
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        if method != "head":
            assert answer.json()["code"] == "unauthenticated"
    assert written() == before


@pytest.mark.parametrize("pattern", [a for a in ADDRESSES if a not in ("schema", "docs", "nowhere")])
def test_without_permission_nothing_is_shown_or_changed(
    fleet: dict[str, Any], caller: Caller, pattern: str
) -> None:
    client = caller()
    before = written()
    for method in METHODS:
        answer = ask(client, method, address(pattern, fleet))
        assert answer.status_code == (200 if method == "options" else 403), method
        if answer.status_code == 403 and method != "head":
            assert answer.json()["code"] == "forbidden"
            assert "the permission sizing." in answer.json()["error"]
    assert written() == before


@pytest.mark.parametrize("collection", TABLES)
def test_who_may_view_may_do_nothing_else(fleet: dict[str, Any], caller: Caller, collection: str) -> None:
    client = caller(f"view_{TABLES[collection]}")
    before = written()
    for pattern in (collection, collection + "/{key}"):
        for method in METHODS:
            answer = ask(client, method, address(pattern, fleet))
            allowed = method in ("get", "head", "options")
            assert answer.status_code == (200 if allowed else 403), (pattern, method)
            if not allowed:
                assert f"sizing.{VERBS[method]}_{TABLES[collection]} is missing" in answer.json()["error"]
    assert written() == before


@pytest.mark.parametrize("pattern", ADDRESSES)
def test_with_every_permission_nothing_is_forbidden(
    fleet: dict[str, Any], caller: Caller, pattern: str
) -> None:
    client = caller(*ALL)
    for method in METHODS:
        assert ask(client, method, address(pattern, fleet)).status_code not in (401, 403), method


def test_a_target_needs_leave_to_view_models(fleet: dict[str, Any], caller: Caller) -> None:
    path = f"/api/v1/models/{LLAMA}/target?tokens_per_sec=1"
    assert caller("view_node").get(path).json() == {
        "error": "you may not view models: the permission sizing.view_servedmodel is missing",
        "code": "forbidden",
    }
    assert caller("view_servedmodel").get(path).status_code == 200


def test_a_cancel_needs_leave_to_change(fleet: dict[str, Any], caller: Caller) -> None:
    refresh = fleet["refreshes"].pk
    assert caller("add_refresh").post(f"/api/v1/refreshes/{refresh}/cancel").status_code == 403
    assert Refresh.objects.get().state == "queued"
    assert caller("change_refresh").post(f"/api/v1/refreshes/{refresh}/cancel").json()["state"] == "cancelled"


def test_to_measure_needs_leave_to_add_a_refresh(fleet: dict[str, Any], caller: Caller) -> None:
    fleet["replicas"].delete()
    Refresh.objects.update(state="done")
    others = [permission for permission in ALL if permission != "add_refresh"]
    for path in (f"models/{LLAMA}/refresh", f"refreshes/{fleet['refreshes'].pk}/retry"):
        refused = caller(*others).post(f"/api/v1/{path}")
        assert (refused.status_code, refused.json()) == (
            403,
            {
                "error": "you may not add refreshes: the permission sizing.add_refresh is missing",
                "code": "forbidden",
            },
        )
        allowed = caller("add_refresh").post(f"/api/v1/{path}")
        assert (allowed.status_code, allowed.json()["code"]) == (400, "not_benchable")
    assert Refresh.objects.count() == 1


def test_an_inventory_needs_leave_for_every_table(fleet: dict[str, Any], caller: Caller) -> None:
    path, document = "/api/v1/inventory", b'{"version": 1}'
    view = [f"view_{table}" for table in INVENTORY]
    write = [f"{verb}_{table}" for table in INVENTORY for verb in ("add", "change")]
    assert caller(*view).get(path).status_code == 200
    assert caller(*view[1:]).get(path).status_code == 403
    assert caller(*view).put(path, document, content_type="application/json").status_code == 403
    writer = caller(*write)
    assert writer.put(path, document, content_type="application/json").status_code == 200
    assert writer.put(f"{path}?replace=1", document, content_type="application/json").status_code == 403
    assert fleet["nodes"].gpus.count() == 4


@pytest.mark.parametrize("path", ["schema", "docs", "", "nowhere"])
def test_the_documents_need_sign_in_only(caller: Caller, path: str) -> None:
    expected = 404 if path == "nowhere" else 200
    assert caller().get(f"/api/v1/{path}").status_code == expected
