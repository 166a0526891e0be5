"""One writer at a time, from what it reads to what it writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from sizing.models.triggers import ADVISORY_LOCK

LONGEST_WAIT_S = 20
"""So long a writer waits for the others, on either kind of database; then it fails with nothing changed."""


@contextmanager
def inventory_lock() -> Iterator[None]:
    """A transaction that no other inventory write interleaves with.

    SQLite's transactions begin with its one write lock; PostgreSQL takes the lock that the change
    log's triggers take, before anything is read, so that writers queue instead of deadlocking. Who waits
    longer than `LONGEST_WAIT_S` for its turn, or for a row within it, gets an OperationalError.
    """
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT set_config('lock_timeout', %s, true), pg_advisory_xact_lock(%s)",
                    [f"{LONGEST_WAIT_S}s", ADVISORY_LOCK],
                )
        yield
