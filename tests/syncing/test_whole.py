"""The live sync with the tables: a cluster's changes become the inventory's, and its silence is stale."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from sizing.inventory.kubernetes.facts import Listing
from sizing.models import ClusterSync, Node, Replica
from sizing.syncing import state
from sizing.syncing.bringing import Outcome, bring
from tests.syncing.api_server import ApiServer, answers
from tests.syncing.conftest import Story, play
from tests.syncing.made import node, pod

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("kubeconfig")]


@pytest.fixture
def cluster(api: ApiServer) -> ApiServer:
    api.put("nodes", node("n1"))
    api.put("nodes", node("n2"))
    api.put("pods", pod("a"))
    return api


def names(table: type[Node] | type[Replica]) -> list[str]:
    return list(table._default_manager.order_by("name").values_list("name", flat=True))


def test_the_inventory_follows_the_cluster(cluster):
    Node.objects.create(name="by-hand")

    def story() -> Story:
        yield lambda: names(Node) == ["by-hand", "n1", "n2"]
        assert names(Replica) == ["llm/a"]
        cluster.put("pods", pod("b", on="n2", gpus=4))
        yield lambda: names(Replica) == ["llm/a", "llm/b"]
        cluster.delete("pods", "a", "llm")
        yield lambda: names(Replica) == ["llm/b"]
        cluster.put("nodes", node("n1", unschedulable=True))
        yield lambda: Node.objects.filter(name="n1", schedulable=False).exists()
        cluster.delete("nodes", "n1")
        yield lambda: names(Node) == ["by-hand", "n2"]
        yield lambda: ClusterSync.objects.get().nodes == 1

    assert play(story(), bring)
    row = ClusterSync.objects.get()
    assert row.changed_at is not None
    assert row.changes["nodes"]["gone"]["count"] == 1
    assert row.report["nodes"] == 1
    assert Replica.objects.get().placements.count() == 4


def test_what_others_write_into_what_the_cluster_tells_is_put_right_without_an_event(cluster):
    cluster.bookmarks = False

    def story() -> Story:
        yield lambda: names(Replica) == ["llm/a"] and ClusterSync.objects.get().state == "watching"
        Node.objects.filter(name="n2").update(schedulable=False)
        yield lambda: Node.objects.get(name="n2").schedulable
        Replica.objects.all().delete()
        yield lambda: names(Replica) == ["llm/a"]
        Replica.objects.all().delete()
        Node.objects.all().delete()
        yield lambda: names(Node) == ["n1", "n2"] and names(Replica) == ["llm/a"]

    play(story(), bring)
    assert ClusterSync.objects.get().events == 0


def test_without_a_change_nothing_is_brought_in_again_and_while_it_fails_old_news_is_not(cluster):
    times = 0
    leases = set()

    def has_looked_often() -> bool:
        leases.add(ClusterSync.objects.get().lease_until)
        return len(leases) > 5

    def counted(listing: Listing, **options: Any) -> Outcome:
        nonlocal times
        times += 1
        return bring(listing, **options)

    def story() -> Story:
        yield lambda: ClusterSync.objects.filter(state="watching").exists()
        yield has_looked_often
        assert times == 1
        cluster.always["watch", "nodes"] = answers(500, "away")
        cluster.end_watches("nodes")
        yield lambda: ClusterSync.objects.get().failures == 1
        Node.objects.update(stale=True)
        yield lambda: ClusterSync.objects.get().failures == 4
        assert times == 1
        assert Node.objects.filter(stale=True).count() == 2
        cluster.always.clear()
        yield lambda: not Node.objects.filter(stale=True).exists()

    play(story(), counted)
    assert times == 2


def test_an_empty_list_of_nodes_takes_none_away_and_is_told(cluster):
    def seen() -> Story:
        yield lambda: names(Node) == ["n1", "n2"]

    def empty() -> Story:
        yield lambda: ClusterSync.objects.get().state == "failing"
        row = ClusterSync.objects.get()
        assert (row.error, row.error_in) == (
            "the cluster lists no nodes; those that are known stay as they are",
            "writing",
        )
        assert names(Node) == ["n1", "n2"]
        cluster.put("nodes", node("n2"))
        yield lambda: names(Node) == ["n2"]
        yield lambda: ClusterSync.objects.get().state == "watching"

    play(seen(), bring)
    cluster.objects["nodes"].clear()
    play(empty(), bring)


def test_nodes_are_stale_when_the_cluster_is_not_seen_and_fresh_with_the_next_list(cluster):
    def story() -> Story:
        yield lambda: ClusterSync.objects.filter(state="watching").exists()

    play(story(), bring)
    ClusterSync.objects.update(seen_at=timezone.now() - timedelta(minutes=11))
    Node.objects.update(seen_at=None)
    assert state.mark_stale() == 2
    play(story(), bring)
    assert not Node.objects.filter(stale=True).exists()
    assert state.mark_stale() == 0


def test_a_run_that_was_paused_while_another_took_over_writes_nothing(cluster):
    def story() -> Story:
        yield lambda: names(Node) == ["n1", "n2"]
        cluster.put("pods", pod("b"))
        yield lambda: False

    def paused_before_its_second(
        listing: Listing, *, live: bool, guard: Callable[[], None], after: Callable[[Outcome], None]
    ) -> Outcome:
        if len(listing.pods) == 2:
            ClusterSync.objects.update(lease_until=None)
            assert state.claim(60) is not None
        return bring(listing, live=live, guard=guard, after=after)

    play(story(), paused_before_its_second)
    assert names(Replica) == ["llm/a"]
    assert ClusterSync.objects.get().attempt == 2
