"""The background worker's wiring."""

import logging
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from llmgw_admin import celery
from sizing.models import WorkerBeat


def test_everything_on_the_schedule_is_a_task_that_exists():
    celery.app.loader.import_default_modules()
    scheduled = {entry["task"] for entry in celery.app.conf.beat_schedule.values()}
    assert scheduled == {
        "sizing.tasks.sweep_refreshes",
        "sizing.tasks.request_due_refreshes",
        "sizing.tasks.look_at_engines",
        "sizing.tasks.mark_stale_measurements",
    }
    assert scheduled <= set(celery.app.tasks)


def test_a_message_only_wakes_a_worker_so_it_is_acknowledged_late_and_leaves_no_result():
    conf = celery.app.conf
    assert (conf.task_acks_late, conf.worker_prefetch_multiplier, conf.task_ignore_result) == (True, 1, True)
    assert (conf.task_serializer, conf.accept_content) == ("json", ["json"])
    assert not conf.result_backend
    assert conf.task_soft_time_limit < conf.task_time_limit


@pytest.mark.django_db
def test_a_worker_has_one_row_however_often_it_beats():
    celery._note_beat("worker@a", ["desk"])
    first = WorkerBeat.objects.get().seen_at
    celery._note_beat("worker@a", ["desk", "sync"])
    assert WorkerBeat.objects.get().seen_at >= first
    assert WorkerBeat.objects.get().queues == ["desk", "sync"]
    celery._forget("worker@a")
    assert not WorkerBeat.objects.exists()


@pytest.mark.django_db
def test_workers_that_are_long_gone_are_forgotten_when_a_new_one_comes():
    now = timezone.now()
    WorkerBeat.objects.create(name="gone@a", seen_at=now - timedelta(days=2))
    WorkerBeat.objects.create(name="lost@a", seen_at=now - timedelta(hours=1))
    celery._note_beat("new@a", ["desk"])
    assert set(WorkerBeat.objects.values_list("name", flat=True)) == {"lost@a", "new@a"}


def test_a_beat_that_fails_is_logged_and_no_more(caplog):
    def fail(name: str) -> None:
        raise OperationalError("database is away")

    with caplog.at_level(logging.WARNING):
        celery._carefully(fail, "worker@a")
    assert caplog.messages == ["the worker's beat could not be written: database is away"]
