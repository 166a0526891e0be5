"""What is old and rests on nothing goes in the sweep; what answers count with stays, however old."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from sizing.models import (
    Answer,
    BenchFile,
    BenchFilePart,
    BenchImport,
    BenchLevel,
    BenchProfile,
    ClusterImport,
    InventoryLoad,
    Measurement,
    Refresh,
    Variant,
    retention,
)
from sizing.models.retention import drop_old
from sizing.services.targets import find_answer, parse_question
from sizing.tasks import sweep_refreshes
from tests import builders

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def ten_days(settings):
    settings.MEASUREMENTS_KEPT_DAYS = 10


@pytest.fixture
def variant() -> Variant:
    profile = builders.profile()
    return builders.variant(builders.model(default_profile=profile))


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def measured(variant: Variant, days: float, rate: int = 1000, **fields) -> Measurement:
    return builders.measurement(variant, BenchProfile.objects.get(), rate, days_ago(days), **fields)


def left() -> set[int]:
    return set(Measurement.objects.values_list("pk", flat=True))


def rate() -> Decimal:
    return find_answer(parse_question("llama", {"tokens_per_sec": ["1"]})).count.measurement.tok_per_sec


def test_the_newest_valid_measurement_stays_however_old_and_answers_stay_the_same(variant):
    old, newest = measured(variant, 900, 1), measured(variant, 800, 2)
    other = builders.measurement(variant, builders.profile("batch"), 3, days_ago(900))
    before = rate()
    assert drop_old(NOW) == 1
    assert left() == {newest.pk, other.pk}
    assert old.pk not in left()
    assert rate() == before == 2


def test_what_is_not_yet_old_stays(variant):
    measured(variant, 9.9, 1), measured(variant, 1, 2)
    assert drop_old(NOW) == 0


def test_an_unmet_slo_is_told_of_as_long_as_nothing_newer_is_known(variant):
    valid = measured(variant, 900, 1)
    measured(variant, 700, 0, slo_met=False)
    unmet = measured(variant, 600, 0, slo_met=False)
    assert drop_old(NOW) == 1
    assert left() == {valid.pk, unmet.pk}
    newer = measured(variant, 500, 2)
    assert drop_old(NOW) == 2
    assert left() == {newer.pk}


def test_of_two_at_one_moment_the_later_stored_counts(variant):
    measured(variant, 20, 1)
    second = measured(variant, 20, 2)
    assert drop_old(NOW) == 1
    assert left() == {second.pk}


def test_a_measurement_that_a_kept_answer_rests_on_stays(variant):
    old, newest = measured(variant, 900, 1), measured(variant, 800, 2)
    answer = Answer.objects.create(
        asked_at=NOW, channel="api", model="llama", measurement=old, measured={}, fits=True, result={}
    )
    assert drop_old(NOW) == 0
    answer.delete()
    assert drop_old(NOW) == 1
    assert left() == {newest.pk}


def test_levels_files_refresh_and_import_go_with_their_measurement(variant):
    kept_refresh = refresh_of(variant, 400)
    kept = measured(variant, 400, 2, refresh=kept_refresh)
    BenchLevel.objects.create(measurement=kept, position=1, verdict="pass", why="", observed={})
    old = measured(variant, 500, 1, refresh=refresh_of(variant, 500))
    BenchLevel.objects.create(measurement=old, position=1, verdict="pass", why="", observed={})
    file = BenchFile.objects.create(measurement=old, position=1, name="a", size=1, sha256="")
    BenchFilePart.objects.create(file=file, position=1, content=b"x")
    stored = BenchImport.State.STORED
    BenchImport.objects.create(
        variant=variant, state=stored, trigger="api", finished_at=days_ago(500), measurement=old
    )
    assert drop_old(NOW) == 3
    assert left() == {kept.pk}
    assert list(Refresh.objects.all()) == [kept_refresh]
    assert [level.measurement_id for level in BenchLevel.objects.all()] == [kept.pk]
    assert not BenchFile.objects.exists()
    assert not BenchFilePart.objects.exists()
    assert not BenchImport.objects.exists()


def refresh_of(variant: Variant, days: float, state: str = "done") -> Refresh:
    return Refresh.objects.create(
        variant=variant,
        profile=BenchProfile.objects.get(),
        state=state,
        trigger="schedule",
        finished_at=days_ago(days),
    )


def test_only_what_is_over_goes(variant):
    failed = refresh_of(variant, 11, "failed")
    refresh_of(variant, 9, "cancelled")
    refresh_of(variant, 400, "running")  # never so in truth: what runs has not finished
    ClusterImport.objects.create(name="a", state="done", trigger="api", finished_at=days_ago(11))
    waiting = ClusterImport.objects.create(name="b", state="read", trigger="api")
    InventoryLoad.objects.create(name="a", state="loaded", trigger="api", finished_at=days_ago(11))
    looked_at = InventoryLoad.objects.create(name="b", state="preview", trigger="api")
    assert drop_old(NOW) == 3
    assert failed.pk not in Refresh.objects.values_list("pk", flat=True)
    assert sorted(Refresh.objects.values_list("state", flat=True)) == ["cancelled", "running"]
    assert list(ClusterImport.objects.all()) == [waiting]
    assert list(InventoryLoad.objects.all()) == [looked_at]


def test_a_run_drops_so_many_and_the_next_one_goes_on(variant, monkeypatch):
    monkeypatch.setattr(retention, "MOST_AT_ONCE", 3)
    for days in range(20, 26):
        measured(variant, days)
    assert [drop_old(NOW) for _ in range(3)] == [3, 2, 0]


def test_zero_days_keep_everything(variant, settings):
    settings.MEASUREMENTS_KEPT_DAYS = 0
    measured(variant, 900), measured(variant, 800)
    assert drop_old(NOW) == 0


@pytest.mark.parametrize("rows", [3, 30])
def test_a_sweep_with_nothing_old_asks_five_questions(variant, django_assert_num_queries, rows):
    for number in range(rows):
        measured(variant, number / 10)
    with django_assert_num_queries(5):
        drop_old(NOW)


def test_the_sweep_drops_what_is_old(variant):
    measured(variant, 900), measured(variant, 800)  # long before now
    sweep_refreshes()
    assert Measurement.objects.count() == 1
