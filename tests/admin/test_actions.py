"""Actions of lists: each says what it will change, and does that and no more once it is confirmed."""

from __future__ import annotations

from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from sizing.models import Node, Refresh, Replica, Variant
from tests import builders
from tests.admin.cluster import person
from tests.admin.test_measurement_page import words
from tests.admin.test_writing import act, confirm, hidden

NODES, REPLICAS = "admin:sizing_node_changelist", "admin:sizing_replica_changelist"


@pytest.fixture
def llama(db: None) -> Variant:
    """Three replicas of llama, which wants two: two on gpu-a1, one over gpu-a1 and gpu-a2; a failed one."""
    variant = builders.variant(builders.model("llama", min_replicas=2), "x1", 1)
    one, two = builders.node("gpu-a1"), builders.node("gpu-a2", source="kubernetes")
    builders.replica("llama-0", variant, one, (0,))
    builders.replica("llama-1", variant, one, (1,), state="starting")
    wide = builders.replica("llama-2", variant, one, (2,))
    wide.placements.create(gpu=two.gpus.get(index=0))
    builders.replica("llama-3", variant, one, (3,), state="failed")
    return variant


def asked(client: Client, url: str, action: str, rows: Any) -> str:
    """The text of the page that asks for a confirmation; nothing is changed by it."""
    response = act(client, url, action, list(rows), index="0")
    assert response.status_code == 200
    assert 'name="confirmed"' in response.content.decode(), words(response.content.decode())
    assert not LogEntry.objects.exists()
    return words(unescape(response.content.decode()))


def done(client: Client, url: str, action: str, rows: Any) -> list[str]:
    """What is said once the action is confirmed."""
    response = confirm(client, url, action, list(rows))
    assert response.status_code == 302
    return said(client, url)


def said(client: Client, url: str) -> list[str]:
    return [str(message) for message in client.get(reverse(url)).context["messages"]]


def states() -> list[str]:
    return list(Replica.objects.order_by("name").values_list("state", flat=True))


def test_a_node_is_drained_with_all_that_serves_there(llama: Variant, boss: Client) -> None:
    builders.node("gpu-a3")
    rows = Node.objects.filter(name="gpu-a2")
    text = asked(boss, NODES, "drain", rows)
    assert "Drain: cordon 1 node and mark 1 replica draining?" in text
    assert "gpu-a2: open → cordoned" in text
    assert "llama-2 (llama on gpu-a1, gpu-a2): ready → draining" in text
    assert "What comes of it llama: 3 running → 2" in text
    assert (
        "One of them is kept by the cluster, whose next import or sync overwrites this: use kubectl drain"
        in text
    )
    text = asked(boss, NODES, "drain", Node.objects.filter(name="gpu-a1"))
    assert "Drain: cordon 1 node and mark 3 replicas draining?" in text
    assert "llama: 3 running → 0, below its minimum of 2" in text
    assert "kept by the cluster" not in text
    assert done(boss, NODES, "drain", Node.objects.filter(name="gpu-a1")) == [
        "1 node cordoned, 3 replicas marked draining. Stop them where they run; then remove them here."
    ]
    assert list(Node.objects.order_by("name").values_list("schedulable", flat=True)) == [False, True, True]
    assert states() == ["draining", "draining", "draining", "failed"]
    history = LogEntry.objects.order_by("object_repr").values_list("object_repr", flat=True)
    assert list(history) == ["gpu-a1", "llama-0", "llama-1", "llama-2"]
    response = act(boss, NODES, "drain", list(Node.objects.filter(name="gpu-a1")), index="0")
    assert response.status_code == 302
    assert said(boss, NODES) == [
        "Nothing to change: all selected nodes are cordoned already, and nothing serves there."
    ]


@pytest.mark.parametrize("action", ["cordon", "uncordon", "drain"])
def test_of_nodes_that_are_gone_only_that_is_said(boss: Client, action: str) -> None:
    rows = [builders.node("gpu-a1", schedulable=action != "uncordon")]
    (digest,) = hidden(act(boss, NODES, action, rows).content.decode(), "confirmed")
    Node.objects.all().delete()
    assert act(boss, NODES, action, rows, confirmed=digest).status_code == 302
    assert said(boss, NODES) == ["Nothing to change: the selected nodes are there no more."]


def test_to_drain_needs_leave_to_change_replicas_too(llama: Variant) -> None:
    client = Client()
    client.force_login(person("nodes-only", "view_node", "change_node"))
    assert '<option value="drain"' not in client.get(reverse(NODES)).content.decode()
    act(client, NODES, "drain", list(Node.objects.all()), confirmed="yes")
    assert Node.objects.filter(schedulable=False).count() == 0
    assert "draining" not in states()


def test_replicas_are_marked_draining_and_ready_again(llama: Variant, boss: Client) -> None:
    text = asked(boss, REPLICAS, "mark_draining", Replica.objects.all())
    assert "Mark 3 replicas draining?" in text
    assert "llama-1 (llama on gpu-a1): starting → draining" in text
    assert "llama: 3 running → 0, below its minimum of 2" in text
    some = Replica.objects.filter(name__in=["llama-0", "llama-3"])
    assert done(boss, REPLICAS, "mark_draining", some) == ["1 replica is marked draining now."]
    assert states() == ["draining", "starting", "ready", "failed"]
    assert act(boss, REPLICAS, "mark_draining", list(some), index="0").status_code == 302
    assert said(boss, REPLICAS) == ["Nothing to change: no selected replica is ready or starting."]
    LogEntry.objects.all().delete()
    assert "llama-0 (llama): draining → ready" in asked(boss, REPLICAS, "mark_ready", Replica.objects.all())
    assert done(boss, REPLICAS, "mark_ready", Replica.objects.all()) == ["1 replica is marked ready now."]
    assert states() == ["ready", "starting", "ready", "failed"]


def test_what_was_not_confirmed_is_asked_again_and_nothing_is_done_before(
    llama: Variant, boss: Client
) -> None:
    rows = list(Node.objects.filter(name="gpu-a1"))
    asking = act(boss, NODES, "drain", rows, index="0").content.decode()
    (digest,) = hidden(asking, "confirmed")
    names = hidden(asking, "named")
    assert names == ["gpu-a1", "llama-0", "llama-1", "llama-2"]
    Replica.objects.filter(name="llama-1").update(state="failed")
    builders.replica("new-0", llama, rows[0], (4,))
    again = act(boss, NODES, "drain", rows, confirmed=digest, named=names).content.decode()
    text = words(unescape(again))
    assert (
        "Nothing is changed: since you looked, what this changes has become something else. New: new-0."
        " Gone: llama-1. See the list as it is now." in text
    )
    assert "new-0 (llama on gpu-a1): ready → draining" in text
    assert states() == ["ready", "failed", "ready", "failed", "ready"]
    assert Node.objects.get(name="gpu-a1").schedulable
    (digest,) = hidden(again, "confirmed")
    assert act(boss, NODES, "drain", rows, confirmed=digest).status_code == 302
    assert states() == ["draining", "failed", "draining", "failed", "draining"]
    # The second of two who confirm the same finds it done.
    assert act(boss, NODES, "drain", rows, confirmed=digest).status_code == 302
    assert "Nothing to change: all selected nodes are cordoned already" in said(boss, NODES)[-1]


def test_a_replica_that_was_made_anew_by_its_name_is_another_one(llama: Variant, boss: Client) -> None:
    nodes = list(Node.objects.filter(name="gpu-a1"))
    (digest,) = hidden(act(boss, NODES, "drain", nodes).content.decode(), "confirmed")
    rows = list(Replica.objects.filter(name__in=["llama-0", "llama-2"]))
    Replica.objects.filter(name="llama-2").delete()
    builders.replica("llama-2", llama, nodes[0], (2,))
    text = words(act(boss, NODES, "drain", nodes, confirmed=digest).content.decode())
    assert "Nothing is changed" in text
    assert "draining" not in states()
    Replica.objects.filter(name="llama-0").delete()
    act(boss, REPLICAS, "mark_draining", rows)
    nothing = "Nothing to change: no selected replica is ready or starting."
    assert said(boss, REPLICAS)[-1] == f"{nothing} 2 of the selected are there no more."


def test_a_long_confirmation_names_the_first_and_counts_all(boss: Client) -> None:
    Node.objects.bulk_create(Node(name=f"bare-{i:03}") for i in range(60))
    text = asked(boss, NODES, "cordon", Node.objects.all())
    assert "Cordon 60 nodes?" in text
    assert "bare-049: open → cordoned, 0 of 0 GPUs held and 10 more" in text
    assert done(boss, NODES, "cordon", Node.objects.all()) == ["60 nodes are cordoned now."]


def test_replicas_are_measured_anew_on_themselves(llama: Variant, boss: Client) -> None:
    rows = Replica.objects.filter(name__in=["llama-0", "llama-2"])
    act(boss, REPLICAS, "refresh_now", list(rows), index="0")
    assert said(boss, REPLICAS) == ["Not measured: llama (x1): it has no default profile; give it one."]
    llama.model.default_profile = builders.profile("chat")
    llama.model.save()
    act(boss, REPLICAS, "refresh_now", list(rows), index="0")
    assert said(boss, REPLICAS) == [
        "Not measured: llama (x1) on chat: llama-0: it is not marked benchable;"
        " llama-2: it is not marked benchable."
    ]
    Replica.objects.filter(state="ready").update(benchable=True, endpoint="http://10.0.0.7:8000/v1")
    text = asked(boss, REPLICAS, "refresh_now", Replica.objects.filter(name="llama-2"))
    assert "llama (x1) on chat: measured on llama-2" in text
    done(boss, REPLICAS, "refresh_now", Replica.objects.filter(name="llama-2"))
    refresh = Refresh.objects.select_related("replica", "profile").get()
    assert (str(refresh.replica), str(refresh.profile)) == ("llama-2", "chat")
    act(boss, REPLICAS, "refresh_now", list(rows), index="0")
    assert said(boss, REPLICAS) == [
        f"Not measured: llama (x1) on chat: refresh {refresh.pk} is queued already."
    ]


def test_variants_are_measured_anew_on_their_models_profile(llama: Variant, boss: Client) -> None:
    llama.model.default_profile = builders.profile("chat")
    llama.model.save()
    builders.variant(llama.model, "x2", 2)
    Replica.objects.filter(state="ready").update(benchable=True, endpoint="http://10.0.0.7:8000/v1")
    url = "admin:sizing_variant_changelist"
    text = asked(boss, url, "refresh_now", Variant.objects.all())
    assert "Take 1 measurement anew?" in text
    assert "llama (x1) on chat: measured on one of llama-0 and llama-2" in text
    assert "llama (x2) on chat: left out, llama (x2) has no replica to measure" in text
    assert done(boss, url, "refresh_now", Variant.objects.all()) == ["1 refresh is queued; see Refreshes."]
