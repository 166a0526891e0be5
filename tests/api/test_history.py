"""The admin's history tells also what is changed by the API: by whom, and what of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from rest_framework.test import APIClient

from sizing.models import Measurement, Node, Refresh, Replica
from sizing.models.history import way_of
from tests.api.conftest import LLAMA

GPU = {"type": "NVIDIA-H100-80GB-HBM3", "memory_mib": 81559}


@pytest.fixture
def told(admin: APIClient, fleet: dict[str, Any]) -> Any:
    """Gives what, object and id of what the API was told to do since it was last asked."""

    def entries() -> list[tuple[str, str]]:
        rows = list(LogEntry.objects.filter(user__username="ada").order_by("pk"))
        assert {way_of(row) for row in rows} <= {"API"}
        LogEntry.objects.all().delete()
        return [(row.object_repr, row.get_change_message()) for row in rows]

    return entries


def test_what_is_added_changed_and_removed_is_told(admin: APIClient, told: Any) -> None:
    made = admin.post("/api/v1/nodes", {"name": "n1", "gpus": [GPU, GPU]})
    assert made.status_code == 201
    entry = LogEntry.objects.filter(user__username="ada").earliest("pk")
    assert entry.object_id == str(Node.objects.get(name="n1").pk)
    assert told() == [("n1", "Added."), ("n1 GPU 0", "Added."), ("n1 GPU 1", "Added.")]
    assert admin.patch("/api/v1/nodes/n1", {"ready": False, "cost_per_hour": 2.5}).status_code == 200
    assert told() == [("n1", "Changed ready and cost per hour.")]
    assert admin.patch("/api/v1/nodes/n1", {"gpus": [GPU, {**GPU, "healthy": False}]}).status_code == 200
    assert told() == [("n1", "Changed gpus."), ("n1 GPU 1", "Changed healthy.")]
    # The same once more changes nothing, and neither does what is refused.
    same = {"ready": False, "gpus": [GPU, {**GPU, "healthy": False}]}
    assert admin.patch("/api/v1/nodes/n1", same).status_code == 200
    assert admin.patch("/api/v1/nodes/n1", {"name": "gpu-a1"}).status_code == 400
    assert admin.delete("/api/v1/nodes/gpu-a1").status_code == 409
    assert told() == []
    assert admin.delete("/api/v1/nodes/n1").status_code == 204
    assert told() == [
        ("n1", "Deleted node “n1”."),
        ("n1 GPU 0", "Deleted GPU “n1 GPU 0”."),
        ("n1 GPU 1", "Deleted GPU “n1 GPU 1”."),
    ]


def test_parts_of_models_and_replicas_are_told_with_them(admin: APIClient, told: Any) -> None:
    variants = [{"name": "h100-tp2", "gpus": 2}, {"name": "new", "gpus": 1}, {"name": "h100-x1", "gpus": 1}]
    assert admin.patch(f"/api/v1/models/{LLAMA}", {"variants": variants}).status_code == 200
    found = told()
    assert [(name, what.split()[0]) for name, what in found] == [
        (LLAMA, "Changed"),
        (f"{LLAMA} · new", "Added."),
        (f"{LLAMA} · h100-x1", "Changed"),
    ]
    assert found[0][1] == "Changed variants."
    placement = [{"node": "gpu-a1", "gpus": [2, 3]}]
    assert admin.patch("/api/v1/replicas/llama-70b-0", {"placement": placement}).status_code == 200
    assert told() == [("llama-70b-0", "Changed placement.")]


def test_runs_that_are_asked_for_and_cancelled_are_told(
    admin: APIClient, ready: dict[str, Any], told: Any
) -> None:
    assert admin.post(f"/api/v1/models/{LLAMA}/refresh").status_code == 202
    run = Refresh.objects.latest("pk")
    assert admin.post(f"/api/v1/refreshes/{run.pk}/cancel").status_code == 200
    assert admin.post(f"/api/v1/refreshes/{run.pk}/cancel").status_code == 200
    assert told() == [(str(run), "Added."), (str(run), "Changed cancel requested.")]


def test_a_measurement_that_is_entered_is_told_once(admin: APIClient, told: Any) -> None:
    given = {"model": LLAMA, "variant": "h100-tp2", "profile": "chat", "tok_per_sec": 900}
    body = {**given, "measured_at": "2026-11-03T09:00:00Z"}
    assert admin.post("/api/v1/measurements", body).status_code == 201
    made = Measurement.objects.latest("pk")
    assert told() == [(f"{LLAMA} · h100-tp2 on chat: {made}", "Added.")]


def test_what_goes_with_a_model_is_told_by_its_own_name(
    admin: APIClient, fleet: dict[str, Any], told: Any
) -> None:
    Replica.objects.all().delete()
    assert admin.delete(f"/api/v1/models/{LLAMA}").status_code == 204
    names = [name for name, _ in told()]
    assert names[0] == LLAMA
    assert f"{LLAMA} · h100-tp2" in names
    assert [name.split(":")[0] for name in names if " on chat" in name] == [f"{LLAMA} · h100-tp2 on chat"]
    assert [name for name in names if name.startswith(f"{LLAMA}: ")]  # the target
