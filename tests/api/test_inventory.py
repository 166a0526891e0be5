"""The whole inventory in one document."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from sizing.models import InventoryChange, Node
from tests.api.conftest import LLAMA, send

PATH = "/api/v1/inventory"


@pytest.mark.parametrize("slash", ["", "/"])
def test_what_is_read_can_be_loaded_again_and_changes_nothing(
    admin: APIClient, fleet: dict[str, Any], slash: str
) -> None:
    read = admin.get(PATH + slash)
    assert read.headers["Content-Type"] == "application/json"
    document = read.json()
    assert document["version"] == 1
    assert document["models"][0]["name"] == LLAMA
    before = InventoryChange.objects.count()
    report = send(admin, "PUT", f"{PATH}{slash}?replace=1", read.content, "application/json")
    assert report.status_code == 200
    done = report.json()
    assert {number for kind in ("created", "updated", "removed") for number in done[kind].values()} == {0}
    assert InventoryChange.objects.count() == before


def test_yaml_is_known_by_its_content(admin: APIClient) -> None:
    document = (
        b"version: 1\nnodes:\n  - name: n1\n    gpus:\n      - {type: L4, memory_mib: 24000, count: 2}\n"
    )
    report = send(admin, "PUT", PATH, document, "application/octet-stream")
    assert report.status_code == 200
    assert (report.json()["created"]["nodes"], report.json()["created"]["gpus"]) == (1, 2)
    assert Node.objects.get().gpus.count() == 2


def test_every_error_is_told_by_its_path_and_nothing_changes(admin: APIClient) -> None:
    document = {
        "version": 1,
        "nodes": [{"name": "n1"}, {"name": "n1"}],
        "replicas": [
            {"name": "r", "model": "m", "variant": "v", "placement": [{"node": "gpu-z", "gpus": [0]}]}
        ],
    }
    answer = admin.put(PATH, json.dumps(document), content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert set(answer.json()["fields"]) == {
        "nodes[1].name",
        "replicas[0].model",
        "replicas[0].placement[0].node",
    }
    assert answer.json()["fields"]["replicas[0].placement[0].node"] == ['no node "gpu-z"']
    assert Node.objects.count() == 0


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"{", b"a: b: c", b"[" * 10_000, b"nodes: []", b"- 1"])
def test_what_is_no_inventory_is_a_400(admin: APIClient, body: bytes) -> None:
    answer = send(admin, "PUT", PATH, body, "application/yaml")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


def test_replace_is_0_or_1(admin: APIClient) -> None:
    answer = send(admin, "PUT", f"{PATH}?replace=yes", b"version: 1", "application/yaml")
    assert answer.json()["fields"] == {"replace": ["must be 0 or 1"]}


@pytest.mark.parametrize(
    ("method", "query", "error"),
    [
        ("PUT", "repalce=1", "repalce: there is no such parameter; there is replace"),
        ("GET", "format=yaml", "format: there is no such parameter; there is none"),
    ],
)
def test_an_unknown_parameter_is_a_400(
    admin: APIClient, fleet: dict[str, Any], method: str, query: str, error: str
) -> None:
    answer = send(admin, method, f"{PATH}?{query}", b"version: 1", "application/yaml")
    assert (answer.status_code, answer.json()["code"], answer.json()["error"]) == (400, "invalid", error)
    assert Node.objects.count() == 1


@pytest.mark.parametrize(
    ("media_type", "status"),
    [
        ("application/json; charset=utf-8", 200),
        ("application/x-yaml", 200),
        ("text/yaml", 200),
        ("text/plain", 200),
        ("", 200),
        ("application/x-www-form-urlencoded", 200),
        ("multipart/form-data; boundary=x", 415),
    ],
)
def test_a_document_comes_as_json_yaml_or_plain_bytes(admin: APIClient, media_type: str, status: int) -> None:
    assert send(admin, "PUT", PATH, b"version: 1", media_type).status_code == status


def test_replace_removes_what_the_document_leaves_out(admin: APIClient, fleet: dict[str, Any]) -> None:
    answer = send(admin, "PUT", f"{PATH}?replace=1", b"version: 1", "application/yaml")
    assert answer.status_code == 200
    assert answer.json()["removed"]["nodes"] == 1
    assert Node.objects.count() == 0


def test_a_document_over_100_mib_is_a_413_before_it_is_read(admin: APIClient) -> None:
    answer = send(
        admin,
        "PUT",
        PATH,
        b"x",
        "application/yaml",
        headers={"content-length": str(100 * 1024 * 1024 + 1)},
    )
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_other_methods_are_a_405(admin: APIClient) -> None:
    assert admin.post(PATH, {}).status_code == 405
    assert admin.delete(PATH).status_code == 405
