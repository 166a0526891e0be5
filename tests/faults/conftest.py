"""What the tests of faults share: one desk of real processes, its rows, and simulated replicas."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from tests.faults.racing import together
from tests.faults.rows import rows_of
from tests.infra.desk import Desk, environment_of
from tests.measuring.simulated import simulated_replica

LEASE_S = 4


@pytest.fixture(scope="package")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A desk's own data, and a short lease."""
    folder: Path = tmp_path_factory.mktemp("desk")
    with environment_of(folder) as values:
        yield values | {"REFRESH_LEASE_S": str(LEASE_S), "WORKER_PROCESSES": "4"}


@pytest.fixture(scope="package")
def shared_desk(environment: dict[str, str]) -> Iterator[Desk]:
    desk = Desk(environment)
    yield desk
    desk.stop(signal.SIGTERM)


@pytest.fixture
def desk(shared_desk: Desk, rows: None) -> Desk:
    """A desk that runs; the rows that a test sees are its own."""
    if shared_desk.process.poll() is not None:  # a test that failed ended it
        shared_desk.start()
    return shared_desk


@pytest.fixture
def rows(environment: dict[str, str], django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock(), rows_of(environment):
        yield


@pytest.fixture
def quiet_database(tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[dict[str, str]]:
    """The environment of a desk that has its tables, and of which nothing runs."""
    with environment_of(tmp_path / "data") as values:
        together(1, values, "migrate")
        with django_db_blocker.unblock(), rows_of(values):
            yield values


@pytest.fixture
def replica() -> Iterator[str]:
    """The URL of a replica that does all as it should."""
    with simulated_replica(t0=5, a=0.1, p=0.001) as url:
        yield url
