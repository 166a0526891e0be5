"""A run of the sync against a server on this machine, by the official client: list, watch, take over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sizing.models import ClusterSync
from sizing.syncing import running, state
from tests.syncing.api_server import answers
from tests.syncing.conftest import QUICK, Story, play
from tests.syncing.made import node, pod
from tests.syncing.rows import row

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("kubeconfig")]


def test_all_pages_are_listed_and_brought_in_at_once(api, brought):
    api.put("nodes", node("n1"))
    for number in range(1234):
        api.put("pods", pod(f"p{number}"))

    def story() -> Story:
        yield lambda: row().state == "watching"

    assert play(story(), brought)
    assert brought.nodes == {"n1"}
    assert brought.pods == {f"llm/p{number}" for number in range(1234)}
    assert len(brought.listings) == 1
    pages = api.asked("list", "pods")
    assert [page.query["limit"] for page in pages] == ["500"] * 3
    assert [page.query.get("continue", "") != "" for page in pages] == [False, True, True]
    now = row()
    assert (now.nodes, now.pods, now.server, now.error) == (1, 1234, api.address, "")
    assert now.listed_at <= now.seen_at


def test_what_is_added_changed_and_deleted_is_brought_in_from_where_the_list_was(cluster, brought):
    def story() -> Story:
        yield lambda: brought.pods == {"llm/a"}
        cluster.put("pods", pod("b"))
        yield lambda: brought.pods == {"llm/a", "llm/b"}
        cluster.put("nodes", node("n1", unschedulable=True))
        yield lambda: brought.listings[-1].nodes["n1"].unschedulable
        cluster.delete("pods", "a", "llm")
        yield lambda: brought.pods == {"llm/b"}

    play(story(), brought)
    assert len(cluster.asked("list", "pods")) == 1
    [watch] = cluster.asked("watch", "pods")
    assert (watch.query["resourceVersion"], watch.query["allowWatchBookmarks"]) == ("102", "true")
    assert row().events == 3


def test_a_change_that_says_nothing_about_capacity_is_not_brought_in(cluster, brought):
    def story() -> Story:
        yield lambda: bool(brought.listings)
        heartbeat = node("n1")
        heartbeat["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-01-01T00:00:00Z"
        cluster.put("nodes", heartbeat)
        yield lambda: row().events == 1
        cluster.put("pods", pod("b"))
        yield lambda: "llm/b" in brought.pods

    play(story(), brought)
    assert len(brought.listings) == 2


def test_changes_are_gathered_for_a_while_after_the_first(cluster, brought):
    def story() -> Story:
        yield lambda: row().state == "watching"
        cluster.put("pods", pod("b"))
        yield lambda: row().events == 1
        assert brought.pods == {"llm/a"}
        cluster.put("pods", pod("c"))
        yield lambda: brought.pods == {"llm/a", "llm/b", "llm/c"}

    play(story(), brought, replace(QUICK, debounce=3))
    assert len(brought.listings) == 2


def test_optional_kinds_are_read_at_the_best_version_that_is_served_and_owners_as_metadata(cluster, brought):
    owner = {"kind": "Deployment", "name": "chat", "controller": True}
    cluster.put("replicasets", {"metadata": {"name": "rs", "namespace": "llm", "ownerReferences": [owner]}})
    cluster.put("priorityclasses", {"metadata": {"name": "high"}, "value": 7})

    def story() -> Story:
        yield lambda: bool(brought.listings)

    play(story(), brought)
    [listing] = brought.listings
    assert listing.owners == {("ReplicaSet", "llm", "rs"): ("Deployment", "chat")}
    assert listing.priority_classes == {"high": (7, "PreemptLowerPriority")}
    assert {"Node", "Pod", "ResourceSlice", "PodDisruptionBudget"} <= listing.kinds
    assert "RayCluster" not in listing.kinds
    assert "as=PartialObjectMetadataList" in cluster.asked("list", "replicasets")[0].accept
    assert cluster.asked("list", "pods")[0].accept == "application/json"


def test_a_kind_that_is_forbidden_is_a_warning_and_nothing_more(cluster, brought):
    cluster.always["list", "resourceslices"] = answers(403, "no rights")

    def story() -> Story:
        yield lambda: row().state == "watching"

    play(story(), brought)
    assert brought.listings[-1].warnings[0] == (
        "resourceslices are not read: the cluster forbids listing resourceslices (403 Forbidden): no rights"
    )
    assert "ResourceSlice" not in brought.listings[-1].kinds


def test_of_two_runs_one_works(cluster, brought):
    second = []

    def story() -> Story:
        yield lambda: bool(brought.listings)
        second.append(running.run(bring=brought))

    assert play(story(), brought)
    assert second == [False]
    assert row().attempt == 1


def test_a_run_whose_lease_was_taken_writes_nothing_more(cluster, brought):
    def story() -> Story:
        yield lambda: row().state == "watching"
        ClusterSync.objects.update(lease_until=None)
        assert state.claim(60) is not None
        before.append(ClusterSync.objects.values().get())
        cluster.put("pods", pod("b"))
        yield lambda: False

    before: list[Any] = []
    assert play(story(), brought)
    assert len(brought.listings) == 1
    assert ClusterSync.objects.values().get() == before[0]


def test_a_run_that_ends_gives_the_sync_to_the_next(cluster, brought):
    def story() -> Story:
        yield lambda: row().state == "watching"

    assert play(story(), brought)
    assert row().state == "waiting"
    assert play(story(), brought)
    assert row().attempt == 2
    assert len(brought.listings) == 2


def test_a_failing_run_that_ends_leaves_its_failure_to_the_next(cluster, brought):
    cluster.always["list", "pods"] = answers(500, "no")

    def fails() -> Story:
        yield lambda: row().failures == 2

    def fails_on() -> Story:
        assert row().failures == 2
        yield lambda: row().failures == 3

    play(fails(), brought)
    since = row().failing_since
    play(fails_on(), brought)
    assert (row().state, row().failing_since) == ("failing", since)


def test_a_fresh_list_is_taken_when_somebody_asks_for_it(cluster, brought):
    def story() -> Story:
        yield lambda: row().state == "watching"
        listed = row().listed_at
        state.request_now()
        yield lambda: row().state == "watching" and row().listed_at > listed

    play(story(), brought)
    assert len(brought.listings) == 2
    assert len(cluster.asked("list", "nodes")) == 2
