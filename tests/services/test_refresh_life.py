"""The whole life of refreshes, in real processes, on each set-up that a desk may have."""

from __future__ import annotations

import socket
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from sizing.models import BenchProfile, Measurement, Refresh, RefreshPlan, ServedModel, WorkerBeat
from tests.faults.rows import (
    LAST,
    fresh,
    measurable,
    measured_once,
    nothing_runs,
    queued,
    untouched,
    wait_for,
    wait_until_measured_at,
    worker_back,
)
from tests.faults.test_schedules import celery
from tests.infra.desk import Desk, until
from tests.measuring.simulated import simulated_replica
from tests.services.client import Client
from tests.services.setups import SetUp


def test_refreshes_are_asked_for_measured_cancelled_and_fail(
    desk: Desk, client: Client, replica: str
) -> None:
    """By the API, by the schedule, and by rows that the sweep finds: all at the same time."""
    worker = desk.child("--queues measuring")
    with simulated_replica(t0=5, a=0.1, p=0.001, faults=["die_after=1"]) as bad:
        cancelled = queued(replica, most_levels=12)
        planned, profile = measurable(replica)
        BenchProfile.objects.filter(pk=profile.pk).update(refresh_every_h=10)
        RefreshPlan.objects.create(
            variant=planned, profile=profile, next_refresh_at=timezone.now() - timedelta(minutes=1)
        )
        asked, profile = measurable(replica)
        ServedModel.objects.filter(pk=asked.model_id).update(default_profile=profile)
        shown = client.post(f"models/{asked.model.name}/refresh", 202)
        seen = [shown]

        def over() -> bool:
            seen.append(client.get(f"refreshes/{shown['id']}"))
            return seen[-1]["state"] not in ("queued", "running")

        wait_until_measured_at(cancelled)
        client.post(f"refreshes/{cancelled.pk}/cancel", 200)
        assert until(lambda: fresh(cancelled).state == "cancelled", 5)
        untouched(cancelled)

        assert until(over, 60)
        *before, first, last = list(dict.fromkeys(answer["state"] for answer in seen))
        assert (first, last) == ("running", "done")
        assert before in ([], ["queued"])  # a worker may be faster than the answer
        progress = [answer["progress"] for answer in seen]
        assert progress == sorted(progress)
        assert (progress[0], progress[-1]) == (0, 100)
        assert any(0 < percent < 100 for percent in progress)
        assert any(answer["live"] and answer["live"]["sent"] > 0 for answer in seen)
        assert seen[-1]["measurement"] is not None
        assert seen[-1]["trigger"] == "api"
        answer = client.get(f"models/{asked.model.name}/target?tokens_per_sec=1")
        assert answer["per_replica_tok_per_sec"] > LAST

        row = Refresh.objects.get(variant=planned)
        wait_for(row, "done")
        assert fresh(row).trigger == "schedule"
        assert Measurement.objects.filter(variant=planned).count() == 2
        upcoming = RefreshPlan.objects.get(variant=planned).next_refresh_at
        assert upcoming is not None
        assert upcoming > timezone.now()

        failing = queued(bad)
        wait_for(failing, "failed")
        assert "closes the connection without an answer" in fresh(failing).error
        untouched(failing)
        nothing_runs(desk, replica)
        assert desk.child("--queues measuring") == worker


@pytest.mark.parametrize("setup", ["redis", "rabbitmq"], indirect=True)  # on files: tests/faults
def test_a_refresh_whose_worker_is_lost_is_measured_by_the_next(desk: Desk, rows: None, replica: str) -> None:
    row = queued(replica, most_levels=1)
    wait_until_measured_at(row)
    lost = timezone.now()
    desk.child("--queues measuring").kill()
    worker_back(lost)
    wait_for(row, "done")
    measured_once(row, attempts=2)
    nothing_runs(desk, replica)


@pytest.mark.parametrize("setup", ["rabbitmq"], indirect=True)
def test_two_workers_that_are_started_alike_on_hosts_of_one_name_are_two(
    setup: SetUp, rows: None, tmp_path: Path
) -> None:
    environment = setup.host("other")
    worker = "worker --pool solo --queues"

    def queues() -> list[list[str]]:
        alike = WorkerBeat.objects.filter(
            name__startswith="celery-", name__endswith=f"@{socket.gethostname()}"
        )
        return sorted(alike.values_list("queues", flat=True))

    with (
        celery(environment, tmp_path / "first.log", f"{worker} sync"),
        celery(environment, tmp_path / "second.log", f"{worker} sync,measuring"),
    ):
        assert until(lambda: queues() == [["measuring", "sync"], ["sync"]], 30), queues()
    assert queues() == []
