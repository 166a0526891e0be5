"""The life of a refresh: guarded steps, one worker, lost workers healed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from sizing.measuring import refreshes
from sizing.models import Refresh, Variant
from tests import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def row() -> Refresh:
    variant = builders.variant(builders.model())
    return Refresh.objects.create(variant=variant, profile=builders.profile(), trigger="api")


def state(row: Refresh) -> str:
    row.refresh_from_db()
    return row.state


def test_only_one_worker_claims_a_refresh(row: Refresh) -> None:
    assert refreshes.claim(row.pk)
    assert not refreshes.claim(row.pk)
    assert state(row) == "running"
    assert (row.attempts, row.progress) == (1, 0)
    assert row.heartbeat_at is not None


def test_a_heartbeat_records_progress_and_goes_on(row: Refresh) -> None:
    refreshes.claim(row.pk)
    assert refreshes.heartbeat(row.pk, 40, "level 2 of 5")
    assert state(row) == "running"
    assert (row.progress, row.message) == (40, "level 2 of 5")


def test_a_refresh_that_is_not_running_has_no_heartbeat(row: Refresh) -> None:
    assert not refreshes.heartbeat(row.pk, 10)
    assert state(row) == "queued"


def test_a_finished_refresh_stays_finished(row: Refresh) -> None:
    refreshes.claim(row.pk)
    assert refreshes.finish(row.pk)
    assert state(row) == "done"
    assert row.progress == 100
    assert not refreshes.fail(row.pk, "late")
    assert not refreshes.cancel(row.pk)
    assert not refreshes.claim(row.pk)
    assert state(row) == "done"


def test_a_failed_refresh_says_why(row: Refresh) -> None:
    refreshes.claim(row.pk)
    assert refreshes.fail(row.pk, "the replica answered HTML")
    assert state(row) == "failed"
    assert row.error == "the replica answered HTML"


def test_cancelling_a_queued_refresh_ends_it_at_once(row: Refresh) -> None:
    assert refreshes.cancel(row.pk)
    assert state(row) == "cancelled"
    assert not refreshes.claim(row.pk)


def test_cancelling_a_running_refresh_stops_it_at_the_next_heartbeat(row: Refresh) -> None:
    refreshes.claim(row.pk)
    assert refreshes.cancel(row.pk)
    assert state(row) == "running"
    assert not refreshes.heartbeat(row.pk, 50)
    assert not refreshes.finish(row.pk)
    assert refreshes.stopped(row.pk)
    assert state(row) == "cancelled"


def lose_worker(row: Refresh) -> None:
    Refresh.objects.filter(pk=row.pk).update(heartbeat_at=timezone.now() - timedelta(minutes=5))


def test_the_sweep_queues_a_lost_refresh_again(row: Refresh) -> None:
    refreshes.claim(row.pk)
    assert refreshes.sweep() == 0
    lose_worker(row)
    assert refreshes.sweep() == 1
    assert state(row) == "queued"
    assert refreshes.sweep() == 0


def test_the_sweep_fails_a_refresh_that_was_lost_three_times(row: Refresh) -> None:
    for _ in range(3):
        assert refreshes.claim(row.pk)
        lose_worker(row)
        refreshes.sweep()
    assert state(row) == "failed"
    assert row.error == "the worker was lost 3 times"


def test_the_sweep_ends_a_lost_refresh_that_was_cancelled(row: Refresh) -> None:
    refreshes.claim(row.pk)
    refreshes.cancel(row.pk)
    lose_worker(row)
    assert refreshes.sweep() == 1
    assert state(row) == "cancelled"


def test_a_worker_that_was_thought_lost_cannot_finish_what_is_not_its_own(row: Refresh) -> None:
    refreshes.claim(row.pk)
    lose_worker(row)
    refreshes.sweep()
    assert not refreshes.heartbeat(row.pk, 90)
    assert not refreshes.finish(row.pk)
    assert state(row) == "queued"


def test_one_active_refresh_for_a_variant_and_profile(row: Refresh) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Refresh.objects.create(variant=row.variant, profile=row.profile, trigger="admin")
    refreshes.cancel(row.pk)
    Refresh.objects.create(variant=Variant.objects.get(), profile=row.profile, trigger="admin")
