"""Measurement runs: watched and cancelled."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from sizing.models import Refresh


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
