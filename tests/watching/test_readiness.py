"""What probes are told: that the process lives, whether it can answer, and what is wrong."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import OperationalError, connection
from django.db.backends.utils import CursorWrapper
from django.utils import timezone
from rest_framework.test import APIClient

from sizing.models import WorkerBeat
from sizing.services.watching import broker, disk
from sizing.services.watching.disk import Disk

FINE = {
    "database": "ok",
    "migrations": "ok",
    "snapshot": "ok",
    "worker desk": "ok",
    "worker measuring": "ok",
    "disk": "ok",
    "broker": "ok",
}


@pytest.fixture(autouse=True)
def looked_at_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "_last", None)


@pytest.fixture
def workers(db: None) -> None:
    WorkerBeat.objects.create(name="a@x", seen_at=timezone.now(), queues=["desk", "measuring"])


def ask() -> tuple[int, dict[str, Any]]:
    answer = APIClient().get("/healthz/ready")
    return answer.status_code, answer.json()


def test_all_is_well(workers: None) -> None:
    assert ask() == (200, {"status": "ready", "checks": FINE, "reasons": []})


@pytest.mark.parametrize("path", ["/healthz/live", "/healthz/live/"])
def test_a_process_lives_without_a_database(path: str) -> None:
    answer = APIClient().get(path)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_a_queue_without_a_worker_is_named_and_pages_work_on(workers: None) -> None:
    WorkerBeat.objects.update(queues=["desk"])
    gone = timezone.now() - timedelta(seconds=61)
    WorkerBeat.objects.create(name="b@x", seen_at=gone, queues=["measuring"])
    why = "no worker serves the queue measuring"
    checks = FINE | {"worker measuring": "missing"}
    assert ask() == (200, {"status": "limited", "checks": checks, "reasons": [why]})


def test_where_a_cluster_is_followed_somebody_has_to(workers: None, settings: LazySettings) -> None:
    settings.KUBERNETES = type("Followed", (), {"on": True})
    assert ask()[1]["reasons"] == ["no worker serves the queue sync"]


def test_a_broker_that_is_away_is_named_and_asked_no_more_than_every_few_seconds(
    workers: None, settings: LazySettings, tmp_path: Path
) -> None:
    options = settings.CELERY_BROKER_TRANSPORT_OPTIONS
    settings.CELERY_BROKER_TRANSPORT_OPTIONS = options | {"folder": str(tmp_path / "none")}
    why = "the broker cannot be reached; what is asked for waits in its row"
    away = (200, {"status": "limited", "checks": FINE | {"broker": "away"}, "reasons": [why]})
    assert ask() == away
    settings.CELERY_BROKER_TRANSPORT_OPTIONS = options
    assert ask() == away


def test_a_migration_that_is_missing_makes_it_unfit(workers: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE name = '0010_watching'")
    status, told = ask()
    assert (status, told["status"], told["checks"]["migrations"]) == (503, "unavailable", "missing")
    assert told["reasons"][0] == (
        "1 migrations are missing, first sizing.0010_watching; run `manage.py migrate`"
    )


def test_without_a_database_it_is_unfit(workers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*args: Any, **kwargs: Any) -> None:
        raise OperationalError("no password for secret@db")

    with monkeypatch.context() as patch:
        patch.setattr(CursorWrapper, "execute", away)
        answer = ask()
    checks = {"database": "away", "disk": "ok"}
    reasons = ["the database cannot be reached; try again shortly"]
    assert answer == (503, {"status": "unavailable", "checks": checks, "reasons": reasons})


@pytest.mark.parametrize(("free", "word", "status"), [(2**20 - 1, "full", 503), (2**26, "low", 200)])
def test_a_disk_is_low_and_then_full(
    workers: None, monkeypatch: pytest.MonkeyPatch, free: int, word: str, status: int
) -> None:
    monkeypatch.setattr(disk, "look", lambda: Disk(2**30, free))
    found, told = ask()
    assert (found, told["checks"]["disk"]) == (status, word)
    assert told["reasons"] == [f"{free // 2**20} MiB are free in DATA_DIR"]


def test_probes_need_no_sign_in_and_are_not_throttled(workers: None) -> None:
    client = APIClient()
    for path in ("/healthz/live", "/healthz/ready"):
        assert {client.get(path).status_code for _ in range(35)} == {200}
        assert client.head(path).status_code == 200
        assert client.post(path).status_code == 405
