"""Measurement runs: watched, cancelled and asked for again."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from sizing.models import Refresh, Replica
from tests.api.conftest import only_new


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_queued_refresh_is_cancelled_at_once(admin: APIClient, fleet: dict[str, Any], slash: str) -> None:
    answer = admin.post(f"/api/v1/refreshes/{fleet['refreshes'].pk}/cancel{slash}")
    assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
    assert admin.post(f"/api/v1/refreshes/{fleet['refreshes'].pk}/cancel{slash}").json() == answer.json()


def test_a_running_refresh_is_told_to_stop(admin: APIClient, fleet: dict[str, Any]) -> None:
    Refresh.objects.update(state="running")
    answer = admin.post(f"/api/v1/refreshes/{fleet['refreshes'].pk}/cancel").json()
    assert (answer["state"], answer["cancel_requested"]) == ("running", True)


def test_refreshes_are_not_made_or_changed_as_objects(admin: APIClient, fleet: dict[str, Any]) -> None:
    path = f"/api/v1/refreshes/{fleet['refreshes'].pk}"
    assert admin.post("/api/v1/refreshes", {}).status_code == 405
    for method in (admin.put, admin.patch, admin.delete):
        assert method(path, {}).status_code == 405


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("state", ["done", "failed", "cancelled"])
def test_a_refresh_that_is_over_is_asked_for_again(
    admin: APIClient, ready: dict[str, Any], state: str, slash: str
) -> None:
    Refresh.objects.update(state=state, trigger="schedule", error="it hung")
    old = Refresh.objects.values().get()
    answer = admin.post(f"/api/v1/refreshes/{old['id']}/retry{slash}")
    row = only_new(ready)
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/api/v1/refreshes/{row.pk}"
    assert admin.get(answer.headers["Location"]).json() == answer.json()
    assert (row.variant_id, row.profile_id) == (old["variant_id"], old["profile_id"])
    told = {key: answer.json()[key] for key in ("state", "trigger", "requested_by", "error")}
    assert told == {"state": "queued", "trigger": "api", "requested_by": "ada", "error": ""}
    assert Refresh.objects.values().get(pk=old["id"]) == old


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_refresh_that_is_not_over_needs_no_retry(
    admin: APIClient, ready: dict[str, Any], state: str
) -> None:
    Refresh.objects.update(state=state)
    pk = ready["refreshes"].pk
    answer = admin.post(f"/api/v1/refreshes/{pk}/retry")
    assert (answer.status_code, answer.json()) == (
        409,
        {"error": f"refresh {pk} is {state}; it needs no retry", "code": "conflict"},
    )
    assert Refresh.objects.count() == 1


def test_of_two_retries_one_is_a_conflict(admin: APIClient, ready: dict[str, Any]) -> None:
    path = f"/api/v1/refreshes/{ready['refreshes'].pk}/retry"
    first = admin.post(path)
    second = admin.post(path)
    assert (first.status_code, second.status_code) == (202, 409)
    assert second.json()["error"].startswith(f"refresh {first.json()['id']} is queued for ")
    assert Refresh.objects.count() == 2


def test_a_retry_of_what_cannot_be_measured_any_more_is_a_400(
    admin: APIClient, ready: dict[str, Any]
) -> None:
    Replica.objects.update(benchable=False)
    answer = admin.post(f"/api/v1/refreshes/{ready['refreshes'].pk}/retry")
    assert (answer.status_code, answer.json()["code"]) == (400, "not_benchable")
    assert Refresh.objects.count() == 1
