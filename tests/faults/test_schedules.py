"""The schedule runs twice: what is due is asked for once all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from sizing.models import BenchProfile, Refresh, RefreshPlan
from sizing.supervisor import end_with
from tests.faults.rows import queued
from tests.infra.desk import until

pytestmark = pytest.mark.database

PLANS = 30


@contextmanager
def celery(environment: dict[str, str], log: Path, options: str) -> Iterator[subprocess.Popen]:
    command = [sys.executable, "-m", "celery", "--app", "llmgw_admin", "--quiet", *options.split()]
    values = environment | {"DJANGO_SETTINGS_MODULE": "tests.faults.often"}
    with log.open("w") as file:
        process = subprocess.Popen(
            command,
            cwd=settings.BASE_DIR,
            env=values,
            stdout=file,
            stderr=subprocess.STDOUT,
            preexec_fn=end_with(os.getpid()),
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def test_two_schedules_at_once_ask_for_each_plan_once(quiet_database: dict[str, str], tmp_path: Path) -> None:
    rows = [queued("http://127.0.0.1:9/v1") for _ in range(PLANS)]
    Refresh.objects.all().delete()
    BenchProfile.objects.update(refresh_every_h=10)
    later = timezone.now() + timedelta(hours=9)
    RefreshPlan.objects.bulk_create(
        RefreshPlan(variant=row.variant, profile=row.profile, next_refresh_at=later) for row in rows
    )
    logs = [tmp_path / "first.log", tmp_path / "second.log"]

    def asked() -> list[int]:
        return [log.read_text().count("Sending due task request due refreshes") for log in logs]

    worker = "worker --queues desk --concurrency 2 --without-gossip --without-mingle --without-heartbeat"
    with (
        celery(quiet_database, logs[0], "beat --loglevel INFO") as first,
        celery(quiet_database, logs[1], "beat --loglevel INFO") as second,
        celery(quiet_database, tmp_path / "worker.log", worker),
    ):
        assert until(lambda: min(asked()) >= 2)
        assert not Refresh.objects.exists()
        past = timezone.now() - timedelta(minutes=1)
        RefreshPlan.objects.update(next_refresh_at=past)
        before = asked()
        assert until(lambda: all(now >= then + 3 for now, then in zip(asked(), before, strict=True)))
        assert until(lambda: Refresh.objects.count() >= PLANS)
        assert [first.poll(), second.poll()] == [None, None]
    made = Refresh.objects.values_list("variant", "profile", "state", "trigger")
    assert sorted(made) == sorted((row.variant_id, row.profile_id, "queued", "schedule") for row in rows)
