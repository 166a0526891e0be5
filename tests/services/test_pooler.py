"""A desk with PgBouncer before its PostgreSQL, which gives each transaction whatever connection is free."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.urls import reverse
from pytest_django import DjangoDbBlocker

from sizing.services.tokens import create_token
from tests.faults.rows import measured_once, queued, rows_of, wait_for
from tests.infra.desk import Desk, environment_of
from tests.services.conftest import SHORT
from tests.services.currency import figures, watch
from tests.services.servers import NoServer, Postgres, Server
from tests.services.test_current import signed_in

CONNECTIONS = 3
"""Of the pooler to the server: fewer than a desk has threads."""


class PgBouncer(Server):
    """The pooler, by transaction, in front of one server."""

    def __init__(self, server: str) -> None:
        program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
        if program is None:
            raise NoServer("there is no pgbouncer here (Debian: apt-get install pgbouncer)")
        super().__init__()
        self._program = program
        behind = urlsplit(server)
        self._database = behind.path[1:]
        self._file = self.folder / "pgbouncer.ini"
        users = self.folder / "users"
        users.write_text('"postgres" ""\n')
        self._file.write_text(
            f"""[databases]
* = host=127.0.0.1 port={behind.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = transaction
default_pool_size = {CONNECTIONS}
max_client_conn = 200
"""
        )
        if os.geteuid() == 0:
            self.user = "nobody"  # it refuses to run as root

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{self._database}"

    def command(self) -> list[str]:
        return [self._program, str(self._file)]

    def answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        self._end(signal.SIGINT)


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, str], str]]:
    """The environment of a desk behind a pooler, and the URL of its database without one."""
    folder = tmp_path_factory.mktemp("pooled")
    try:
        with Postgres() as server, environment_of(folder, server.url) as values:
            direct = values["DATABASE_URL"]
            with PgBouncer(direct) as pooler:
                yield {**values, **SHORT, "DATABASE_URL": pooler.url, "DATABASE_POOLER": "on"}, direct
    except NoServer as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def desk(pooled: tuple[dict[str, str], str]) -> Iterator[Desk]:
    """Its migrations went through the pooler too."""
    started = Desk(pooled[0])
    yield started
    started.stop(signal.SIGKILL)


def backends(database: str) -> int:
    """How many connections the server has for this database, without the one that asks."""
    with psycopg.connect(database) as asking:
        row = asking.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchone()
    assert row is not None
    return int(row[0])


def export(address: str, cookie: str) -> int:
    """Nodes in a table that is read from the database in pieces."""
    asking = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    asking.request("GET", reverse("admin:sizing_node_csv"), headers={"Cookie": cookie})
    answer = asking.getresponse()
    lines = answer.read().decode().splitlines()
    assert answer.status == 200, lines[:5]
    return len(lines) - 1


def test_a_desk_works_through_a_pooler_by_transaction(
    desk: Desk,
    pooled: tuple[dict[str, str], str],
    django_db_blocker: DjangoDbBlocker,
    replica: str,
) -> None:
    environment, direct = pooled
    with django_db_blocker.unblock(), rows_of(environment | {"DATABASE_URL": direct}):
        user = User.objects.create(username="somebody", is_superuser=True, is_staff=True)
        token = create_token(user.username, "tests")
        cookie = f"sessionid={signed_in(desk.address, 'reader')['sessionid']}"
        row = queued(replica, most_levels=1)
        headers = {"Authorization": f"Bearer {token}", "Cookie": cookie}
        with ThreadPoolExecutor(4) as threads:
            exports = [threads.submit(export, desk.address, cookie) for _ in range(20)]
            seen = watch([desk.address], headers, direct, *figures(), seconds=4)
        assert [one.result() for one in exports] == [1] * 20
        assert (seen.failed, seen.stale) == ([], [])
        assert len(seen.values) > 5
        wait_for(row, "done")
        measured_once(row, attempts=1)
        connection.close()
        assert 0 < backends(direct) <= CONNECTIONS
