"""Measurements are marked stale at their profile's age, and only changes are written."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sizing import tasks
from sizing.measuring.staleness import mark_stale
from sizing.models import BenchProfile, InventoryChange, Measurement
from tests import builders
from tests.builders import DAY_ONE

pytestmark = pytest.mark.django_db

WEEK = timedelta(hours=168)


@pytest.fixture
def row() -> Measurement:
    return builders.measurement(builders.variant(builders.model()), builders.profile(refresh_every_h=168))


def mark(row: Measurement) -> str:
    row.refresh_from_db()
    return row.stale_reason


def test_a_measurement_is_marked_at_the_age_of_its_profile(row: Measurement) -> None:
    assert mark_stale(DAY_ONE + WEEK - timedelta(seconds=1)) == 0
    assert mark(row) == ""
    assert mark_stale(DAY_ONE + WEEK) == 1
    assert mark(row) == "age"


def test_a_longer_interval_takes_the_mark_away(row: Measurement) -> None:
    mark_stale(DAY_ONE + WEEK)
    BenchProfile.objects.update(refresh_every_h=200)
    assert mark_stale(DAY_ONE + WEEK) == 1
    assert mark(row) == ""


def test_a_profile_without_an_interval_is_never_stale(row: Measurement) -> None:
    mark_stale(DAY_ONE + WEEK)
    BenchProfile.objects.update(refresh_every_h=None)
    assert mark_stale(DAY_ONE + 100 * WEEK) == 1
    assert mark(row) == ""


def test_another_reason_is_left_alone(row: Measurement) -> None:
    Measurement.objects.update(stale_reason="engine changed")
    assert mark_stale(DAY_ONE + WEEK) == 0
    assert mark(row) == "engine changed"


def test_nothing_to_mark_writes_nothing(row: Measurement) -> None:
    mark_stale(DAY_ONE + WEEK)
    before = InventoryChange.objects.count()
    assert mark_stale(DAY_ONE + WEEK) == 0
    assert InventoryChange.objects.count() == before


def test_the_scheduled_tasks_run(row: Measurement) -> None:
    tasks.mark_stale_measurements()
    tasks.sweep_refreshes()
    assert mark(row) == "age"
