"""A watch that expires, breaks or falls silent goes on, and nothing is lost."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from tests.syncing.api_server import Handler, answers, closes_at_its_end, cuts, hangs, is_silent, sends
from tests.syncing.conftest import QUICK, Story, play, write_kubeconfig
from tests.syncing.made import pod
from tests.syncing.rows import failed_with, row, works_again

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("kubeconfig")]


EXPIRED = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'


@pytest.mark.parametrize("fault", [sends(EXPIRED), answers(410, "too old", "Expired")])
def test_a_watch_that_is_told_410_lists_its_kind_anew_and_so_sees_what_it_missed(cluster, brought, fault):
    def story() -> Story:
        yield lambda: brought.pods == {"llm/a"}
        cluster.once("watch", "pods", fault)
        cluster.objects["pods"]["llm/b"] = cluster.objects["pods"].pop("llm/a") | pod("b")
        cluster.end_watches("pods")
        yield lambda: brought.pods == {"llm/b"}
        cluster.put("pods", pod("c"))
        yield lambda: brought.pods == {"llm/b", "llm/c"}

    play(story(), brought)
    assert (row().relists, row().failures) == (1, 0)
    assert len(cluster.asked("list", "pods")) == 2
    assert len(cluster.asked("list", "nodes")) == 1


def test_a_watch_that_always_expires_at_once_waits_between_its_lists(cluster, brought):
    cluster.always["watch", "pods"] = sends(EXPIRED)

    def story() -> Story:
        yield lambda: failed_with("the watch ended with an error: too old")
        cluster.always.clear()
        yield works_again

    play(story(), brought)


def test_a_watch_that_ends_in_good_order_goes_on_where_it_was(cluster, brought):
    def story() -> Story:
        yield lambda: row().state == "watching"
        yield lambda: len(cluster.asked("watch", "pods")) == 1
        cluster.put("pods", pod("b"))
        yield lambda: "llm/b" in brought.pods
        version = str(cluster.version)
        cluster.end_watches("pods")
        yield lambda: len(cluster.asked("watch", "pods")) == 2
        assert cluster.asked("watch", "pods")[1].query["resourceVersion"] == version

    cluster.bookmarks = False
    play(story(), brought)
    assert row().failures == 0
    assert len(cluster.asked("list", "pods")) == 1


HALF = b'{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"ha'


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (cuts(HALF), "the connection to the API server broke off"),
        (sends(HALF), "the watch broke off in the middle of a line"),
        (sends(b"<html>busy</html>\n"), "a line of the watch is not an event in JSON"),
        (sends(b'["ADDED"]\n'), "a line of the watch is not an event in JSON"),
        (sends(b""), "the API server ended the watch at once"),
        (is_silent, "the API server was silent for too long"),
        (hangs, "the API server was silent for too long"),
        (answers(500, "panic"), "the API server answered 500 Internal Server Error: panic"),
        (answers(401), "the cluster refused the token (401 Unauthorized)"),
        (
            sends(b'{"type":"ERROR","object":{"code":500,"message":"etcd\\nlost"}}\n'),
            "the watch ended with an error: etcd lost",
        ),
    ],
)
def test_a_watch_that_breaks_is_told_and_goes_on_from_where_it_was(cluster, brought, fault, words):
    def story() -> Story:
        yield lambda: row().state == "watching"
        cluster.once("watch", "pods", fault)
        cluster.end_watches("pods")
        yield lambda: failed_with(words)
        assert row().error_in == "watching pods"
        cluster.put("pods", pod("b"))
        yield lambda: "llm/b" in brought.pods
        yield works_again

    play(story(), brought)
    assert len(cluster.asked("list", "pods")) == 1


def test_an_endless_line_is_not_kept(cluster, brought, monkeypatch):
    monkeypatch.setattr("sizing.syncing.watching.LONGEST_LINE", 1000)
    cluster.once("watch", "pods", sends(b"x" * 1001))

    def story() -> Story:
        yield lambda: failed_with("a line of the watch has no end")
        yield works_again

    play(story(), brought)


def test_a_token_that_is_refused_while_watching_is_read_anew(cluster, brought, kubeconfig):
    cluster.token = "old"
    write_kubeconfig(kubeconfig, cluster.address, token="old")

    def story() -> Story:
        yield lambda: row().state == "watching"
        cluster.token = "new"
        cluster.end_watches("pods")
        yield lambda: failed_with("the cluster refused the token (401 Unauthorized)")
        write_kubeconfig(kubeconfig, cluster.address, token="new")
        cluster.put("pods", pod("b"))
        yield lambda: "llm/b" in brought.pods
        yield works_again

    play(story(), brought)
    assert len(cluster.asked("list", "pods")) == 1


def test_what_breaks_while_all_waits_for_the_next_try_is_no_further_failure(cluster, brought, caplog):
    broken = threading.Event()

    def breaks_later(handler: Handler) -> None:
        handler.begin_stream()
        broken.wait(20)
        handler.close_connection = True

    def story() -> Story:
        yield lambda: row().state == "watching"
        cluster.once("watch", "pods", answers(500, "restarts"))
        cluster.end_watches("pods")
        yield lambda: failed_with("restarts")
        broken.set()
        yield works_again

    cluster.once("watch", "jobs", breaks_later)
    play(story(), brought, replace(QUICK, first_pause=3, longest_pause=3, silence=20))
    assert sum("the cluster sync failed" in message for message in caplog.messages) == 1
    assert len(cluster.asked("watch", "jobs")) == 2


def test_without_a_change_the_cluster_is_seen_as_long_as_its_watches_live(cluster, brought):
    def story() -> Story:
        yield lambda: row().state == "watching"
        first = row().seen_at
        yield lambda: row().seen_at > first
        cluster.always["watch", "nodes"] = is_silent
        cluster.end_watches("nodes")
        yield lambda: row().failures == 1
        silent = row().seen_at
        yield lambda: row().failures == 2
        assert row().seen_at == silent

    play(story(), brought, replace(QUICK, settle=5))
    assert len(brought.listings) == 1


def test_a_watch_whose_answer_does_not_begin_is_a_failure_long_before_silence_is(cluster, brought):
    cluster.always["watch", "nodes"] = hangs

    def story() -> Story:
        yield lambda: failed_with("the API server was silent for too long")
        assert row().error_in == "watching nodes"
        yield lambda: row().failures == 2
        cluster.always.clear()
        yield works_again

    play(story(), brought, replace(QUICK, begin=0.3, silence=300))


def test_a_failure_is_not_over_before_the_watch_answers(cluster, brought):
    def story() -> Story:
        yield lambda: row().state == "watching"
        cluster.once("watch", "pods", answers(500, "restarts"))
        cluster.always["watch", "pods"] = hangs
        cluster.end_watches("pods")
        yield lambda: row().failures == 1
        yield lambda: len(cluster.asked("watch", "pods")) == 3
        yield lambda: row().failures == 2

    play(story(), brought, replace(QUICK, settle=0.01))


@pytest.mark.parametrize("fault", [is_silent, closes_at_its_end])
def test_a_watch_that_has_begun_may_be_silent_for_longer(cluster, brought, fault):
    cluster.always["watch", "pods"] = fault

    def story() -> Story:
        yield lambda: bool(cluster.asked("watch", "pods"))
        until = time.monotonic() + 0.6
        yield lambda: time.monotonic() > until

    play(story(), brought, replace(QUICK, begin=0.2, silence=20))
    assert row().failures == 0
    assert len(cluster.asked("watch", "pods")) == 1


def test_an_error_of_a_watch_that_repeats_the_token_is_told_without_it(cluster, brought, kubeconfig, caplog):
    write_kubeconfig(kubeconfig, cluster.address, token="s3cret")
    error = b'{"type":"ERROR","object":{"code":500,"message":"lost Bearer s3cret, a token=s3cret"}}\n'
    cluster.once("watch", "pods", sends(error))

    def story() -> Story:
        yield lambda: failed_with("the watch ended with an error: lost Bearer *** a token=***")

    play(story(), brought)
    assert "s3cret" not in caplog.text
