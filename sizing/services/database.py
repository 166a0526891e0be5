"""What is wrong with the database or the disk, in words for people, whichever kind of database it is."""

from __future__ import annotations

import errno
import sqlite3

from django.db import DatabaseError, InterfaceError, OperationalError

AWAY = "the database cannot be reached; try again shortly"
BUSY = "other writes take too long, so nothing was changed; try again shortly"
NOT_MIGRATED = "the database has no tables yet; run `manage.py migrate`"
DATABASE_FULL = (
    "there is no space left where the database is, so nothing was changed; free some and try again"
)
DISK_FULL = "there is no space left on the desk's disk, so nothing was changed; free some and try again"

_UNDEFINED_TABLE = "42P01"  # PostgreSQL's code; SQLite has words alone
_PG_DISK_FULL = "53100"
_PG_BUSY = ("55P03", "40P01", "40001")  # no lock in time, a deadlock, writes that have no order
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def lacks_tables(error: BaseException | None) -> bool:
    """Whether a table was asked for that the database does not have."""
    if not isinstance(error, DatabaseError):
        return False
    code = getattr(error.__cause__, "sqlstate", None)
    return code == _UNDEFINED_TABLE or str(error).startswith("no such table")


def unavailable(error: BaseException | None) -> str | None:
    """Why the desk cannot do it now, where that is what the error says.

    The database is away, has no tables or is held by other writers for too long, or there is no space left
    for it or for the desk.
    """
    if lacks_tables(error):
        return NOT_MIGRATED
    if isinstance(error, OSError) and error.errno in _FULL_DISK:
        return DISK_FULL
    if isinstance(error, DatabaseError) and _full(error):
        return DATABASE_FULL
    if isinstance(error, DatabaseError) and _busy(error):
        return BUSY
    return AWAY if isinstance(error, OperationalError | InterfaceError) else None


def _full(error: DatabaseError) -> bool:
    cause = error.__cause__
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0)
        # That a write failed means as much: a quota and a limit of a file's size are told so.
        return code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE)
    return getattr(cause, "sqlstate", None) == _PG_DISK_FULL


def _busy(error: DatabaseError) -> bool:
    cause = error.__cause__
    if isinstance(cause, sqlite3.Error):
        # The lowest byte says what it is; SQLITE_BUSY_SNAPSHOT and the like say more.
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return getattr(cause, "sqlstate", None) in _PG_BUSY
