"""The row of the sync: who runs it, how it goes, and since when it fails.

Every write of a run names its attempt, so that one that was paused and has lost its lease writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from sizing.models import ClusterSync, Node
from sizing.models.clock import read_shared_now, shared_now
from sizing.models.fields import Source
from sizing.models.locking import inventory_lock
from sizing.syncing.failures import SyncFailure
from sizing.syncing.timing import IN_PRODUCTION

ROW = 1
STALE_AFTER = timedelta(minutes=10)
"""Nodes of a cluster that was not seen for so long take nothing new."""

MISSING_AFTER = timedelta(seconds=60)
"""A sync that nobody runs for so long has no worker; one is woken every 15 s."""

FOLLOWED = (
    "this desk follows its cluster live, so no list is imported: set KUBERNETES=off first,"
    " or only look at the list (--dry-run, in REST ?dry_run=1)"
)

State = ClusterSync.State


class Lost(Exception):  # noqa: N818  it reads as what it says
    """Another run has taken over; this one must not write."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The sync in the hands of one run. `failures` in a row are those of the runs before it."""

    attempt: int
    failures: int


def claim(lease_s: float) -> Claim | None:
    """Take the sync for this run; None where another one has it."""
    ClusterSync.objects.get_or_create(pk=ROW)
    now, lease = read_shared_now(), timedelta(seconds=lease_s)
    over = Q(lease_until__isnull=True) | Q(lease_until__lt=now)
    set_back = Q(lease_until__gt=now + 2 * lease)  # it was given before the clock was
    with transaction.atomic():
        free = ClusterSync.objects.filter(over | set_back, pk=ROW)
        if not free.update(attempt=F("attempt") + 1, lease_until=now + lease):
            return None
        row = ClusterSync.objects.only("attempt", "failures").get(pk=ROW)
        if not row.failures:
            ClusterSync.objects.filter(pk=ROW).update(state=State.LISTING)
    return Claim(row.attempt, row.failures)


def _ours(claim: Claim) -> QuerySet[ClusterSync]:
    return ClusterSync.objects.filter(pk=ROW, attempt=claim.attempt)


def write(claim: Claim, **fields: Any) -> None:
    """Write to the row. Raises :class:`Lost`."""
    if not _ours(claim).update(**fields):
        raise Lost


def guard(claim: Claim) -> None:
    """To be called inside a transaction, before what only the run that has the sync may write."""
    if not _ours(claim).exists():
        raise Lost


def beat(claim: Claim, lease_s: float, **fields: Any) -> None:
    """A sign of life, with what has changed."""
    write(claim, lease_until=shared_now() + timedelta(seconds=lease_s), **fields)


def failed(claim: Claim, failure: SyncFailure, failures: int) -> None:
    """It does not get on: the last failure in words, how many in a row, and since when."""
    now = timezone.now()
    write(
        claim,
        state=State.FAILING,
        failed_at=now,
        failures=failures,
        error=failure.words,
        error_in=failure.doing[:32],
    )
    _ours(claim).filter(failing_since__isnull=True).update(failing_since=now)


CLEAR: Mapping[str, Any] = {
    "state": State.WATCHING,
    "failing_since": None,
    "failed_at": None,
    "failures": 0,
    "error": "",
    "error_in": "",
}
"""What the row says once all works again."""


def release(claim: Claim) -> None:
    """The run ends in good order; the next may begin at once."""
    row = _ours(claim)
    row.update(lease_until=shared_now())
    row.exclude(state=State.FAILING).update(state=State.WAITING)


def requested_at(claim: Claim) -> datetime | None:
    """When somebody last asked for a fresh list. Raises :class:`Lost`."""
    found = _ours(claim).values_list("sync_requested_at", flat=True).first()
    if found is None:
        guard(claim)
    return found


def request_now() -> None:
    """Ask for a fresh list: a run that watches begins it within a second or two, else the next run does."""
    ClusterSync.objects.get_or_create(pk=ROW)
    ClusterSync.objects.filter(pk=ROW).update(sync_requested_at=timezone.now())


def mark_stale(now: datetime | None = None) -> int:
    """Mark the cluster's nodes once it was not seen for ten minutes; how many were not marked before.

    Nodes that were brought in otherwise meanwhile stay fresh for as long. The next list that is brought in
    frees them.
    """
    if not settings.KUBERNETES.on:
        return 0
    limit = (now or timezone.now()) - STALE_AFTER
    with inventory_lock():
        row = ClusterSync.objects.filter(pk=ROW).only("seen_at", "failing_since").first()
        seen = (row.seen_at or row.failing_since) if row is not None else None
        if seen is None or seen >= limit:
            return 0
        fresh = Q(source=Source.KUBERNETES, stale=False)
        return Node.objects.filter(fresh, Q(seen_at__isnull=True) | Q(seen_at__lt=limit)).update(stale=True)


def refusals() -> list[str]:
    """Why no list may be imported now, in words: the sync would undo what it brings."""
    return [FOLLOWED] if settings.KUBERNETES.on else []


@dataclass(frozen=True, slots=True)
class Look:
    """The sync as pages, REST and probes tell it.

    `state` is one of the row's, or `off` where no cluster is set, or `missing` where no worker runs it.
    """

    configured: bool
    state: str
    server: str = ""
    listed_at: datetime | None = None
    seen_at: datetime | None = None
    changed_at: datetime | None = None
    failing_since: datetime | None = None
    failed_at: datetime | None = None
    next_try_at: datetime | None = None
    requested_at: datetime | None = None
    failures: int = 0
    error: str = ""
    error_in: str = ""
    relists: int = 0
    events: int = 0
    nodes: int = 0
    pods: int = 0
    seen_age_s: float | None = None
    stale: bool = False

    @property
    def trouble(self) -> str:
        """What an operator has to see to: `stale`, `missing` or `failing`, the worst first; else empty."""
        if self.stale:
            return "stale"
        return self.state if self.state in ("missing", "failing") else ""


def look(now: datetime | None = None) -> Look:
    """How the sync goes. One query, none where no cluster is set."""
    now = now or timezone.now()
    if not settings.KUBERNETES.on:
        return Look(configured=False, state=State.OFF.value)
    row = ClusterSync.objects.defer("report", "changes", "pods_seen").filter(pk=ROW).first()
    if row is None:
        return Look(configured=True, state=State.WAITING.value)
    missing = row.lease_until is not None and row.lease_until < now - MISSING_AFTER
    pause = timedelta(seconds=IN_PRODUCTION.pause(row.failures))
    return Look(
        configured=True,
        state="missing" if missing else str(row.state),
        server=row.server,
        listed_at=row.listed_at,
        seen_at=row.seen_at,
        changed_at=row.changed_at,
        failing_since=row.failing_since,
        failed_at=row.failed_at,
        next_try_at=row.failed_at + pause if row.failed_at and row.failing_since else None,
        requested_at=row.sync_requested_at,
        failures=row.failures,
        error=row.error,
        error_in=row.error_in,
        relists=row.relists,
        events=row.events,
        nodes=row.nodes,
        pods=row.pods,
        seen_age_s=(now - row.seen_at).total_seconds() if row.seen_at else None,
        stale=row.seen_at is not None and row.seen_at < now - STALE_AFTER,
    )
