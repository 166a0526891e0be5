"""Servers that go away under a desk that works: people are told, and no measurement is lost or doubled."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from django.db import connection

from sizing.models import Measurement, Refresh
from tests.faults.rows import fresh, measurable, measured_once, nothing_runs, queued, wait_for
from tests.faults.rows import wait_until_measured_at as measured_at
from tests.infra.desk import Desk, environment_of, until
from tests.services.client import Client
from tests.services.conftest import LEASE_S
from tests.services.servers import NoServer, Postgres, Server
from tests.services.setups import SetUp

on_servers = pytest.mark.parametrize("setup", ["redis", "rabbitmq"], indirect=True)
WORKERS = ("--queues desk", "--queues measuring", "--quiet beat", "gunicorn")


def server(setup: SetUp, database: bool) -> Server:
    """The set-up's own; one that a variable named is not ours to end."""
    found = [server for kind, server in setup.servers.items() if issubclass(kind, Postgres) == database]
    if not found:
        pytest.skip("the server is not one that this run started")
    return found[0]


@contextmanager
def away(server: Server) -> Iterator[None]:
    server.kill()
    try:
        yield
    finally:
        server.start()


def status(desk: Desk, path: str, **headers: str) -> tuple[int, str]:
    request = Request(desk.address + path, headers=headers)
    try:
        with urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


@on_servers
def test_a_broker_that_goes_away_ends_no_worker_and_no_measurement(
    setup: SetUp, desk: Desk, client: Client, replica: str
) -> None:
    broker = server(setup, database=False)
    row = queued(replica, most_levels=1)
    measured_at(row)
    before = {word: desk.child(word).pid for word in WORKERS}
    asked, profile = measurable(replica)
    type(asked.model).objects.filter(pk=asked.model.pk).update(default_profile=profile)
    with away(broker):
        shown = client.post(f"models/{asked.model.name}/refresh", 202)
        assert status(desk, "healthz")[0] == 200
        wait_for(row, "done")  # its worker acknowledges the message to nobody
    measured_once(row, attempts=1)
    later = Refresh.objects.get(pk=shown["id"])
    wait_for(later, "done")
    assert (fresh(later).attempts, Measurement.objects.filter(refresh_id=later.pk).count()) == (1, 1)
    assert {word: desk.child(word).pid for word in WORKERS} == before
    nothing_runs(desk, replica)


@on_servers
def test_a_database_that_goes_away_is_a_503_and_no_measurement_is_lost_or_doubled(
    setup: SetUp, desk: Desk, client: Client, replica: str
) -> None:
    database = server(setup, database=True)
    row = queued(replica, most_levels=1)
    measured_at(row)
    before = {word: desk.child(word).pid for word in WORKERS}
    with away(database):
        code, body = status(desk, "api/v1/models", Authorization=f"Bearer {client.token}")
        assert (code, '"code":"unavailable"' in body.replace(" ", "")) == (503, True)
        code, body = status(desk, "admin/", Cookie=f"sessionid={'x' * 32}")
        assert (code, "The desk cannot do this now" in body) == (503, True)
        assert status(desk, "healthz")[0] == 503
        time.sleep(LEASE_S + 1)  # all signs of life are older than the lease then
    assert until(lambda: status(desk, "healthz")[0] == 200, 20)
    connection.close()  # ours was lost too
    wait_for(row, "done")
    measured_once(row, attempts=1)
    assert {word: desk.child(word).pid for word in WORKERS} == before
    nothing_runs(desk, replica)


def test_a_desk_that_starts_before_its_database_waits_for_it(tmp_path: Path) -> None:
    try:
        database = Postgres()
    except NoServer as missing:
        pytest.skip(str(missing))

    class Waiting(Desk):
        def start(self) -> None:
            self.told = False
            super().start()

        def wait_for(self, pattern: str) -> re.Match[str]:
            if not self.told:
                self.told = bool(super().wait_for("^waits for the database: "))
                database.start()
            return super().wait_for(pattern)

    with environment_of(tmp_path) as values:
        try:
            assert Waiting(values | {"DATABASE_URL": database.url}).stop() == 0
        finally:
            database.remove()
