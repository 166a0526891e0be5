"""The three set-ups of a desk: files and SQLite; Redis and PostgreSQL; RabbitMQ and PostgreSQL."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.infra.desk import environment_of
from tests.services.servers import Postgres, RabbitMq, Redis, Server

SETUPS = ("files", "redis", "rabbitmq")

GIVEN = {Postgres: "DATABASE_URL", Redis: "TEST_REDIS_URL", RabbitMq: "TEST_RABBITMQ_URL"}
"""Where a variable names a server that runs, no other is started."""


@dataclass(frozen=True)
class SetUp:
    """What the desks of a set-up share, and the servers that were started for it."""

    name: str
    folder: Path
    shared: Mapping[str, str]
    servers: Mapping[type[Server], Server] = field(default_factory=dict)

    def host(self, name: str) -> dict[str, str]:
        """The environment of a desk on a host of its own: with a data folder that no other host has."""
        return {**self.shared, "DATA_DIR": str(self.folder / name)}


@contextmanager
def running(name: str, more: Mapping[str, str] | None = None) -> Iterator[SetUp]:
    """The servers of a set-up and an empty database; all ends with the block.

    more: environment of all desks. NoServer where a program is not on this machine.
    """
    kinds: tuple[type[Server], ...] = {
        "files": (),
        "redis": (Postgres, Redis),
        "rabbitmq": (Postgres, RabbitMq),
    }[name]
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="desk-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        servers: dict[type[Server], Server] = {}
        urls = {kind: os.environ.get(GIVEN[kind], "") for kind in kinds}
        for kind in kinds:
            if not urls[kind]:
                servers[kind] = stack.enter_context(kind())
                urls[kind] = servers[kind].url
        database = urls.get(Postgres, "")
        shared = stack.enter_context(environment_of(folder, database))
        shared["SECRET_KEY"] = secrets.token_urlsafe(64)  # hosts that share it share sessions
        for kind in urls.keys() - {Postgres}:
            shared["CELERY_BROKER_URL"] = urls[kind]
        if Redis in urls:
            shared["CACHE_URL"] = urls[Redis]
        yield SetUp(name, folder, shared | dict(more or {}), servers)
