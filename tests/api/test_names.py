"""Names with slashes and colons, raw and percent-encoded, with and without a trailing slash."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from rest_framework.test import APIClient

from sizing.models import BenchProfile, Node, ServedModel
from tests.api.conftest import LLAMA

NAMES = [LLAMA, "qwen2.5:7b", "target", "refresh", "a/target/b", "5", "with space/50% + ünï", "a%2Fb"]


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("safe", ["", "/:"], ids=["encoded", "raw"])
@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_found_by_its_name(admin: APIClient, name: str, safe: str, slash: str) -> None:
    assert admin.post(f"/api/v1/models{slash}", {"name": name}).status_code == 201
    path = f"/api/v1/models/{quote(name, safe=safe)}{slash}"
    assert admin.get(path).json()["name"] == name
    assert admin.patch(path, {"owner": "x"}).json()["owner"] == "x"
    assert admin.put(path, {"name": name}).json()["owner"] == ""
    assert admin.options(path).status_code == 200
    target = admin.get(f"/api/v1/models/{quote(name, safe=safe)}/target{slash}", {"tokens_per_sec": "1"})
    assert (target.status_code, target.json()["code"]) == (400, "not_measured")
    refresh = admin.post(f"/api/v1/models/{quote(name, safe=safe)}/refresh{slash}", {"profile": "no"})
    assert (refresh.status_code, refresh.json()["code"]) == (400, "unknown_profile")
    assert admin.delete(path).status_code == 204
    assert ServedModel.objects.count() == 0


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("collection", ["profiles", "nodes", "replicas"])
def test_the_exact_name_comes_before_the_id(
    admin: APIClient, fleet: dict[str, Any], collection: str, slash: str
) -> None:
    row = fleet[collection]
    assert admin.get(f"/api/v1/{collection}/{row.pk}{slash}").json()["name"] == row.name
    assert admin.get(f"/api/v1/{collection}/{row.name}{slash}").json()["id"] == row.pk


def test_a_name_that_looks_like_an_id_is_a_name(admin: APIClient) -> None:
    first = Node.objects.create(name="first")
    second = Node.objects.create(name=str(first.pk))
    assert admin.get(f"/api/v1/nodes/{first.pk}").json()["id"] == second.pk
    assert admin.get("/api/v1/nodes/first").json()["id"] == first.pk


def test_profiles_may_have_slashes(admin: APIClient) -> None:
    BenchProfile.objects.create(name="a/b", input_tokens=1, output_tokens=1, ttft_ms=1)
    assert admin.get("/api/v1/profiles/a/b/").json()["name"] == "a/b"


@pytest.mark.parametrize(
    "path",
    [
        "models/no",
        "models/no/target",
        "nodes/99",
        "nodes/99999999999999999999999",
        "nodes/%00",
        "nodes/gpu-a1%0A",
        "variants/x",
        "variants/0",
        "variants/१",
        "measurements/1e3",
        "models/no/refresh",
        "models/refresh/refresh",
        "refreshes/7/cancel",
        "refreshes/7/retry",
        "refreshes/x/retry",
    ],
)
def test_what_there_is_not_is_a_404(admin: APIClient, fleet: dict[str, Any], path: str) -> None:
    method = admin.post if path.endswith(("cancel", "retry", "refresh")) else admin.get
    answer = method(f"/api/v1/{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_an_unknown_model_is_named(admin: APIClient) -> None:
    answer = admin.get("/api/v1/models/meta/no/target")
    assert answer.json() == {"error": 'no model "meta/no"', "code": "not_found"}
    assert admin.post("/api/v1/models/meta/no/refresh").json() == answer.json()


@pytest.mark.parametrize(
    "name", ["a//b", "a/../b", "a/target", "a/refresh", "", " a", "a\n", "x" * 256, 7, None]
)
def test_names_that_cannot_be_addressed_are_refused(admin: APIClient, name: Any) -> None:
    answer = admin.post("/api/v1/models", {"name": name})
    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == ["name"]
