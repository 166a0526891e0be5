"""What the cluster refuses, or the desk cannot take, is told with its age and tried again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import OperationalError

from sizing.models import ClusterSync
from sizing.syncing.bringing import RefusedError
from tests.syncing.api_server import answers, hangs
from tests.syncing.conftest import QUICK, Story, play, write_kubeconfig
from tests.syncing.made import node, pod
from tests.syncing.rows import failed_with, row, works_again

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("kubeconfig")]


def test_a_failure_says_what_since_when_and_how_often_and_goes_when_all_works_again(cluster, brought):
    cluster.always["list", "pods"] = answers(503, "etcd is away")

    def story() -> Story:
        yield lambda: failed_with("the API server answered 503 Service Unavailable: etcd is away")
        first = row()
        assert (first.error_in, first.failures) == ("listing pods", 1)
        yield lambda: row().failures == 3
        later = row()
        assert later.failing_since == first.failing_since < later.failed_at
        assert later.seen_at is None
        del cluster.always["list", "pods"]
        yield works_again

    play(story(), brought)


@pytest.mark.parametrize("kind", ["nodes", "pods"])
def test_without_the_right_to_list_nodes_or_pods_nothing_is_brought_in(cluster, brought, kind):
    cluster.always["list", kind] = answers(403, "no rights")

    def story() -> Story:
        yield lambda: row().failures >= 3
        assert brought.listings == []
        del cluster.always["list", kind]
        yield works_again

    play(story(), brought)
    assert brought.pods == {"llm/a"}


def test_a_list_whose_pages_have_expired_begins_anew(api, brought):
    api.page = 2
    for number in range(5):
        api.put("pods", pod(f"p{number}"))
    api.put("nodes", node("n1"))
    gone = answers(410, "The provided continue parameter is too old", "Expired")
    original = api.fault_for
    pages = []

    def second_page_is_gone(verb, plural):
        if (verb, plural) == ("list", "pods"):
            pages.append(1)
            return gone if len(pages) == 2 else None
        return original(verb, plural)

    api.fault_for = second_page_is_gone

    def story() -> Story:
        yield lambda: len(brought.pods) == 5

    play(story(), brought)
    asked = [request.query.get("continue", "") for request in api.asked("list", "pods")]
    assert [bool(token) for token in asked] == [False, True, False, True, True]
    assert row().failures == 0


def test_a_list_that_always_expires_is_a_failure(cluster, brought):
    cluster.always["list", "pods"] = answers(410, "too old", "Expired")

    def story() -> Story:
        yield lambda: failed_with("the API server answered 410 Gone: too old")
        del cluster.always["list", "pods"]
        yield works_again

    play(story(), brought)


def test_a_token_that_is_refused_is_read_anew(cluster, brought, kubeconfig):
    cluster.token = "new"
    write_kubeconfig(kubeconfig, cluster.address, token="old")

    def story() -> Story:
        yield lambda: failed_with("the cluster refused the token (401 Unauthorized)")
        write_kubeconfig(kubeconfig, cluster.address, token="new")
        yield works_again

    play(story(), brought)
    assert brought.pods == {"llm/a"}
    now = str(ClusterSync.objects.values().get())
    assert "new" not in now.split()


def test_a_cluster_that_is_away_is_told_and_found_again(cluster, brought, kubeconfig):
    write_kubeconfig(kubeconfig, "http://127.0.0.1:1")

    def story() -> Story:
        yield lambda: failed_with("no connection to the API server: connection refused")
        assert (row().error_in, row().server) == ("connecting", "http://127.0.0.1:1")
        write_kubeconfig(kubeconfig, cluster.address)
        yield works_again

    play(story(), brought)
    assert row().server == cluster.address


def test_a_list_that_never_comes_to_its_end_is_told(cluster, brought):
    cluster.always["list", "pods"] = hangs

    def story() -> Story:
        yield lambda: False

    play(story(), brought, replace(QUICK, run=0.3, answer=30))
    assert row().error == "not all of the cluster was listed within 0.3 s"


def test_a_list_that_is_refused_is_told_and_tried_again(cluster, brought):
    refuse = True

    def bring(listing, *, live, guard, after):
        if refuse:
            raise RefusedError("the cluster lists no nodes")
        return brought(listing, live=live, guard=guard, after=after)

    def story() -> Story:
        nonlocal refuse
        yield lambda: failed_with("the cluster lists no nodes")
        assert (row().error_in, row().seen_at) == ("writing", None)
        refuse = False
        yield works_again
        assert row().seen_at is not None

    play(story(), bring)


def test_a_change_that_is_refused_is_a_failure_until_it_is_brought_in(cluster, brought):
    refuse = False

    def bring(listing, *, live, guard, after):
        if refuse:
            raise RefusedError("two pods of one name")
        return brought(listing, live=live, guard=guard, after=after)

    def story() -> Story:
        nonlocal refuse
        yield lambda: row().state == "watching"
        refuse = True
        cluster.put("pods", pod("b"))
        yield lambda: failed_with("two pods of one name")
        seen = row().seen_at
        yield lambda: row().failures == 3
        assert row().seen_at == seen
        refuse = False
        yield works_again

    play(story(), bring)
    assert brought.pods == {"llm/a", "llm/b"}


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away_for_a_moment_is_told_and_tried_again(cluster, brought):
    times = 0

    def bring(listing, *, live, guard, after):
        nonlocal times
        times += 1
        if times == 1:
            raise OperationalError("gone")
        return brought(listing, live=live, guard=guard, after=after)

    def story() -> Story:
        yield lambda: times == 1 and failed_with("the database could not take it")
        yield works_again

    play(story(), bring)


def test_a_fault_in_the_code_is_told_and_ends_the_run(cluster):
    def bring(listing, *, live, guard, after):
        raise KeyError("x")

    def story() -> Story:
        yield lambda: False

    with pytest.raises(KeyError):
        play(story(), bring)
    assert (row().state, row().error) == ("failing", "the sync broke off; the worker's log tells why")
