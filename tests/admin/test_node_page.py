"""A node's page: its GPUs and who holds them, what it takes and what it refuses."""

from __future__ import annotations

import re
from decimal import Decimal
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sizing.models import Gpu, Node, Placement, Replica
from tests import builders
from tests.admin.cluster import person


def page(client: Client, node: Node, **query: str) -> str:
    response = client.get(reverse("admin:sizing_node_change", args=[node.pk]), query)
    assert response.status_code == 200
    return response.content.decode()


def words(part: str) -> str:
    return " ".join(unescape(re.sub("<[^>]*>", " ", part)).split())


def card(body: str, heading: str) -> str:
    """The markup of one card, by the id of its heading."""
    (found,) = re.findall(rf'<section[^>]*aria-labelledby="{heading}".*?</section>', body, re.DOTALL)
    return str(found)


def rows(body: str, heading: str) -> list[str]:
    """The lines of a card's table, in words."""
    table = card(body, heading).partition("<tbody>")[2]
    return [words(line) for line in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)]


@pytest.fixture
def node(db: None) -> Node:
    """Four GPUs: a pair is held, a part of one, and one is unhealthy."""
    row = builders.node(
        gpus=4,
        cpu_millis=64000,
        pods=10,
        cost_per_hour=Decimal("31.2"),
        labels={"topology.kubernetes.io/zone": "eu-1a"},
        taints=[{"key": "dedicated", "value": "rag", "effect": "NoSchedule"}],
    )
    row.gpus.filter(index=3).update(healthy=False, used_outside_mib=2000)
    tolerates = [{"key": "dedicated", "operator": "Exists"}]
    llama = builders.model("llama", priority=100)
    pair = builders.variant(llama, "pair", 2, tolerations=tolerates, cpu_millis=1000)
    builders.variant(llama, "single", 1)
    small = builders.variant(
        builders.model("small"), "part", 1, gpu_memory_fraction=Decimal("0.4"), tolerations=tolerates
    )
    builders.replica("llama-0", pair, row, (0, 1))
    builders.replica("small-0", small, row, (2,), state="draining")
    return row


def test_the_node_is_said_in_a_sentence_with_its_figures(node: Node, boss: Client) -> None:
    said = words(card(page(boss, node), "node-heading"))
    assert "Open only to what tolerates dedicated=rag:NoSchedule; none of 4 GPUs is wholly free, but" in said
    assert "GPUs 4 free 0 held 3 unhealthy 1 millicores left of 64,000 63,000 pods left of 10 8" in said
    assert "cost per hour 31.2 cost per GPU and hour 7.8" in said
    assert "labels topology.kubernetes.io/zone=eu-1a" in said
    Node.objects.update(ready=False, schedulable=False)
    said = words(card(page(boss, node), "node-heading"))
    assert "Closed to new replicas: not ready and cordoned; none of 4 GPUs" in said
    assert "Uncordon …" in said


def test_gpus_are_drawn_and_listed_with_who_holds_them(node: Node, boss: Client) -> None:
    body = page(boss, node)
    drawn = card(body, "gpus-heading")
    assert 'aria-label="2 held, 1 shared, 1 unhealthy"' in drawn
    assert "<title>GPUs 0–1: llama-0 of llama holds all of it</title>" in drawn
    assert "held, colored by model" in drawn
    assert "would stop" not in drawn
    assert rows(body, "gpus-heading") == [
        "GPU 0 llama-0 , all of it healthy 0 81,559 0 NVIDIA-H100-80GB-HBM3",
        "GPU 1 llama-0 , all of it healthy 0 81,559 0 NVIDIA-H100-80GB-HBM3",
        "GPU 2 small-0 , 32,624 MiB (draining) healthy 48,935 81,559 0 NVIDIA-H100-80GB-HBM3",
        "GPU 3 nobody ✕ unhealthy 79,559 81,559 2,000 NVIDIA-H100-80GB-HBM3",
    ]
    assert rows(body, "replicas-heading") == [
        "llama-0 llama pair ready 0, 1 100 –",
        "small-0 small part draining 2 0 –",
    ]
    Gpu.objects.update(memory_mib=None)
    lines = rows(page(boss, node), "gpus-heading")
    assert [line.split("healthy ")[1].split(" ")[:2] for line in lines[1:4:2]] == [
        ["0", "unknown"],
        ["unknown", "unknown"],
    ]
    replica = reverse("admin:sizing_replica_change", args=[Replica.objects.get(name="llama-0").pk])
    assert drawn.count(f'href="{replica}"') == 2


def test_a_replica_that_goes_on_elsewhere_says_so(node: Node, boss: Client) -> None:
    other = builders.node("gpu-b1", 1)
    spanning = Replica.objects.get(name="small-0")
    Placement.objects.create(replica=spanning, gpu=other.gpus.get())
    found = rows(page(boss, node), "replicas-heading")
    assert found[1] == "small-0 small part draining 2 and more on 1 other node 0 –"


def test_all_variants_are_told_nearest_first_and_a_chosen_model_with_whom_it_could_stop(
    node: Node, boss: Client
) -> None:
    assert rows(page(boss, node), "takes-heading") == [
        "small part ✓ 1 takes 1 more open free GPUs 1 needed 1",
        "llama pair ✕ 0 0 of 4 GPUs are free, 2 are needed on one node too_few_free_gpus"
        " free GPUs 0 needed 2",
        "llama single ✕ 0 taints are not tolerated (dedicated=rag:NoSchedule) taint_not_tolerated",
    ]
    chosen = page(boss, node, model="llama")
    assert [row.partition(" ✕")[0] for row in rows(chosen, "takes-heading")] == ["llama pair", "llama single"]
    assert "what holds it has no lower priority" in rows(chosen, "takes-heading")[0]
    (one,) = rows(page(boss, node, model="llama", variant="single"), "takes-heading")
    assert one.startswith("llama single")
    # The variant of a model that was chosen before says nothing of this one.
    (one,) = rows(page(boss, node, model="small", variant="single"), "takes-heading")
    assert one.startswith("small part")
    assert 'No model "nope"' in words(page(boss, node, model="nope"))
    Node.objects.update(schedulable=False)
    assert "cordoned node_cordoned would take 1 replica if it were open" in words(page(boss, node))


def test_who_could_be_stopped_is_counted(node: Node, boss: Client) -> None:
    Replica.objects.filter(name="small-0").update(state="ready")
    node.gpus.update(healthy=True, used_outside_mib=0)
    (row,) = rows(page(boss, node, model="llama", variant="pair"), "takes-heading")
    assert "stopping others of lower priority here gives 1 more" in row


def test_what_may_not_be_seen_is_not_linked_nor_asked(node: Node) -> None:
    client = Client()
    client.force_login(person("nodes-only", "view_node"))
    body = page(client, node)
    assert "llama-0, all of it" in rows(body, "gpus-heading")[0]
    assert 'aria-labelledby="takes-heading"' not in body
    for kind in ("replica", "gpu", "servedmodel"):
        assert f"/admin/sizing/{kind}/" not in body
    assert 'name="action"' not in body


def test_the_buttons_ask_before_anything_changes(node: Node, boss: Client) -> None:
    body = page(boss, node)
    offered = re.findall(r'name="action" value="(\w+)"', body)
    assert offered == ["cordon", "drain"]
    for action in offered:
        asked = boss.post(
            reverse("admin:sizing_node_changelist"), {"action": action, "_selected_action": str(node.pk)}
        )
        assert asked.status_code == 200
        assert f'name="action" value="{action}"' in asked.content.decode()
    assert Node.objects.get().schedulable
    assert Replica.objects.get(name="llama-0").state == "ready"


def test_a_page_of_many_gpus_and_replicas_takes_as_many_queries_and_says_what_is_left_out(
    node: Node, boss: Client
) -> None:
    def queries(of: Node) -> int:
        page(boss, of)
        with CaptureQueriesContext(
            connection,
        ) as caught:
            page(boss, of, model="small")
        return len(caught)

    few = queries(node)
    small = Replica.objects.get(name="small-0").variant
    big = builders.node("big", 70)
    names = [f"s-{number:02}" for number in range(60)]
    for index, name in enumerate(names):
        builders.replica(name, small, big, (index,))
    assert queries(big) == few
    body = page(boss, big)
    assert "And 6 more: see GPUs." in words(card(body, "gpus-heading")).replace(" .", ".")
    assert "And 10 more: see Replicas." in words(card(body, "replicas-heading")).replace(" .", ".")


def test_a_node_without_gpus_says_what_to_do(boss: Client) -> None:
    said = words(page(boss, builders.node(gpus=0)))
    assert "Open; it has no GPUs." in said
    assert "No GPU is known here yet. Add them in the form below" in said
    assert "No model is known yet." in said


def test_the_form_is_folded_below_what_the_page_says_and_open_where_it_is_wrong(
    node: Node, boss: Client
) -> None:
    url = reverse("admin:sizing_node_change", args=[node.pk])
    closed, opened = '<details class="desk-fold"><summary>', '<details class="desk-fold" open><summary>'
    assert f"{closed}<h2>Change this node</h2>" in page(boss, node)
    assert opened in boss.post(url, {"name": ""}).content.decode()
    assert opened in page(boss, builders.node("bare", gpus=0))
    assert "desk-fold" not in boss.get(reverse("admin:sizing_node_add")).content.decode()
    viewer = Client()
    viewer.force_login(person("looks", "view_node", "view_replica"))
    assert f"{closed}<h2>All that is stored</h2>" in page(viewer, node)


def test_a_gpu_is_added_to_a_node_without_a_script(boss: Client) -> None:
    node = builders.node("gpu-z", 0)
    url = reverse("admin:sizing_node_change", args=[node.pk])
    body = boss.get(url).content.decode()
    assert 'name="gpus-0-index"' in body
    form = {"name": "gpu-z", "ready": "on", "schedulable": "on", "labels": "{}", "taints": "[]"}
    lines = {"gpus-TOTAL_FORMS": "1", "gpus-INITIAL_FORMS": "0", "gpus-0-node": str(node.pk)}
    gpu = {"gpus-0-index": "0", "gpus-0-type": "H100", "gpus-0-used_outside_mib": "0", "gpus-0-healthy": "on"}
    assert boss.post(url, form | lines | gpu).status_code == 302
    assert [(one.index, one.type) for one in node.gpus.all()] == [(0, "H100")]
    empty = {"gpus-0-index": "", "gpus-0-type": "", "gpus-0-used_outside_mib": "0", "gpus-0-healthy": "on"}
    kept = {"gpus-TOTAL_FORMS": "2", "gpus-INITIAL_FORMS": "1", "gpus-0-id": str(node.gpus.get().pk)}
    second = {name.replace("gpus-0", "gpus-1"): value for name, value in empty.items()}
    assert boss.post(url, form | lines | gpu | kept | second).status_code == 302
    assert node.gpus.count() == 1
