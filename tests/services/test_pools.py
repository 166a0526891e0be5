"""Replicas in a pool are measured by a worker near them, on each set-up that a desk may have."""

from __future__ import annotations

from pathlib import Path

from sizing.models import WorkerBeat
from tests import builders
from tests.faults.rows import described, fresh, measured_once, queued, wait_for
from tests.faults.test_schedules import celery
from tests.infra.desk import until
from tests.services.setups import SetUp

QUEUE = "measuring.far-away"


def test_a_refresh_waits_for_a_worker_of_its_pool_and_is_measured_there(
    setup: SetUp, rows: None, replica: str, tmp_path: Path
) -> None:
    node = builders.node("far", gpus=1, labels={"pool": "far-away"})
    row = queued(replica, node, most_levels=1)
    waits = f"waits: no worker of the pool far-away (queue {QUEUE}) gives a sign of life"
    assert until(lambda: fresh(row).message == waits, 20), described(row)
    with celery(setup.host("a"), tmp_path / "near.log", f"worker --pool solo --queues {QUEUE}"):
        assert until(lambda: any(QUEUE in beat.queues for beat in WorkerBeat.objects.all()), 30)
        wait_for(row, "done")
    measured_once(row, attempts=1)
