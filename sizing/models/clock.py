"""The clock that leases and signs of life go by: the database's, since the clocks of hosts differ.

SQLite has none of its own, and no second host.
"""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone


def shared_now() -> datetime | Now:
    """Now, for a statement that writes it: needs no query of its own."""
    return Now() if connection.vendor == "postgresql" else timezone.now()


def read_shared_now() -> datetime:
    """Now, to compare with. One query on PostgreSQL."""
    if connection.vendor != "postgresql":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now
