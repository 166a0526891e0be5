"""What is due is asked for once, whoever asks."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from sizing.measuring import schedule
from sizing.models import BenchProfile, Measurement, Refresh, RefreshPlan, Replica, Variant
from tests import builders

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def variant() -> Variant:
    """A variant with a replica to measure, of a model whose profile is to be refreshed each ten hours."""
    model = builders.model(default_profile=builders.profile(refresh_every_h=10))
    variant = builders.variant(model)
    builders.replica(
        "llama-0", variant, builders.node(), (0,), benchable=True, endpoint="http://127.0.0.1:9/v1"
    )
    return variant


def due(now: datetime) -> list[tuple[str, str, str]]:
    rows = Refresh.objects.filter(pk__in=schedule.request_due(now)).order_by("pk")
    return [(row.variant.name, row.profile.name, row.trigger) for row in rows]


def test_a_model_never_measured_is_due_on_its_default_profile(variant: Variant, now: datetime) -> None:
    assert due(now) == [("tp4", "chat", "schedule")]
    assert due(now) == []


def test_nothing_is_due_for_a_profile_without_an_interval(variant: Variant, now: datetime) -> None:
    BenchProfile.objects.update(refresh_every_h=None)
    assert due(now) == []
    assert not RefreshPlan.objects.exists()


@pytest.mark.parametrize("change", [{"benchable": False}, {"state": "draining"}, {"endpoint": ""}])
def test_nothing_is_due_without_a_replica_to_measure(
    variant: Variant, now: datetime, change: dict[str, object]
) -> None:
    Replica.objects.update(**change)
    assert due(now) == []


def test_a_measurement_is_due_in_the_last_tenth_of_its_interval(variant: Variant, now: datetime) -> None:
    builders.measurement(variant, BenchProfile.objects.get(), at=now)
    assert due(now) == []
    upcoming = RefreshPlan.objects.get().next_refresh_at
    assert upcoming is not None
    assert now + 9 * HOUR <= upcoming <= now + 10 * HOUR
    assert due(now + 9 * HOUR - timedelta(seconds=1)) == []
    assert due(now + 10 * HOUR) == [("tp4", "chat", "schedule")]


def test_a_profile_measured_or_with_a_target_is_scheduled_too(variant: Variant, now: datetime) -> None:
    other = builders.profile("rag", refresh_every_h=10)
    builders.profile("unused", refresh_every_h=10)
    builders.target(variant.model, profile=other)
    builders.measurement(variant, builders.profile("batch", refresh_every_h=10), at=now - 11 * HOUR)
    assert sorted(due(now)) == [
        ("tp4", "batch", "schedule"),
        ("tp4", "chat", "schedule"),
        ("tp4", "rag", "schedule"),
    ]


def test_an_active_refresh_is_not_asked_for_again(variant: Variant, now: datetime) -> None:
    Refresh.objects.create(variant=variant, profile=BenchProfile.objects.get(), trigger="admin")
    assert due(now) == []
    assert Refresh.objects.count() == 1


def test_two_schedules_that_ask_at_once_make_one_refresh(
    variant: Variant, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = schedule._make_plans

    def overtaken(moment: datetime) -> None:
        plans(moment)
        monkeypatch.setattr(schedule, "_make_plans", plans)
        assert due(now) == [("tp4", "chat", "schedule")]  # the other one, in between
        Refresh.objects.update(state="done")

    monkeypatch.setattr(schedule, "_make_plans", overtaken)
    assert due(now) == []
    assert Refresh.objects.count() == 1


def test_a_failure_waits_longer_each_time_but_never_beyond_the_interval(
    variant: Variant, now: datetime
) -> None:
    due(now)
    waits = []
    for _ in range(8):
        schedule.note_failure(variant.pk, BenchProfile.objects.get().pk)
        upcoming = RefreshPlan.objects.get().next_refresh_at
        assert upcoming is not None
        waits.append((upcoming - now) / timedelta(minutes=1))
    for wait, least in zip(waits, [10, 20, 40, 80, 160, 320, 600, 600], strict=True):
        assert least <= wait < least * 1.1 + 1


def test_success_ends_the_waiting(variant: Variant, now: datetime) -> None:
    due(now)
    profile = BenchProfile.objects.get()
    schedule.note_failure(variant.pk, profile.pk)
    schedule.note_success(variant.pk, profile, now)
    plan = RefreshPlan.objects.get()
    assert plan.failures == 0
    assert plan.next_refresh_at is not None
    assert now + 9 * HOUR <= plan.next_refresh_at <= now + 10 * HOUR


def test_a_measurement_that_is_stale_by_a_cause_is_due_at_once(variant: Variant, now: datetime) -> None:
    builders.measurement(
        variant, BenchProfile.objects.get(), at=now, variant_shape="4 GPUs, the whole GPU", engine="vLLM 0.10"
    )
    assert due(now) == []
    Variant.objects.update(engine_seen="vLLM 0.11")
    assert due(now) == [("tp4", "chat", "schedule")]


def test_what_was_just_tried_is_not_hurried_again(variant: Variant, now: datetime) -> None:
    builders.measurement(
        variant, BenchProfile.objects.get(), at=now, variant_shape="4 GPUs, the whole GPU", engine="vLLM 0.10"
    )
    Variant.objects.update(engine_seen="vLLM 0.11")
    due(now)
    Refresh.objects.update(state="cancelled")
    assert due(now + timedelta(minutes=9)) == []
    assert due(now + timedelta(minutes=11)) == [("tp4", "chat", "schedule")]


def test_an_interval_that_is_set_later_starts_the_schedule(variant: Variant, now: datetime) -> None:
    measured = builders.measurement(variant, BenchProfile.objects.get(), at=now)
    due(now)
    BenchProfile.objects.update(refresh_every_h=None)
    assert due(now + 11 * HOUR) == []
    assert RefreshPlan.objects.get().next_refresh_at is None
    BenchProfile.objects.update(refresh_every_h=5)
    assert due(now + 12 * HOUR) == [("tp4", "chat", "schedule")]
    assert Measurement.objects.get() == measured
