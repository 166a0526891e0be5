"""What is wrong with the database, in words for people, whichever kind of database it is."""

from __future__ import annotations

from django.db import DatabaseError, InterfaceError, OperationalError

AWAY = "the database cannot be reached; try again shortly"
NOT_MIGRATED = "the database has no tables yet; run `manage.py migrate`"

_UNDEFINED_TABLE = "42P01"  # PostgreSQL's code; SQLite has words alone


def lacks_tables(error: BaseException | None) -> bool:
    """Whether a table was asked for that the database does not have."""
    if not isinstance(error, DatabaseError):
        return False
    code = getattr(error.__cause__, "sqlstate", None)
    return code == _UNDEFINED_TABLE or str(error).startswith("no such table")


def unavailable(error: BaseException | None) -> str | None:
    """Why the database is of no use, where that is what the error says: it is away, or has no tables."""
    if lacks_tables(error):
        return NOT_MIGRATED
    return AWAY if isinstance(error, OperationalError | InterfaceError) else None
