"""Whether this web process can answer, and what of the desk does not work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from django.db import DatabaseError, InterfaceError
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from sizing import snapshot
from sizing.services.database import NOT_MIGRATED, unavailable
from sizing.services.watching import broker, disk, workers

OK = "ok"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: `ok`, or a word and a sentence for what is wrong.

    `needed`: while it is wrong, no request should be sent here.
    """

    name: str
    word: str = OK
    why: str = ""
    needed: bool = False


def checks() -> list[Check]:
    """Everything that can be wrong, what is needed first; without the database no more than that is known."""
    space = _disk()
    try:
        found = [Check("database"), _migrations()]
        if all(check.word == OK for check in found):
            found += [_snapshot(), *_workers()]
    except (DatabaseError, InterfaceError) as error:
        why = unavailable(error) or "the database refuses"
        word = "not migrated" if why == NOT_MIGRATED else "away"
        return [Check("database", word, why, needed=True), space]
    return [*found, space, _broker()]


def _migrations() -> Check:
    applied = set(MigrationRecorder.Migration.objects.values_list("app", "name"))
    missing = sorted(_on_disk() - applied)
    if not missing:
        return Check("migrations")
    first = ".".join(missing[0])
    why = f"{len(missing)} migrations are missing, first {first}; run `manage.py migrate`"
    return Check("migrations", "missing", why, needed=True)


@cache
def _on_disk() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)


def _snapshot() -> Check:
    """Reads the inventory where this process has not yet, so that no caller has to wait for that."""
    snapshot.current()
    return Check("snapshot")


def _workers() -> Iterable[Check]:
    for queue, number in workers.serving(workers.workers()).items():
        why = "" if number else f"no worker serves the queue {queue}"
        yield Check(f"worker {queue}", OK if number else "missing", why)


def _disk() -> Check:
    try:
        found = disk.look()
    except OSError:
        return Check("disk", "away", "DATA_DIR cannot be looked at", needed=True)
    if found.state == OK:
        return Check("disk")
    left = f"{found.free // 1024**2} MiB are free in DATA_DIR"
    return Check("disk", found.state, left, needed=found.state == "full")


def _broker() -> Check:
    if broker.look().up:
        return Check("broker")
    return Check("broker", "away", "the broker cannot be reached; what is asked for waits in its row")
