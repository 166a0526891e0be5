"""Every error in one form, and none of them a 500."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, InterfaceError, OperationalError
from rest_framework.test import APIClient

from sizing.models import Node
from sizing.services.errors import DeskError
from tests.api.conftest import LLAMA, Caller, send
from tests.api.forms import REPLICA

JSON = "application/json"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b"null",
        b"\xff",
        b'{"name": NaN}',
        b'{"name": "a", "name": "b"}',
        b'{"name": 1e99999999999999999999}',
        b'{"priority": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"name": "\\ud800"}',
        b'{"name": "a\\u0000b"}',
    ],
)
def test_a_body_that_cannot_be_read_is_a_400(admin: APIClient, body: bytes) -> None:
    answer = send(admin, "POST", "/api/v1/nodes", body, JSON)
    assert answer.status_code == 400
    assert answer.json()["code"] == "invalid"
    assert Node.objects.count() == 0


def test_other_media_types_are_a_415(admin: APIClient) -> None:
    answer = send(admin, "POST", "/api/v1/nodes", b"name=x", "application/x-www-form-urlencoded")
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


def test_a_body_over_10_mib_is_a_413(admin: APIClient) -> None:
    body = b'{"name": "' + b"x" * (10 * 1024 * 1024) + b'"}'
    answer = send(admin, "POST", "/api/v1/nodes", body, JSON)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_other_methods_are_a_405(admin: APIClient) -> None:
    answer = admin.post("/api/v1/refreshes", {})
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert "POST" not in answer.headers["Allow"]


def test_what_only_json_can_say_is_a_406_in_json(admin: APIClient) -> None:
    answer = admin.get("/api/v1/nodes", headers={"accept": "image/png"})
    assert (answer.status_code, answer.json()["code"]) == (406, "not_acceptable")


def test_an_unknown_key_is_named(admin: APIClient) -> None:
    answer = admin.post("/api/v1/nodes", {"name": "n", "gpu": 3})
    assert answer.json() == {
        "error": "gpu: there is no such key",
        "code": "invalid",
        "fields": {"gpu": ["there is no such key"]},
    }


@pytest.mark.parametrize(
    ("collection", "form", "paths"),
    [
        (
            "nodes",
            {"gpus": [{"type": "a"}, {"type": "", "memory_mib": 0}]},
            {"name", "gpus[1].type", "gpus[1].memory_mib"},
        ),
        (
            "nodes",
            {"name": "n", "gpus": [{"type": "a", "index": 1}, {"type": "a", "index": 1}]},
            {"gpus[1].index"},
        ),
        ("nodes", {"name": "n", "gpus": [{"type": "a", "index": 1, "count": 2}]}, {"gpus[0].count"}),
        ("nodes", {"name": "n", "gpus": {}}, {"gpus"}),
        ("nodes", {"name": "n", "labels": {"a b": "x"}}, {'labels["a b"]'}),
        ("nodes", {"name": "n", "labels": {"a": 1}}, {'labels["a"]'}),
        ("nodes", {"name": "n", "taints": [{"key": "a", "effect": "No"}]}, {"taints[0].effect"}),
        ("nodes", {"name": "n", "ready": "yes"}, {"ready"}),
        ("models", {"name": "m", "owner": "a\nb"}, {"owner"}),
        ("replicas", REPLICA | {"endpoint": "http://u:p@h"}, {"endpoint"}),
        ("nodes", {"name": "n", "cpu_millis": -1}, {"cpu_millis"}),
        ("nodes", {"name": "n", "cpu_millis": 1.5}, {"cpu_millis"}),
        ("nodes", {"name": "n", "cpu_millis": True}, {"cpu_millis"}),
        ("nodes", {"name": "n", "cost_per_hour": 1e9}, {"cost_per_hour"}),
        ("models", {"name": "m", "default_profile": "no"}, {"default_profile"}),
        ("models", {"name": "m", "variants": [{"name": "v"}, {"name": "v"}]}, {"variants[1].name"}),
        (
            "models",
            {"name": "m", "variants": [{"name": "v", "gpu_memory_fraction": 0}]},
            {"variants[0].gpu_memory_fraction"},
        ),
        (
            "models",
            {"name": "m", "variants": [{"name": "v", "gpu_memory_fraction": 1.01}]},
            {"variants[0].gpu_memory_fraction"},
        ),
        (
            "models",
            {"name": "m", "variants": [{"name": "v", "gpu_types": ["a", "a"]}]},
            {"variants[0].gpu_types[1]"},
        ),
        (
            "models",
            {"name": "m", "variants": [{"name": "v", "tolerations": [{"value": "x"}]}]},
            {"variants[0].tolerations[0].operator"},
        ),
        ("models", {"name": "m", "priority": 2**31}, {"priority"}),
        ("profiles", {"name": "p", "input_tokens": 1, "output_tokens": 1}, {"slo"}),
        ("profiles", {"name": "p", "input_tokens": 1, "output_tokens": 1, "slo": {}}, {"slo"}),
        (
            "profiles",
            {"name": "p", "input_tokens": 1, "output_tokens": 1, "slo": {"ttft_ms": 0}},
            {"slo.ttft_ms"},
        ),
        ("targets", {"model": "no", "tokens_per_sec": 1}, {"model"}),
        ("targets", {"model": LLAMA, "tokens_per_sec": 0}, {"tokens_per_sec"}),
        ("targets", {"model": LLAMA, "tokens_per_sec": "inf"}, {"tokens_per_sec"}),
        ("targets", {"model": LLAMA, "tokens_per_sec": 1e13}, {"tokens_per_sec"}),
        ("targets", {"model": LLAMA, "variant": "no", "tokens_per_sec": 1}, {"variant"}),
        (
            "measurements",
            {"model": LLAMA, "variant": "h100-tp2", "profile": "no", "tok_per_sec": 1},
            {"profile"},
        ),
        (
            "measurements",
            {
                "model": LLAMA,
                "variant": "h100-tp2",
                "profile": "chat",
                "tok_per_sec": 1,
                "measured_at": "soon",
            },
            {"measured_at"},
        ),
    ],
)
def test_wrong_fields_are_named_by_path(
    admin: APIClient, fleet: dict[str, Any], collection: str, form: dict[str, Any], paths: set[str]
) -> None:
    answer = admin.post(f"/api/v1/{collection}", form)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert set(answer.json()["fields"]) == paths
    first = next(iter(answer.json()["fields"]))
    assert answer.json()["error"].startswith(f"{first}: ")


def test_a_patch_checks_parts_as_a_whole(admin: APIClient, fleet: dict[str, Any]) -> None:
    answer = admin.patch("/api/v1/nodes/gpu-a1", {"gpus": [{"index": 0}]})
    assert answer.json()["fields"] == {"gpus[0].type": ["This field is required."]}
    answer = admin.patch("/api/v1/profiles/chat", {"slo": {"percentile": 90}})
    assert list(answer.json()["fields"]) == ["slo"]


@pytest.mark.parametrize("query", ["page=0", "page=x", "page=2", "page=99999999999999999999999"])
def test_a_page_that_is_not_there_is_a_404(admin: APIClient, fleet: dict[str, Any], query: str) -> None:
    assert admin.get(f"/api/v1/nodes?{query}").json()["code"] == "not_found"


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (
            "gpu_type=A",
            "gpu_type: there is no such parameter; there are page, page_size, search, ordering,"
            " name, name__contains, source, ready, schedulable, stale, type, label",
        ),
        (
            "ordering=name,foo",
            'ordering: cannot be by "foo"; there are name, ready, schedulable, cost_per_hour, cpu_millis,'
            " memory_mib",
        ),
        ("ordering=--name", 'ordering: cannot be by "--name"; there are name, ready'),
    ],
)
def test_what_a_list_does_not_know_is_a_400_that_names_what_it_knows(
    admin: APIClient, query: str, error: str
) -> None:
    answer = admin.get(f"/api/v1/nodes?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert answer.json()["error"].startswith(error)
    assert list(answer.json()["fields"]) == [query.split("=")[0]]


@pytest.mark.parametrize("query", ["page_size=0", "page_size=x", "ready=maybe", "name=%00", "search=%00"])
def test_a_wrong_filter_is_a_400(admin: APIClient, fleet: dict[str, Any], query: str) -> None:
    answer = admin.get(f"/api/v1/nodes?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (OperationalError("gone"), 503, "unavailable"),
        (InterfaceError("gone"), 503, "unavailable"),
        (IntegrityError("twice"), 409, "conflict"),
        (DeskError("no", code="not_measured"), 400, "not_measured"),
        (DeskError("no", code="unavailable", status=503), 503, "unavailable"),
    ],
)
def test_what_the_services_raise_has_its_status(
    admin: APIClient, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, code: str
) -> None:
    def fail(*args: Any, **named: Any) -> None:
        raise error

    monkeypatch.setattr("sizing.services.editing.save", fail)
    answer = admin.post("/api/v1/nodes", {"name": "n"})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert ("Retry-After" in answer.headers) == (status == 503)


def test_a_name_taken_at_the_same_moment_is_a_conflict(
    admin: APIClient, fleet: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sizing.services.editing.fleet.refuse_taken_name", lambda row: None)
    answer = admin.post("/api/v1/nodes", {"name": "gpu-a1"})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


def test_what_nobody_expected_is_left_to_the_server(
    admin: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **named: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("sizing.services.editing.save", fail)
    with pytest.raises(ZeroDivisionError):
        admin.post("/api/v1/nodes", {"name": "n"})


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/v1/x/y/", "/api/v2/nodes", "/api/v1/models//target"])
def test_unknown_addresses_are_a_json_404(admin: APIClient, path: str) -> None:
    answer = admin.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_a_target_is_checked_in_the_order_401_403_404_400(fleet: dict[str, Any], caller: Caller) -> None:
    unknown, known = (
        "/api/v1/models/no/target?tokens_per_sec=0",
        f"/api/v1/models/{LLAMA}/target?tokens_per_sec=0",
    )
    assert APIClient().get(unknown).status_code == 401
    assert caller().get(unknown).status_code == 403
    reader = caller("view_servedmodel")
    assert reader.get(unknown).status_code == 404
    assert reader.get(known).json() == {
        "error": "tokens_per_sec must be a positive number",
        "code": "invalid",
    }
    assert reader.get(f"/api/v1/models/{LLAMA}/target?tokens_per_sec=1&tokens_per_sec=2").status_code == 400
    assert reader.head(f"/api/v1/models/{LLAMA}/target?tokens_per_sec=1").status_code == 200
