"""Many processes want the same at once: one gets it."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from sizing.models import BenchProfile, MeasuredNode, Refresh, RefreshPlan
from tests import builders
from tests.faults.racing import together
from tests.faults.rows import fresh, measured_once, queued

pytestmark = pytest.mark.database

ROWS, NODES = 30, 10


def test_eight_workers_take_thirty_refreshes_each_once_and_one_at_a_time_on_a_node(
    quiet_database: dict[str, str],
) -> None:
    nodes = [builders.node(f"node-{number}", gpus=1) for number in range(NODES)]
    rows = [queued("http://127.0.0.1:9/v1", nodes[number % NODES]) for number in range(ROWS)]
    taken = together(8, quiet_database, "claim")
    assert Counter(pk for pks in taken for pk in pks) == Counter({row.pk: 1 for row in rows})
    assert {(row.state, row.attempts) for row in Refresh.objects.all()} == {("done", 1)}
    assert not MeasuredNode.objects.exists()


def test_four_schedules_make_one_refresh_for_each_plan_that_is_due(quiet_database: dict[str, str]) -> None:
    rows = [queued("http://127.0.0.1:9/v1") for _ in range(ROWS)]
    Refresh.objects.all().delete()
    BenchProfile.objects.update(refresh_every_h=10)
    past = timezone.now() - timedelta(minutes=1)
    RefreshPlan.objects.bulk_create(
        RefreshPlan(variant=row.variant, profile=row.profile, next_refresh_at=past) for row in rows
    )
    made = [pk for pks in together(4, quiet_database, "due") for pk in pks]
    assert len(made) == len(set(made)) == ROWS
    asked = Refresh.objects.values_list("variant", "profile", "trigger")
    assert sorted(asked) == sorted((row.variant_id, row.profile_id, "schedule") for row in rows)


def test_two_workers_that_take_the_same_refresh_measure_it_once(
    quiet_database: dict[str, str], replica: str
) -> None:
    row = queued(replica, most_levels=1)
    assert sorted(together(2, quiet_database, "measure", str(row.pk))) == [False, True]
    measured_once(fresh(row), attempts=1)
