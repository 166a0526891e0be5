"""Processes of a desk are killed while it measures: every refresh is measured once all the same."""

from __future__ import annotations

import os
import signal
import time
from datetime import datetime, timedelta

import psutil
import pytest
from django.utils import timezone

from sizing.measuring import refreshes
from sizing.models import BenchLevel, Refresh
from tests.faults.conftest import LEASE_S
from tests.faults.rows import (
    fresh,
    generators,
    measured_once,
    nothing_runs,
    queued,
    untouched,
    wait_for,
    wait_until_measured_at,
    worker_back,
)
from tests.infra.desk import Desk, alive, until

pytestmark = pytest.mark.database


def in_a_level(desk: Desk, url: str, level: int = 1) -> tuple[Refresh, psutil.Process]:
    """A refresh of which this level, its last, is being measured, and its load generator."""
    row = queued(url, most_levels=level)
    wait_until_measured_at(row, level)
    (generator,) = generators(desk)
    return row, generator


def healed(row: Refresh, lost: datetime) -> None:
    """Taken up again at most three leases after there was a worker for it: the sweep looks twice."""
    wait_for(row, "done")
    measured_once(row, attempts=2)
    again = fresh(row).started_at
    assert again is not None
    print(f"taken up again {(again - lost).total_seconds():.1f} s after a worker was there")
    assert again - lost <= timedelta(seconds=3 * LEASE_S)


def test_a_process_that_measures_is_killed(desk: Desk, replica: str) -> None:
    row, generator = in_a_level(desk, replica, level=2)
    killed = timezone.now()
    generator.parent().kill()
    assert until(lambda: not alive(generator), 2)
    healed(row, killed)
    nothing_runs(desk, replica)


def test_processes_that_wait_for_work_are_killed(desk: Desk, replica: str) -> None:
    """As the machine does it that has no memory left: others take their place, and get work."""
    idle = [
        process for word in ("desk", "measuring") for process in desk.child(f"--queues {word}").children()
    ]
    assert len(idle) >= 2
    for process in idle:
        process.kill()
    row = queued(replica, most_levels=1)
    wait_for(row, "done")
    measured_once(row, attempts=1)


def test_the_measuring_worker_is_killed(desk: Desk, replica: str) -> None:
    row, generator = in_a_level(desk, replica)
    killed = timezone.now()
    desk.child("--queues measuring").kill()
    assert until(lambda: not alive(generator), 2)
    healed(row, worker_back(killed))
    nothing_runs(desk, replica)


def test_the_web_server_the_schedule_and_its_worker_are_killed(desk: Desk, replica: str) -> None:
    row, _ = in_a_level(desk, replica)
    desk.child("gunicorn").kill()
    os.killpg(desk.child("--queues desk").pid, signal.SIGKILL)
    desk.child("--quiet beat").kill()
    later = queued(replica, most_levels=1)
    wait_for(row, "done")
    measured_once(row, attempts=1)
    wait_for(later, "done")
    measured_once(later, attempts=1)
    assert until(lambda: desk.get("/healthz")[0] == 200)
    nothing_runs(desk, replica)


def test_a_refresh_that_was_to_be_cancelled_when_its_worker_was_lost_is_cancelled(
    desk: Desk, replica: str
) -> None:
    row, generator = in_a_level(desk, replica)
    os.kill(generator.parent().pid, signal.SIGSTOP)  # so that it does not see the wish
    refreshes.cancel(row.pk)
    generator.parent().kill()
    assert wait_for(row, "cancelled", "done").state == "cancelled"
    untouched(row)
    nothing_runs(desk, replica)


def test_a_worker_that_slept_beyond_its_lease_writes_nothing_when_it_wakes(desk: Desk, replica: str) -> None:
    row, generator = in_a_level(desk, replica)
    sleeper = generator.parent()
    sleeper.suspend()
    assert until(lambda: fresh(row).attempts == 2, 4 * LEASE_S)
    wait_until_measured_at(row)
    (other,) = [p.parent() for p in generators(desk) if p.parent() != sleeper]
    other.suspend()  # so that all that is written now is the sleeper's
    before = Refresh.objects.filter(pk=row.pk).values().get()
    sleeper.resume()
    assert until(lambda: not sleeper.children(), 2)
    time.sleep(0.5)
    assert Refresh.objects.filter(pk=row.pk).values().get() == before
    assert not BenchLevel.objects.filter(refresh=row).exists()
    other.resume()
    wait_for(row, "done")
    measured_once(row, attempts=2)
    nothing_runs(desk, replica)


def test_the_whole_desk_is_killed_and_started_again(desk: Desk, replica: str) -> None:
    row, _ = in_a_level(desk, replica)
    family = desk.family()
    killed = timezone.now()
    desk.process.kill()
    desk.process.wait()
    until(lambda: not any(map(alive, family)), 5)
    assert [process for process in family if alive(process)] == []
    desk.start()
    healed(row, worker_back(killed))
    nothing_runs(desk, replica)
