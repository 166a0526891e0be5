"""What the tests on real servers share: a desk on each set-up, its rows, and somebody who asks its API."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoDbBlocker

from sizing.services.tokens import create_token
from tests.faults.rows import rows_of
from tests.infra.desk import Desk
from tests.measuring.simulated import simulated_replica
from tests.services.client import Client
from tests.services.servers import NoServer
from tests.services.setups import SETUPS, SetUp, running

LEASE_S = 4
SHORT = {
    "DJANGO_SETTINGS_MODULE": "tests.faults.often",  # it asks each second what is due
    "REFRESH_LEASE_S": str(LEASE_S),
    "WORKER_PROCESSES": "5",
    "BENCH_MOST_LEVELS": "2",
    "BENCH_LEVEL_S": "10",
    "BENCH_BUDGET_S": "60",
    "BENCH_MAX_STREAMS": "2",
    "POOL_LABEL": "pool",  # which only the nodes of test_pools.py have
}

IMPATIENT = "-rabbit consumer_timeout 4000 -rabbit channel_tick_interval 1000"
"""For RabbitMQ: every measurement takes longer than it waits, as one of half an hour does by default."""


@pytest.fixture(scope="session", params=SETUPS)
def setup(request: pytest.FixtureRequest) -> Iterator[SetUp]:
    """The servers of a set-up, started once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", IMPATIENT)
        try:
            with running(request.param, SHORT) as started:
                yield started
        except NoServer as missing:
            pytest.skip(str(missing))


@pytest.fixture(scope="session")
def desk(setup: SetUp) -> Iterator[Desk]:
    started = Desk(setup.host("a"))
    yield started
    started.stop(signal.SIGKILL)  # all of it ends at once; how it ends in good order is another test's


@pytest.fixture
def rows(setup: SetUp, desk: Desk, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The models in this process read and write the rows of the desk."""
    with django_db_blocker.unblock(), rows_of(setup.host("a")):
        yield


@pytest.fixture
def client(desk: Desk, rows: None) -> Client:
    """An administrator with a token."""
    user, _ = User.objects.get_or_create(username="somebody", is_superuser=True, is_staff=True)
    return Client(desk.address, create_token(user.username, "tests"))


@pytest.fixture(scope="session")
def replica() -> Iterator[str]:
    """The URL of a replica that does all as it should."""
    with simulated_replica(t0=5, a=0.1, p=0.001) as url:
        yield url
