"""The life of an import in a worker: queued, running, then done, failed or stored.

The row is the truth, a message only wakes, and each step is one conditional statement: two workers, a lost
one or a late message bring no row into a wrong state.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded
from django.db import Error as DatabaseError
from django.db.models import F, QuerySet
from django.utils import timezone

from sizing import log_context
from sizing.measuring.importing.considering import Considered, consider
from sizing.measuring.importing.finding import finding, shown
from sizing.measuring.importing.given import ReadFile, read_file
from sizing.measuring.importing.storing import NotStorable, asked_of, store, stored_before
from sizing.models import BenchFile, BenchImport, history
from sizing.models.clock import read_shared_now, shared_now
from sizing.models.history import By
from sizing.models.locking import inventory_lock

log = logging.getLogger(__name__)

LEASE = timedelta(minutes=10)
"""A file of the most bytes is read in far less; an import without progress for so long lost its worker."""

MOST_ATTEMPTS = 3
KEPT = timedelta(days=7)
"""Imports that nobody stored are deleted after this."""

BROKE_OFF = "the reading broke off; the worker's log tells why"
TOO_LONG = "the time limit of a task ended it"

State = BenchImport.State


def run(pk: int) -> bool:
    """Read the files of a queued import. False: it was not this worker's to read."""
    taken = BenchImport.objects.filter(pk=pk, state=State.QUEUED).update(
        state=State.RUNNING, attempts=F("attempts") + 1, heartbeat_at=shared_now(), progress=0, error=""
    )
    if not taken:
        return False
    row = BenchImport.objects.select_related("variant", "profile").get(pk=pk)
    error = BROKE_OFF
    try:
        with log_context.telling(bench_import=pk, request_id=row.request_id):
            _take(row, consider_rows(row, _read(row)))
        error = ""
    except _Lost:
        log.warning("import %s is in other hands; this attempt of it ends", pk)
        error = ""
    except SoftTimeLimitExceeded:
        error = TOO_LONG
    finally:
        if error:
            with suppress(DatabaseError):
                _end(row, State.FAILED, error=error)
    return True


class _Lost(Exception):  # noqa: N818  it reads as what it says
    """Another worker has the import, or it was deleted."""


def consider_rows(row: BenchImport, files: Iterable[ReadFile]) -> Considered:
    """What the files of an import say, for the profile that it was given."""
    read, declared = tuple(files), row.preview.get("declared_at")
    return consider(
        read,
        asked_of(row.profile) if row.profile else None,
        force=row.force,
        leave_out=row.leave_out_broken,
        declared=datetime.fromisoformat(declared) if declared else None,
        noted=stored_before(read, row.variant, row.profile),
    )


def _read(row: BenchImport) -> Iterator[ReadFile]:
    """Each file read, with one in memory at a time."""
    found = list(BenchFile.objects.filter(bench_import=row).values_list("pk", "name", "size"))
    total, done = sum(size for _, _, size in found) or 1, 0
    for pk, name, size in found:
        yield read_file(name, BenchFile.objects.get(pk=pk).read())
        done += size
        if not _running(row).update(heartbeat_at=shared_now(), progress=min(99, 100 * done // total)):
            raise _Lost


def _take(row: BenchImport, considered: Considered) -> None:
    if considered.too_many:
        _end(row, State.FAILED, error=considered.too_many)
        return
    keep(row, considered)
    if row.store_when_right and row.variant and not considered.refused:
        try:
            with inventory_lock():
                stored = store(row.pk)
                history.write(By(f"bench import {row.pk}", row.requested_by), [history.added(stored)])
        except NotStorable as reason:
            log.warning("import %s is read but not stored: %s", row.pk, reason)


def keep(row: BenchImport, considered: Considered) -> None:
    """Keep what was found, for people to look at and to store; the row is done."""
    now = timezone.now()
    if not _end(
        row,
        State.DONE,
        progress=100,
        preview=shown(considered, now),
        finding=finding(considered, now) if row.variant_id else None,
    ):
        raise _Lost


def _running(row: BenchImport) -> QuerySet[BenchImport]:
    return BenchImport.objects.filter(pk=row.pk, attempts=row.attempts, state=State.RUNNING)


def _end(row: BenchImport, state: str, **fields: Any) -> bool:
    return bool(_running(row).update(state=state, finished_at=timezone.now(), **fields))


def sweep(now: datetime | None = None) -> int:
    """Heal imports whose worker is lost, and delete old ones that nobody stored; rows that changed."""
    now = now or read_shared_now()
    lost = BenchImport.objects.filter(state=State.RUNNING, heartbeat_at__lt=now - LEASE)
    failed = lost.filter(attempts__gte=MOST_ATTEMPTS).update(
        state=State.FAILED, finished_at=now, error=f"the worker was lost {MOST_ATTEMPTS} times"
    )
    requeued = lost.update(state=State.QUEUED, heartbeat_at=None)
    old = BenchImport.objects.filter(queued_at__lt=now - KEPT).exclude(
        state__in=(State.STORED, State.RUNNING)
    )
    deleted, _ = old.delete()
    return failed + requeued + deleted


def waiting() -> list[int]:
    """Queued imports, the oldest first: what a sweep wakes."""
    queued = BenchImport.objects.filter(state=State.QUEUED)
    return list(queued.order_by("queued_at", "pk").values_list("pk", flat=True))
