"""The desks that are harmed: a measurement of two levels, which takes some seconds, and a short lease."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tests.services import setups
from tests.services.servers import Postgres, Server
from tests.services.setups import SetUp

LEVELS = 2

SHORT = {
    "REFRESH_LEASE_S": "6",
    "WORKER_PROCESSES": "4",
    "BENCH_MOST_LEVELS": str(LEVELS),
    "BENCH_LEVEL_S": "10",
    "BENCH_BUDGET_S": "120",
    "BENCH_MAX_STREAMS": "2",
}


@contextmanager
def running(name: str) -> Iterator[SetUp]:
    """A set-up's servers, which no other run uses."""
    with setups.running(name, SHORT | {"SECRET_KEY": os.environ["SECRET_KEY"]}) as started:
        yield started


def server(of: SetUp, what: str) -> Server | None:
    """The `database` or the `broker` of a set-up, where that is a server."""
    for kind, found in of.servers.items():
        if issubclass(kind, Postgres) == (what == "database"):
            return found
    return None
