"""The sync as ``manage.py up`` runs it: a worker of its own, which may be lost and is asked to end."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from sizing.models import ClusterSync, Node
from tests.faults.rows import rows_of
from tests.infra.desk import Desk, environment_of, until
from tests.syncing.api_server import ApiServer
from tests.syncing.conftest import write_kubeconfig
from tests.syncing.made import node

pytestmark = pytest.mark.database


@pytest.fixture
def desk(api: ApiServer, tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[Desk]:
    """A desk that follows `api`; its rows are those that the test sees."""
    write_kubeconfig(tmp_path / "kubeconfig", api.address)
    with environment_of(tmp_path / "data") as values:
        values |= {"KUBERNETES": "kubeconfig", "KUBECONFIG": str(tmp_path / "kubeconfig")}
        values |= {"DJANGO_SETTINGS_MODULE": "tests.syncing.often"}
        running = Desk(values)
        try:
            with django_db_blocker.unblock(), rows_of(values):
                yield running
        finally:
            if running.process.poll() is None:
                running.stop(signal.SIGTERM)


def row() -> ClusterSync:
    return ClusterSync.objects.get_or_create(pk=1)[0]


def test_the_sync_survives_the_loss_of_its_worker_and_ends_when_it_is_asked_to(
    api: ApiServer, desk: Desk
) -> None:
    api.put("nodes", node("n1"))
    assert until(lambda: Node.objects.filter(name="n1").exists(), 60)
    assert until(lambda: row().state == "watching")
    assert until(lambda: '"cluster":"ok"' in re.sub(r"\s", "", desk.get("/healthz")[1]))

    desk.child("sync-").kill()
    desk.wait_for(r"^cluster sync ended with signal 9; it starts again in 1 s$")
    ClusterSync.objects.update(lease_until=None)  # as it is when the time is over
    api.put("nodes", node("n2"))
    assert until(lambda: Node.objects.filter(name="n2").exists(), 60)
    assert row().attempt == 2

    assert until(lambda: row().state == "watching")
    began = time.monotonic()
    assert desk.stop(signal.SIGTERM) == 0
    assert row().state == "waiting", f"the run was cut off after {time.monotonic() - began:.1f} s"
