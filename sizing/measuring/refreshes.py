"""The life of a refresh: queued, running, then done, failed or cancelled.

The row is the truth, a message only wakes. Every step is one conditional statement, so that two
workers, a lost worker or a late message cannot bring a row into a wrong state.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F
from django.utils import timezone

from sizing.models import Refresh

LEASE = timedelta(seconds=60)
"""A running refresh without a heartbeat for this long has lost its worker."""

MOST_ATTEMPTS = 3

State = Refresh.State


def claim(pk: int) -> bool:
    """Take a queued refresh for this worker; False where somebody else has it or it is over."""
    now = timezone.now()
    return bool(
        Refresh.objects.filter(pk=pk, state=State.QUEUED, cancel_requested=False).update(
            state=State.RUNNING,
            attempts=F("attempts") + 1,
            started_at=now,
            heartbeat_at=now,
            progress=0,
            message="",
            error="",
        )
    )


def heartbeat(pk: int, progress: int, message: str = "") -> bool:
    """Record progress (percent) and life at once; False where the work must stop: cancelled or lost."""
    return bool(
        Refresh.objects.filter(pk=pk, state=State.RUNNING, cancel_requested=False).update(
            heartbeat_at=timezone.now(), progress=progress, message=message[:255]
        )
    )


def finish(pk: int) -> bool:
    """Running to done."""
    return bool(
        Refresh.objects.filter(pk=pk, state=State.RUNNING, cancel_requested=False).update(
            state=State.DONE, progress=100, finished_at=timezone.now()
        )
    )


def fail(pk: int, error: str) -> bool:
    """Running to failed, with the reason in one line."""
    return bool(
        Refresh.objects.filter(pk=pk, state=State.RUNNING).update(
            state=State.FAILED, error=error, finished_at=timezone.now()
        )
    )


def cancel(pk: int) -> bool:
    """Ask for the end: a queued refresh ends at once, a running one at its next heartbeat.

    False where it is over already.
    """
    now = timezone.now()
    if Refresh.objects.filter(pk=pk, state=State.QUEUED).update(
        state=State.CANCELLED, cancel_requested=True, finished_at=now
    ):
        return True
    return bool(Refresh.objects.filter(pk=pk, state=State.RUNNING).update(cancel_requested=True))


def stopped(pk: int) -> bool:
    """Running to cancelled, by the worker that saw the wish."""
    return bool(
        Refresh.objects.filter(pk=pk, state=State.RUNNING, cancel_requested=True).update(
            state=State.CANCELLED, finished_at=timezone.now()
        )
    )


def sweep(now: datetime | None = None) -> int:
    """Heal refreshes whose worker is lost; the number of rows that changed.

    Cancelled ones end, those with attempts left are queued again, the others fail.
    """
    now = now or timezone.now()
    lost = Refresh.objects.filter(state=State.RUNNING, heartbeat_at__lt=now - LEASE)
    ended = lost.filter(cancel_requested=True).update(state=State.CANCELLED, finished_at=now)
    failed = lost.filter(attempts__gte=MOST_ATTEMPTS).update(
        state=State.FAILED,
        finished_at=now,
        error=f"the worker was lost {MOST_ATTEMPTS} times",
    )
    requeued = lost.update(state=State.QUEUED, heartbeat_at=None)
    return ended + failed + requeued
