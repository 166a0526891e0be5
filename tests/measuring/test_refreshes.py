"""The life of a refresh: guarded steps, one worker, lost workers healed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from sizing.measuring import refreshes
from sizing.measuring.refreshes import Claim
from sizing.models import MeasuredNode, Node, Refresh, Replica, Variant
from tests import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def variant() -> Variant:
    return builders.variant(builders.model())


@pytest.fixture
def row(variant: Variant) -> Refresh:
    bench_replica("llama-0", variant, builders.node())
    return Refresh.objects.create(variant=variant, profile=builders.profile(), trigger="api")


def bench_replica(name: str, variant: Variant, node: Node, gpus: tuple[int, ...] = (0, 1, 2, 3)) -> Replica:
    return builders.replica(name, variant, node, gpus, benchable=True, endpoint=f"http://127.0.0.1:9/{name}")


def claimed(row: Refresh) -> Claim:
    claim = refreshes.claim(row.pk)
    assert claim is not None
    return claim


def state(row: Refresh) -> str:
    row.refresh_from_db()
    return row.state


def lose_worker(row: Refresh) -> None:
    Refresh.objects.filter(pk=row.pk).update(heartbeat_at=timezone.now() - timedelta(minutes=5))


def test_only_one_worker_claims_a_refresh(row: Refresh) -> None:
    claim = claimed(row)
    assert (claim.attempt, claim.replica.name) == (1, "llama-0")
    assert refreshes.claim(row.pk) is None
    assert state(row) == "running"
    assert (row.attempts, row.progress, row.replica) == (1, 0, claim.replica)
    assert row.heartbeat_at is not None


def test_a_heartbeat_records_progress_and_goes_on(row: Refresh) -> None:
    claim = claimed(row)
    assert refreshes.heartbeat(claim, 40, "level 2", {"level": 2, "tok_per_sec": 12.5})
    assert state(row) == "running"
    assert (row.progress, row.message, row.live) == (40, "level 2", {"level": 2, "tok_per_sec": 12.5})


def test_a_finished_refresh_stays_finished(row: Refresh) -> None:
    claim = claimed(row)
    assert refreshes.finish(claim, "1,000 tok/s")
    assert state(row) == "done"
    assert (row.progress, row.message, row.live) == (100, "1,000 tok/s", {})
    assert not refreshes.fail(claim, "late")
    assert not refreshes.cancel(row.pk)
    assert refreshes.claim(row.pk) is None
    assert state(row) == "done"


def test_a_failed_refresh_says_why(row: Refresh) -> None:
    assert refreshes.fail(claimed(row), "the replica answered HTML")
    assert state(row) == "failed"
    assert row.error == "the replica answered HTML"


def test_cancelling_a_queued_refresh_ends_it_at_once(row: Refresh) -> None:
    assert refreshes.cancel(row.pk)
    assert state(row) == "cancelled"
    assert row.finished_at is not None
    assert refreshes.claim(row.pk) is None


def test_cancelling_a_running_refresh_stops_it_at_the_next_heartbeat(row: Refresh) -> None:
    claim = claimed(row)
    assert refreshes.cancel(row.pk)
    assert state(row) == "running"
    assert not refreshes.heartbeat(claim, 50)
    assert not refreshes.finish(claim)
    assert refreshes.stopped(claim)
    assert state(row) == "cancelled"


def test_the_sweep_queues_a_lost_refresh_again(row: Refresh) -> None:
    claimed(row)
    assert refreshes.sweep() == 0
    lose_worker(row)
    assert refreshes.sweep() == 1
    assert state(row) == "queued"
    assert refreshes.waiting() == [row.pk]
    assert (row.message, row.progress, row.started_at) == (refreshes.LOST, 0, None)
    assert refreshes.sweep() == 0


def test_what_a_killed_command_measured_is_not_taken_up_by_a_worker(row: Refresh) -> None:
    Refresh.objects.update(trigger="command")
    claimed(row)
    lose_worker(row)
    assert refreshes.sweep() == 1
    assert state(row) == "failed"
    assert row.error == "the command that measured is gone"
    assert not MeasuredNode.objects.exists()


def test_the_sweep_fails_a_refresh_that_was_lost_three_times(row: Refresh) -> None:
    for _ in range(3):
        claimed(row)
        lose_worker(row)
        refreshes.sweep()
    assert state(row) == "failed"
    assert row.error == "the worker was lost 3 times"


def test_the_sweep_ends_a_lost_refresh_that_was_cancelled(row: Refresh) -> None:
    claimed(row)
    refreshes.cancel(row.pk)
    lose_worker(row)
    assert refreshes.sweep() == 1
    assert state(row) == "cancelled"


def test_a_worker_that_was_thought_lost_writes_nothing_to_what_another_has_taken(row: Refresh) -> None:
    lost = claimed(row)
    lose_worker(row)
    refreshes.sweep()
    assert not refreshes.heartbeat(lost, 90)
    found = claimed(row)
    assert found.attempt == 2
    assert not refreshes.heartbeat(lost, 90)
    assert not refreshes.finish(lost)
    assert not refreshes.fail(lost, "late")
    assert state(row) == "running"
    assert (row.progress, row.error) == (0, "")
    assert refreshes.heartbeat(found, 10)


def test_one_active_refresh_for_a_variant_and_profile(row: Refresh) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Refresh.objects.create(variant=row.variant, profile=row.profile, trigger="admin")
    refreshes.cancel(row.pk)
    Refresh.objects.create(variant=Variant.objects.get(), profile=row.profile, trigger="admin")


def another(row: Refresh, node: Node) -> Refresh:
    """A refresh of another model with a replica on a node."""
    variant = builders.variant(builders.model("qwen"))
    bench_replica("qwen-0", variant, node, (4, 5, 6, 7))
    return Refresh.objects.create(variant=variant, profile=row.profile, trigger="api")


def test_a_second_measurement_on_a_node_waits_and_says_for_whom(row: Refresh) -> None:
    claim = claimed(row)
    other = another(row, Node.objects.get())
    assert refreshes.claim(other.pk) is None
    assert state(other) == "queued"
    assert (other.message, other.attempts) == (f"waits: refresh {row.pk} measures on gpu-a1", 0)
    refreshes.finish(claim)
    assert claimed(other).replica.name == "qwen-0"


@pytest.mark.parametrize("end", ["finish", "fail", "stopped", "sweep"])
def test_whatever_ends_a_refresh_lets_go_of_its_nodes(row: Refresh, end: str) -> None:
    claim = claimed(row)
    assert list(MeasuredNode.objects.values_list("node__name", "refresh_id")) == [("gpu-a1", row.pk)]
    if end == "finish":
        refreshes.finish(claim)
    elif end == "fail":
        refreshes.fail(claim, "why")
    elif end == "stopped":
        refreshes.cancel(row.pk)
        refreshes.stopped(claim)
    else:
        lose_worker(row)
        refreshes.sweep()
    assert not MeasuredNode.objects.exists()


def test_the_sweep_leaves_the_nodes_of_a_living_refresh_alone(row: Refresh) -> None:
    claimed(row)
    other = another(row, builders.node("gpu-b1"))
    claimed(other)
    lose_worker(other)
    assert refreshes.sweep() == 1
    assert list(MeasuredNode.objects.values_list("refresh_id", flat=True)) == [row.pk]


def test_a_replica_on_a_free_node_is_taken_before_one_that_must_wait(row: Refresh) -> None:
    bench_replica("llama-1", row.variant, builders.node("gpu-b1"))
    claimed(another(row, Node.objects.get(name="gpu-a1")))
    assert claimed(row).replica.name == "llama-1"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"benchable": False}, "no replica of llama (tp4) is marked benchable"),
        ({"state": "draining"}, "no benchable replica of llama (tp4) is ready"),
        ({"endpoint": ""}, "no benchable replica of llama (tp4) has an endpoint"),
        (None, "llama (tp4) has no replica to measure"),
    ],
)
def test_only_a_marked_ready_replica_with_an_endpoint_is_measured(
    row: Refresh, change: dict[str, object] | None, why: str
) -> None:
    if change is None:
        Replica.objects.all().delete()
    else:
        Replica.objects.update(**change)
    assert refreshes.claim(row.pk) is None
    assert state(row) == "failed"
    assert row.error == why
    assert not MeasuredNode.objects.exists()


def test_a_refresh_for_one_replica_measures_no_other(row: Refresh) -> None:
    bench_replica("llama-1", row.variant, builders.node("gpu-b1"))
    Refresh.objects.update(replica=Replica.objects.get(name="llama-1"))
    Replica.objects.filter(name="llama-1").update(benchable=False)
    assert refreshes.claim(row.pk) is None
    assert state(row) == "failed"
    assert row.error == "llama-1 is not to be measured: it is not marked benchable"


def test_a_replica_that_moves_or_loses_its_mark_is_no_longer_measured(row: Refresh) -> None:
    claim = claimed(row)
    assert refreshes.still_benchable(claim)
    Replica.objects.update(endpoint="http://127.0.0.1:10")
    assert not refreshes.still_benchable(claim)
