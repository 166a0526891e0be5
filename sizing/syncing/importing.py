"""The life of a brought list: queued, read, then imported or refused, in a worker where it is large.

The row is the truth, a message only wakes, and each step is one conditional statement: two workers, a lost
one or a late message bring no row into a wrong state.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded
from django.db import Error as DatabaseError
from django.db.models import F, QuerySet
from django.utils import timezone

from sizing.inventory.kubernetes.facts import Listing
from sizing.inventory.kubernetes.reading import read_listing
from sizing.inventory.yaml_reading import UnreadableError
from sizing.models import ClusterImport
from sizing.syncing import bringing
from sizing.syncing.told import changes_told, report_told, summary

log = logging.getLogger(__name__)

LEASE = timedelta(minutes=10)
"""The largest list is read in far less; an import without a sign of life for so long lost its worker."""

MOST_ATTEMPTS = 3
BODY_KEPT = timedelta(days=1)
"""A file that nobody imported is dropped after this."""

SIGN_OF_LIFE_EVERY_S = 1.0
BROKE_OFF = "it broke off; the desk's log tells why"
TOO_LONG = "the time limit of a task ended it"
CANCELLED = "cancelled; nothing was changed"
DROPPED = "it was not imported within a day, so its file is no longer kept; bring it again"

State = ClusterImport.State


class _Lost(Exception):  # noqa: N818  it reads as what it says
    """Another worker has the import, or it was deleted."""


class _Cancelled(Exception):  # noqa: N818  it reads as what it says
    """Somebody wants it no more."""


def read(pk: int) -> bool:
    """Read a queued list and say what it would change. False: it was not this worker's to read."""
    row = _taken(pk, ClusterImport.objects.filter(state=State.QUEUED), State.RUNNING)
    if row is None:
        return False
    with _ending(row):
        outcome = bringing.consider(_listing(row), partial=row.partial)
        kept = kept_of(outcome)
        if outcome.refusals:
            kept["message"] = "cannot be imported as it is"
        _end(row, State.READ, progress=100, **kept)
    return True


def bring(pk: int) -> bool:
    """Import a list that waits for it, by the inventory as it is now. False: it was not this worker's."""
    waiting = ClusterImport.objects.filter(state=State.IMPORTING, heartbeat_at__isnull=True)
    row = _taken(pk, waiting, State.IMPORTING)
    if row is None:
        return False
    with _ending(row):
        listing = _listing(row)
        _sign(row)
        try:
            outcome = bringing.bring(listing, partial=row.partial)
        except bringing.RefusedError as reason:
            # As it is now it is refused; the list itself is still good to be looked at and tried again.
            _end(row, State.READ, progress=100, error=str(reason))
            return True
        _end(row, State.DONE, progress=100, body=None, **kept_of(outcome))
    return True


def kept_of(outcome: bringing.Outcome) -> dict[str, Any]:
    """What the row of an import keeps of what it does."""
    changes = changes_told(outcome.changes)
    return {"report": report_told(outcome), "changes": changes, "message": summary(changes)}


def _taken(pk: int, among: QuerySet[ClusterImport], state: str) -> ClusterImport | None:
    taken = among.filter(pk=pk).update(
        state=state, attempts=F("attempts") + 1, heartbeat_at=timezone.now(), progress=0, error=""
    )
    return ClusterImport.objects.get(pk=pk) if taken else None


@contextmanager
def _ending(row: ClusterImport) -> Iterator[None]:
    """However the work ends, the row tells it."""
    error = BROKE_OFF
    try:
        yield
        error = ""
    except (UnreadableError, bringing.RefusedError) as reason:
        error = str(reason)
    except _Cancelled:
        error = CANCELLED
    except _Lost:
        log.warning("cluster import %s is in other hands; this attempt of it ends", row.pk)
        error = ""
    except SoftTimeLimitExceeded:
        error = TOO_LONG
    finally:
        if error:
            with suppress(DatabaseError):
                _end(row, State.FAILED, error=error, message="", body=None)


def _listing(row: ClusterImport) -> Listing:
    if row.body is None:
        raise bringing.RefusedError(DROPPED)
    return read_listing(zlib.decompress(bytes(row.body)), _progress(row))


def _progress(row: ClusterImport) -> Callable[[float], None]:
    """Tells the row how far the reading is, and ends it where nobody wants it any more."""
    told_at = 0.0

    def tell(share: float) -> None:
        nonlocal told_at
        now = time.monotonic()
        if now - told_at >= SIGN_OF_LIFE_EVERY_S:
            told_at = now
            _sign(row, progress=min(99, int(100 * share)))

    return tell


def _sign(row: ClusterImport, **fields: Any) -> None:
    """A sign of life; raises where the row is not this worker's any more, or was cancelled."""
    if not _own(row).filter(cancel_requested=False).update(heartbeat_at=timezone.now(), **fields):
        raise _Cancelled if _own(row).exists() else _Lost


def _own(row: ClusterImport) -> QuerySet[ClusterImport]:
    return ClusterImport.objects.filter(pk=row.pk, attempts=row.attempts, state=row.state)


def _end(row: ClusterImport, state: str, **fields: Any) -> None:
    _own(row).update(state=state, finished_at=timezone.now(), **fields)


def sweep(now: datetime | None = None) -> int:
    """Heal imports whose worker is lost, and drop files that nobody imported; rows that changed."""
    now = now or timezone.now()
    lost = ClusterImport.objects.filter(heartbeat_at__lt=now - LEASE)
    lost = lost.filter(state__in=(State.RUNNING, State.IMPORTING))
    changed = lost.filter(attempts__gte=MOST_ATTEMPTS).update(
        state=State.FAILED, finished_at=now, body=None, error=f"the worker was lost {MOST_ATTEMPTS} times"
    )
    changed += lost.filter(state=State.RUNNING).update(state=State.QUEUED, heartbeat_at=None)
    changed += lost.filter(state=State.IMPORTING).update(heartbeat_at=None)
    old = ClusterImport.objects.filter(queued_at__lt=now - BODY_KEPT, state__in=(State.QUEUED, State.READ))
    return changed + old.update(state=State.FAILED, finished_at=now, body=None, error=DROPPED)


def waiting() -> tuple[list[int], list[int]]:
    """Lists to be read and lists to be imported, the oldest first: what a sweep wakes."""
    rows = ClusterImport.objects.order_by("queued_at", "pk").values_list("pk", flat=True)
    return (
        list(rows.filter(state=State.QUEUED)),
        list(rows.filter(state=State.IMPORTING, heartbeat_at__isnull=True)),
    )
