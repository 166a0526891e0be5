"""The life of a brought list: queued, read, then imported or refused, in a worker where it is large.

The row is the truth, a message only wakes, and each step is one conditional statement: two workers, a lost
one or a late message bring no row into a wrong state.
"""

from __future__ import annotations

import logging
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded
from django.db import Error as DatabaseError
from django.db import connection
from django.db.models import F, QuerySet
from django.utils import timezone

from sizing import log_context
from sizing.inventory.kubernetes.facts import Listing
from sizing.inventory.kubernetes.reading import read_listing
from sizing.inventory.yaml_reading import UnreadableError
from sizing.models import ClusterImport, history
from sizing.models.clock import read_shared_now, shared_now
from sizing.models.history import By
from sizing.syncing import bringing, state
from sizing.syncing.told import changes_told, goes_beyond, report_told, summary

log = logging.getLogger(__name__)

LEASE = timedelta(minutes=1)
"""An import without a sign of life for so long lost its worker."""

BEAT_EVERY_S = 15.0
"""While a list is at work its worker gives a sign of life so often."""

MOST_ATTEMPTS = 3
GIVEN_UP = f"its worker was lost, and after {MOST_ATTEMPTS} attempts it is given up"
BODY_KEPT = timedelta(days=1)
"""A file that nobody imported is dropped after this."""

SIGN_OF_LIFE_EVERY_S = 1.0
BROKE_OFF = "it broke off; the desk's log tells why"
TOO_LONG = "the time limit of a task ended it"
CANCELLED = "cancelled; nothing was changed"
OTHERWISE = (
    "the inventory changed meanwhile, and the import would do something else now, which is shown below;"
    " nothing was changed"
)
LOST = "its worker was lost before the end of the import; nothing was changed"
DROPPED = "it was not imported within a day, so its file is no longer kept; bring it again"

State = ClusterImport.State


class _Lost(Exception):  # noqa: N818  it reads as what it says
    """The import is not this worker's any more: taken back, given to another one, or deleted."""


class _Otherwise(Exception):  # noqa: N818  it reads as what it says
    """The import would do what nobody has seen; `kept` is what its row is to keep of it."""

    def __init__(self, kept: dict[str, Any]) -> None:
        super().__init__(OTHERWISE)
        self.kept = kept


class _Cancelled(Exception):  # noqa: N818  it reads as what it says
    """Somebody wants it no more."""


def read(pk: int) -> bool:
    """Read a queued list and say what it would change. False: it was not this worker's to read."""
    row = _taken(pk, ClusterImport.objects.filter(state=State.QUEUED), State.RUNNING)
    if row is None:
        return False
    with _ending(row), _alive(row):
        outcome = bringing.consider(_listing(row), partial=row.partial)
        kept = kept_of(outcome)
        if outcome.refusals:
            kept["message"] = "cannot be imported as it is"
        _end(row, State.READ, progress=100, **kept)
    return True


def bring(pk: int) -> bool:
    """Import a list that waits for it, by the inventory as it is now. False: it was not this worker's.

    Where it would do more than was looked at, the row tells that, and nothing is changed.

    The row says that it is imported in the transaction of the import itself: neither stands without the
    other, and a list that was taken back meanwhile changes nothing.
    """
    waiting = ClusterImport.objects.filter(state=State.IMPORTING, heartbeat_at__isnull=True)
    row = _taken(pk, waiting, State.IMPORTING)
    if row is None:
        return False

    def done(outcome: bringing.Outcome) -> None:
        kept = kept_of(outcome)
        if goes_beyond(kept["changes"], row.changes):
            raise _Otherwise(kept)
        if not _end(row, State.DONE, progress=100, body=None, **kept):
            raise _Lost
        history.write(By(f"import {row.pk}", row.requested_by), outcome.events)

    with _ending(row), _alive(row):
        listing = _listing(row)
        _sign(row)
        try:
            _check_not_followed()
            bringing.bring(listing, partial=row.partial, after=done)
        except bringing.RefusedError as reason:
            # As it is now it is refused; the list itself is still good to be looked at and tried again.
            _end(row, State.READ, progress=100, error=str(reason))
        except _Otherwise as otherwise:
            _end(row, State.READ, progress=100, error=OTHERWISE, **otherwise.kept)
    return True


def _check_not_followed() -> None:
    """It may have begun while the list waited for a worker."""
    for refusal in state.refusals():
        raise bringing.RefusedError(f"{refusal}; nothing was changed")


def take_back(pk: int) -> bool:
    """Bring an import that waits or is at work back to what is read; nothing of it is written then.

    False: it is not being imported.
    """
    return bool(_given_back(ClusterImport.objects.filter(pk=pk), CANCELLED, timezone.now()))


def _given_back(rows: QuerySet[ClusterImport], why: str, now: datetime) -> int:
    """Read, not imported: whether it is still to be is for people to say, for the cluster moves on."""
    return rows.filter(state=State.IMPORTING).update(
        state=State.READ, heartbeat_at=None, finished_at=now, progress=100, error=why
    )


def kept_of(outcome: bringing.Outcome) -> dict[str, Any]:
    """What the row of an import keeps of what it does."""
    changes = changes_told(outcome.changes)
    return {"report": report_told(outcome), "changes": changes, "message": summary(changes)}


def _taken(pk: int, among: QuerySet[ClusterImport], state: str) -> ClusterImport | None:
    taken = among.filter(pk=pk).update(
        state=state, attempts=F("attempts") + 1, heartbeat_at=shared_now(), progress=0, error=""
    )
    return ClusterImport.objects.get(pk=pk) if taken else None


@contextmanager
def _ending(row: ClusterImport) -> Iterator[None]:
    """However the work ends, the row tells it."""
    error = BROKE_OFF
    try:
        with log_context.telling(cluster_import=row.pk, request_id=row.request_id):
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


@contextmanager
def _alive(row: ClusterImport) -> Iterator[None]:
    """Signs of life from a thread, for what counts and compares a large list gives none."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(BEAT_EVERY_S):
            with suppress(DatabaseError):  # SQLite lets nobody write beside the import itself
                _own(row).update(heartbeat_at=shared_now())
            connection.close()

    thread = threading.Thread(target=beat, name=f"life of {row}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


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
    if not _own(row).filter(cancel_requested=False).update(heartbeat_at=shared_now(), **fields):
        raise _Cancelled if _own(row).exists() else _Lost


def _own(row: ClusterImport) -> QuerySet[ClusterImport]:
    return ClusterImport.objects.filter(pk=row.pk, attempts=row.attempts, state=row.state)


def _end(row: ClusterImport, state: str, **fields: Any) -> bool:
    """False: the row is not this worker's any more."""
    return bool(_own(row).update(state=state, finished_at=timezone.now(), **fields))


def sweep(now: datetime | None = None) -> int:
    """Heal imports whose worker is lost, and drop files that nobody imported; rows that changed.

    A list is read again, but never imported again by itself: by then a newer one may be imported.
    """
    now = now or read_shared_now()
    lost = ClusterImport.objects.filter(heartbeat_at__lt=now - LEASE)
    unread = lost.filter(state=State.RUNNING)
    changed = unread.filter(attempts__gte=MOST_ATTEMPTS).update(
        state=State.FAILED, finished_at=now, body=None, error=GIVEN_UP
    )
    changed += unread.update(state=State.QUEUED, heartbeat_at=None)
    changed += _given_back(lost, LOST, now)
    old = ClusterImport.objects.filter(queued_at__lt=now - BODY_KEPT, state__in=(State.QUEUED, State.READ))
    return changed + old.update(state=State.FAILED, finished_at=now, body=None, error=DROPPED)


def waiting() -> tuple[list[int], list[int]]:
    """Lists to be read and lists to be imported, the oldest first: what a sweep wakes."""
    rows = ClusterImport.objects.order_by("queued_at", "pk").values_list("pk", flat=True)
    return (
        list(rows.filter(state=State.QUEUED)),
        list(rows.filter(state=State.IMPORTING, heartbeat_at__isnull=True)),
    )
