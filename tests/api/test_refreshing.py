"""A measurement is asked for: queued, or refused with the reason."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from rest_framework.test import APIClient

from sizing.models import BenchProfile, Measurement, Refresh, Replica, ServedModel, Variant
from tests.api.conftest import LLAMA, only_new, send

PATH = f"/api/v1/models/{LLAMA}/refresh"
JSON = "application/json"


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_refresh_is_queued_and_its_address_told(
    admin: APIClient, ready: dict[str, Any], slash: str
) -> None:
    answer = admin.post(PATH + slash)
    row = only_new(ready)
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/api/v1/refreshes/{row.pk}"
    assert admin.get(answer.headers["Location"]).json() == answer.json()
    queued_at = answer.json()["queued_at"]
    assert answer.json() == {
        "id": row.pk,
        "model": LLAMA,
        "variant": "h100-tp2",
        "profile": "chat",
        "replica": None,
        "state": "queued",
        "trigger": "api",
        "requested_by": "ada",
        "save_result": True,
        "attempts": 0,
        "progress": 0,
        "message": "",
        "live": None,
        "levels": [],
        "measurement": None,
        "cancel_requested": False,
        "queued_at": queued_at,
        "started_at": None,
        "heartbeat_at": None,
        "finished_at": None,
        "error": "",
    }
    assert row.requested_by == get_user_model().objects.get(username="ada")


def test_profile_variant_and_replica_can_be_named(admin: APIClient, ready: dict[str, Any]) -> None:
    BenchProfile.objects.create(name="team/rag", input_tokens=8, output_tokens=8, ttft_ms=1)
    x1 = Variant.objects.get(name="h100-x1")
    Replica.objects.create(name="x1-0", variant=x1, benchable=True, endpoint="http://10.0.0.8:8000/v1")
    asked = {"profile": "team/rag", "variant": "h100-x1", "replica": "x1-0"}
    answer = admin.post(PATH, asked)
    assert answer.status_code == 202
    assert {key: answer.json()[key] for key in asked} == asked
    row = only_new(ready)
    assert (row.variant, row.profile.name, row.trigger) == (x1, "team/rag", "api")


def test_a_replica_alone_tells_the_variant(admin: APIClient, ready: dict[str, Any]) -> None:
    x1 = Variant.objects.get(name="h100-x1")
    Replica.objects.create(name="x1-0", variant=x1, benchable=True, endpoint="http://10.0.0.8:8000/v1")
    assert admin.post(PATH, {"replica": "x1-0"}).json()["variant"] == "h100-x1"


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"", ""),
        (b"", JSON),
        (b"", "application/x-www-form-urlencoded"),
        (b"{}", JSON),
        (b'{"profile": null, "variant": null, "replica": null}', JSON),
        (b'{"profile": "chat"}', "application/json; charset=utf-8"),
    ],
)
def test_the_body_may_be_left_out(
    admin: APIClient, ready: dict[str, Any], body: bytes, media_type: str
) -> None:
    answer = send(admin, "POST", PATH, body, media_type)
    assert (answer.status_code, answer.json()["profile"]) == (202, "chat")


@pytest.mark.parametrize(
    ("body", "code", "error"),
    [
        ({"profile": "no"}, "unknown_profile", 'no profile "no"; there are chat'),
        (
            {"variant": "no"},
            "unknown_variant",
            f'{LLAMA} has no variant "no"; there are h100-tp2, h100-x1',
        ),
        ({"replica": "no"}, "unknown_replica", f'{LLAMA} has no replica "no"'),
        (
            {"replica": "llama-70b-0", "variant": "h100-x1"},
            "invalid",
            'replica "llama-70b-0" runs variant "h100-tp2", not "h100-x1"',
        ),
        ({"variant": "h100-x1"}, "not_benchable", f"{LLAMA} (h100-x1) has no replica to measure"),
    ],
)
def test_what_cannot_be_measured_is_a_400_with_the_reason(
    admin: APIClient, ready: dict[str, Any], body: dict[str, Any], code: str, error: str
) -> None:
    answer = admin.post(PATH, body)
    assert (answer.status_code, answer.json()) == (400, {"error": error, "code": code})
    assert Refresh.objects.count() == 1


@pytest.mark.parametrize(
    ("replica", "error"),
    [
        ({"benchable": False}, f"no replica of {LLAMA} (h100-tp2) is marked benchable"),
        ({"state": "draining"}, f"no benchable replica of {LLAMA} (h100-tp2) is ready"),
        ({"endpoint": ""}, f"no benchable replica of {LLAMA} (h100-tp2) has an endpoint"),
    ],
)
def test_only_a_benchable_ready_replica_with_an_endpoint_is_measured(
    admin: APIClient, ready: dict[str, Any], replica: dict[str, Any], error: str
) -> None:
    Replica.objects.update(**replica)
    for body in ({}, {"replica": "llama-70b-0"}):
        answer = admin.post(PATH, body)
        assert (answer.status_code, answer.json()) == (400, {"error": error, "code": "not_benchable"})
    assert Refresh.objects.count() == 1


def test_without_a_default_the_profile_has_to_be_named_unless_only_one_is_measured(
    admin: APIClient, ready: dict[str, Any]
) -> None:
    ServedModel.objects.update(default_profile=None)
    assert admin.post(PATH).json()["profile"] == "chat"
    Measurement.objects.all().delete()
    answer = admin.post(PATH)
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": f"{LLAMA} has no default profile; name one of chat", "code": "profile_required"},
    )


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_second_refresh_of_the_same_is_a_conflict(
    admin: APIClient, ready: dict[str, Any], state: str
) -> None:
    Refresh.objects.update(state=state)
    active = ready["refreshes"].pk
    answer = admin.post(PATH)
    assert (answer.status_code, answer.json()) == (
        409,
        {"error": f"refresh {active} is {state} for {LLAMA} (h100-tp2) on chat already", "code": "conflict"},
    )
    assert "Location" not in answer.headers
    assert Refresh.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (b'{"profil": "chat"}', {"profil": ["there is no such key"]}),
        (b'{"profile": 7, "save": true}', {"profile": ["must be a text"], "save": ["there is no such key"]}),
        (b'{"variant": ["h100-tp2"]}', {"variant": ["must be a text"]}),
        (b'{"replica": ""}', {"replica": ["This field may not be blank."]}),
        (b'{"replica": "a\\u0000b"}', None),
        (b"[]", None),
        (b'"chat"', None),
        (b"null", None),
        (b"{", None),
        (b"\xff", None),
        (b'{"profile": NaN}', None),
        (b'{"profile": "chat", "profile": "rag"}', None),
    ],
)
def test_a_malformed_body_is_a_400(
    admin: APIClient, ready: dict[str, Any], body: bytes, fields: dict[str, list[str]] | None
) -> None:
    answer = send(admin, "POST", PATH, body, JSON)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    if fields is not None:
        assert answer.json()["fields"] == fields
    assert Refresh.objects.count() == 1


def test_a_body_of_another_media_type_is_a_415(admin: APIClient, ready: dict[str, Any]) -> None:
    answer = send(admin, "POST", PATH, b"profile=chat", "application/x-www-form-urlencoded")
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    assert Refresh.objects.count() == 1


def test_a_body_in_chunks_is_refused_and_not_taken_for_none(admin: APIClient, ready: dict[str, Any]) -> None:
    chunked: Any = {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}
    answer = send(admin, "POST", PATH, b'{"profile": "rag"}', JSON, **chunked)
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": "send the body with its Content-Length", "code": "invalid"},
    )
    assert Refresh.objects.count() == 1


def test_what_stands_in_the_query_is_not_taken_for_the_body(admin: APIClient, ready: dict[str, Any]) -> None:
    answer = admin.post(f"{PATH}?profile=rag")
    assert (answer.status_code, answer.json()["fields"]) == (
        400,
        {"profile": ["there is no such parameter; there is none"]},
    )
    assert Refresh.objects.count() == 1


def test_an_unknown_model_is_told_before_what_is_wrong_with_the_body(admin: APIClient) -> None:
    answer = send(admin, "POST", "/api/v1/models/no/refresh?x=1", b"{", JSON)
    assert (answer.status_code, answer.json()) == (404, {"error": 'no model "no"', "code": "not_found"})


@pytest.mark.parametrize("method", ["get", "put", "patch", "delete"])
def test_a_refresh_is_asked_for_by_post_only(admin: APIClient, ready: dict[str, Any], method: str) -> None:
    for path in (PATH, f"/api/v1/refreshes/{ready['refreshes'].pk}/retry"):
        answer = getattr(admin, method)(path)
        assert (answer.status_code, answer.headers["Allow"]) == (405, "POST, OPTIONS")
    assert Refresh.objects.count() == 1


def woken() -> set[Path]:
    """The messages that wait for a worker that measures."""
    return set((settings.DATA_DIR / "queue").glob("*.measuring.msg"))


def test_a_worker_is_woken_once_the_row_is_there(
    admin: APIClient, ready: dict[str, Any], django_capture_on_commit_callbacks: Any
) -> None:
    before = woken()
    with django_capture_on_commit_callbacks(execute=True):
        made = admin.post(PATH).json()["id"]
        assert woken() == before
    (message,) = woken() - before
    arguments = json.loads(base64.b64decode(json.loads(message.read_text())["body"]))[0]
    assert arguments == [made]
    message.unlink()


def test_nobody_is_woken_for_what_was_refused(
    admin: APIClient, fleet: dict[str, Any], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks() as callbacks:
        assert admin.post(PATH).status_code == 400
        assert admin.post(f"/api/v1/refreshes/{fleet['refreshes'].pk}/retry").status_code == 409
    assert callbacks == []
