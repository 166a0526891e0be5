"""The row of the sync: who has it, how it goes, and what is stale."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from llmgw_admin.environment import KubernetesEnvironment
from sizing.models import ClusterSync, Node
from sizing.syncing import state
from sizing.syncing.failures import SyncFailure
from sizing.syncing.state import Lost
from sizing.tasks import sweep_refreshes

pytestmark = pytest.mark.django_db

NOW = timezone.now()
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def configured(settings):
    settings.KUBERNETES = KubernetesEnvironment("kubeconfig", "/nowhere", "")


def test_only_one_run_has_the_sync_until_its_lease_ends():
    first = state.claim(60)
    assert first is not None
    assert state.claim(60) is None
    ClusterSync.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    second = state.claim(60)
    assert second is not None
    assert second.attempt == first.attempt + 1


def test_a_run_that_lost_the_sync_can_write_nothing():
    first = state.claim(0)
    second = state.claim(60)
    assert first is not None
    assert second is not None
    before = ClusterSync.objects.values().get()
    for step in (
        lambda: state.beat(first, 60, seen_at=NOW),
        lambda: state.write(first, pods=3),
        lambda: state.failed(first, SyncFailure("x", "y"), 1),
        lambda: state.guard(first),
        lambda: state.requested_at(first),
    ):
        with pytest.raises(Lost):
            step()
    state.release(first)
    assert ClusterSync.objects.values().get() == before
    state.guard(second)


def test_a_sign_of_life_keeps_the_lease():
    claim = state.claim(0.001)
    assert claim is not None
    state.beat(claim, 60)
    assert state.claim(60) is None


def nodes(**fields):
    """Two nodes that the cluster told of and one that is kept by hand."""
    Node.objects.create(name="a", source="kubernetes", **fields)
    Node.objects.create(name="b", source="kubernetes", **fields)
    Node.objects.create(name="hand")


def stale() -> list[str]:
    return list(Node.objects.filter(stale=True).values_list("name", flat=True))


@pytest.mark.parametrize(("minutes", "expected"), [(9, []), (11, ["a", "b"])])
def test_the_clusters_nodes_are_stale_ten_minutes_after_it_was_last_seen(minutes, expected):
    nodes()
    ClusterSync.objects.create(pk=1, seen_at=NOW - minutes * MINUTE)
    assert state.mark_stale(NOW) == len(expected)
    assert stale() == expected
    assert state.mark_stale(NOW) == 0


def test_the_sweep_marks_stale_nodes():
    nodes()
    ClusterSync.objects.create(pk=1, seen_at=timezone.now() - 11 * MINUTE)
    sweep_refreshes()
    assert stale() == ["a", "b"]


def test_a_cluster_that_was_never_seen_is_stale_ten_minutes_after_its_first_failure():
    nodes()
    ClusterSync.objects.create(pk=1)
    assert state.mark_stale(NOW) == 0
    ClusterSync.objects.update(failing_since=NOW - 11 * MINUTE)
    assert state.mark_stale(NOW) == 2


def test_nodes_that_were_brought_in_otherwise_meanwhile_are_not_stale():
    nodes(seen_at=NOW - MINUTE)
    ClusterSync.objects.create(pk=1, seen_at=NOW - 11 * MINUTE)
    assert state.mark_stale(NOW) == 0


def test_without_a_cluster_nothing_is_stale(settings):
    settings.KUBERNETES = KubernetesEnvironment("off", "", "")
    nodes()
    ClusterSync.objects.create(pk=1, seen_at=NOW - 11 * MINUTE)
    assert state.mark_stale(NOW) == 0
    assert state.look() == state.Look(configured=False, state="off")


def test_a_look_tells_the_failure_its_age_and_the_next_try():
    assert state.look() == state.Look(configured=True, state="waiting")
    ClusterSync.objects.create(
        pk=1, state="failing", failures=3, failing_since=NOW - MINUTE, failed_at=NOW,
        error="no", error_in="listing pods", seen_at=NOW - 2 * MINUTE, lease_until=NOW + MINUTE,
    )  # fmt: skip
    look = state.look(NOW)
    assert (look.state, look.trouble, look.error, look.error_in) == (
        "failing",
        "failing",
        "no",
        "listing pods",
    )
    assert look.failing_since == NOW - MINUTE
    assert look.next_try_at == NOW + timedelta(seconds=4)
    assert look.seen_age_s == 120


@pytest.mark.parametrize(
    ("told", "lease", "seen", "trouble"),
    [
        ("watching", MINUTE, 0 * MINUTE, ""),
        ("waiting", 0 * MINUTE, 0 * MINUTE, ""),
        ("watching", -2 * MINUTE, 0 * MINUTE, "missing"),
        ("failing", MINUTE, -11 * MINUTE, "stale"),
    ],
)
def test_what_an_operator_has_to_see_to(told, lease, seen, trouble):
    now = timezone.now()  # the health page looks at the clock itself
    ClusterSync.objects.create(pk=1, state=told, lease_until=now + lease, seen_at=now + seen)
    assert state.look(now).trouble == trouble
    answer = APIClient().get("/healthz")
    assert (answer.status_code, answer.json()["cluster"]) == (200, trouble or "ok")


def test_the_age_and_the_failures_are_metrics(django_user_model):
    ClusterSync.objects.create(pk=1, seen_at=timezone.now() - timedelta(hours=1), failures=2)
    client = APIClient()
    client.force_login(django_user_model.objects.create_superuser("ada"))
    lines = client.get("/metrics").content.decode().splitlines()
    assert "llmgw_cluster_failures 2.0" in lines
    [age] = [float(line.split()[1]) for line in lines if line.startswith("llmgw_cluster_seen_seconds ")]
    assert 3600 <= age < 3700
