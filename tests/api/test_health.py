"""What probes and Prometheus ask."""

from __future__ import annotations

import html
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import OperationalError, connection
from django.db.backends.utils import CursorWrapper
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from sizing.models import InventoryChange, WorkerBeat
from tests.api.conftest import Caller


@pytest.mark.parametrize("path", ["/healthz", "/healthz/"])
def test_health_needs_no_sign_in_and_names_a_missing_worker(db: None, path: str) -> None:
    answer = APIClient().get(path)
    assert answer.status_code == 200
    expected = {"status": "ok", "database": "ok", "worker": "missing", "queues": ["desk", "measuring"]}
    assert answer.json() == expected
    assert APIClient().head(path).status_code == 200


@pytest.mark.parametrize(("age_s", "worker"), [(5, "ok"), (61, "missing")])
def test_a_worker_is_missing_after_60_seconds(db: None, age_s: int, worker: str) -> None:
    seen_at = timezone.now() - timedelta(seconds=age_s)
    WorkerBeat.objects.create(name="w1", seen_at=seen_at, queues=["desk", "measuring"])
    assert APIClient().get("/healthz").json()["worker"] == worker


def test_a_queue_that_no_worker_serves_is_named_also_while_another_worker_lives(db: None) -> None:
    WorkerBeat.objects.create(name="w1", seen_at=timezone.now(), queues=["measuring"])
    told = APIClient().get("/healthz").json()
    assert told == {"status": "ok", "database": "ok", "worker": "missing", "queues": ["desk"]}


def test_without_the_database_health_is_a_503(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise OperationalError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(CursorWrapper, "execute", fail)
        answer = APIClient().get("/healthz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "unavailable", "database": "away", "worker": "unknown"}
    assert answer.headers["Retry-After"] == "5"


def test_a_database_without_tables_is_told_from_one_that_is_away(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE sizing_workerbeat RENAME TO not_there")
    answer = APIClient().get("/healthz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "unavailable", "database": "not migrated", "worker": "unknown"}


@pytest.mark.parametrize("path", ["/api/v1/nodes", "/admin/sizing/node/"])
def test_without_tables_the_message_says_what_to_do(db: None, path: str) -> None:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("ada", password="x"))
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE django_session RENAME TO not_there")
    answer = client.get(path)
    assert answer.status_code == 503
    text = html.unescape(answer.content.decode())
    assert "he database has no tables yet; run `manage.py migrate`" in text  # a page begins it with a capital


def test_probes_are_not_throttled(db: None) -> None:
    assert {APIClient().get("/healthz").status_code for _ in range(40)} == {200}


@pytest.mark.parametrize("path", ["/metrics", "/metrics/"])
def test_metrics_need_sign_in(fleet: dict[str, Any], caller: Caller, path: str) -> None:
    assert APIClient().get(path).status_code == 401
    watching = caller("view_servedmodel", "view_target")
    answer = watching.get(path, headers={"accept": "application/openmetrics-text;version=1.0.0"})
    assert answer.headers["Content-Type"].startswith("text/plain")
    lines = answer.content.decode().splitlines()
    revision = InventoryChange.objects.latest("id").id
    for line in (
        "llmgw_nodes 1.0",
        "llmgw_gpus 4.0",
        'llmgw_replicas{state="ready"} 1.0',
        'llmgw_replicas{state="failed"} 0.0',
        'llmgw_refreshes{state="queued"} 1.0',
        f"llmgw_inventory_revision {float(revision)}",
    ):
        assert line in lines
