"""A database that is away for a while costs no measurement."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from sizing.measuring import refreshes
from sizing.measuring.patience import patiently
from sizing.models import Refresh
from sizing.models.clock import read_shared_now
from tests import builders


@pytest.mark.django_db(transaction=True)
def test_what_failed_because_the_database_was_away_is_done_again() -> None:
    errors = [OperationalError("gone"), InterfaceError("closed")]

    def do() -> str:
        if errors:
            raise errors.pop(0)
        return "done"

    assert patiently(do, "refresh 1", pause_s=0.01) == "done"
    assert errors == []


@pytest.mark.django_db(transaction=True)
def test_patience_ends_and_other_errors_are_not_tried_again() -> None:
    tried = []

    def away() -> None:
        tried.append(1)
        raise OperationalError("gone")

    with pytest.raises(OperationalError):
        patiently(away, "refresh 1", pause_s=0.01, patience_s=0.05)
    assert len(tried) > 1

    def broken() -> None:
        tried.clear()
        raise KeyError

    with pytest.raises(KeyError):
        patiently(broken, "refresh 1", pause_s=0.01)
    assert tried == []


@pytest.fixture
def running(transactional_db: None) -> Refresh:
    variant = builders.variant(builders.model(), gpus=1)
    builders.replica("one", variant, builders.node(gpus=1), (0,), benchable=True, endpoint="http://10.0.0.1")
    row = Refresh.objects.create(variant=variant, profile=builders.profile(), trigger="api")
    assert refreshes.claim(row.pk) is not None
    return row


def beats_at(row: Refresh, hours: float) -> None:
    at = read_shared_now() + timedelta(hours=hours)
    Refresh.objects.filter(pk=row.pk).update(heartbeat_at=at)


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_worker_that_only_looked_lost_keeps_its_refresh(running: Refresh, hours: float) -> None:
    """After a database was away, and after a clock was set, all beats are old, or from the future."""
    beats_at(running, hours)
    attempt = refreshes.Claim(running.pk, 1, running.variant.replicas.get())

    def beat() -> None:
        try:
            refreshes.heartbeat(attempt, 10)
        finally:
            connection.close()

    later = threading.Timer(0.2, beat)
    later.start()
    assert refreshes.sweep(look_again_after_s=1.0) == 0
    later.join()
    running.refresh_from_db()
    assert (running.state, running.progress) == ("running", 10)


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_worker_that_stays_silent_is_lost(running: Refresh, hours: float) -> None:
    beats_at(running, hours)
    assert refreshes.sweep(look_again_after_s=0.1) == 1
    running.refresh_from_db()
    assert (running.state, running.message) == ("queued", refreshes.LOST)


def test_a_worker_that_could_not_tell_since_the_database_was_locked_is_not_lost(running: Refresh) -> None:
    if connection.vendor != "sqlite":  # where nobody holds a lock that keeps signs of life away
        return
    beats_at(running, -1)
    locked, over = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            locked.set()
            over.wait(1.0)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    locked.wait()
    assert refreshes.sweep(look_again_after_s=0.1) == 0
    holder.join()
    assert refreshes.sweep(look_again_after_s=0.1) == 1


def test_leases_go_by_the_clock_of_the_database(running: Refresh, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose own clock is an hour ahead takes nobody's refresh away."""
    if connection.vendor == "sqlite":  # which has no clock, and no second host
        return
    ahead = timezone.now() + timedelta(hours=1)
    monkeypatch.setattr(timezone, "now", lambda: ahead)
    assert refreshes.sweep() == 0
    assert refreshes.heartbeat(refreshes.Claim(running.pk, 1, running.variant.replicas.get()), 10)
    monkeypatch.undo()
    assert refreshes.sweep() == 0


def test_a_lost_worker_is_noticed_within_its_lease(running: Refresh) -> None:
    assert refreshes.sweep() == 0
    assert refreshes.sweep(timezone.now() + refreshes.lease() + timedelta(seconds=5)) == 1
