"""Reading many rows as of one moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper


@contextmanager
def consistent_reads() -> Iterator[None]:
    """Let all reads inside see one committed state, without keeping writers out."""
    wrapper: BaseDatabaseWrapper = connection
    if wrapper.in_atomic_block:
        yield
    elif wrapper.vendor == "sqlite":
        # A deferred transaction: Django's own would take the write lock (IMMEDIATE).
        with connection.cursor() as cursor:
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")
    else:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield
