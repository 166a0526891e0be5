"""The admin's home: the fleet in one picture, the question in reach, and what an empty desk says."""

from __future__ import annotations

import gc
import re
import weakref
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import escape

from sizing import snapshot
from sizing.admin.board import fleet as board_fleet
from sizing.admin.board.spread import shares, spread
from sizing.domain.board import Counts
from sizing.domain.picture import ZONE_LABEL
from sizing.models import Gpu, Node, ServedModel, Variant
from tests import builders
from tests.admin.cluster import person

HOME = "/admin/"
L40S = "NVIDIA-L40S"


def in_zone(zone: str) -> dict[str, Any]:
    return {"labels": {ZONE_LABEL: zone}}


@pytest.fixture
def two_zones(db: None) -> Variant:
    """Four H100 nodes in eu-a, of which one is cordoned, and two L40S nodes in eu-b, one GPU unhealthy."""
    variant = builders.variant(builders.model("meta-llama/Llama-70B"), "tp4", 4)
    for number in range(4):
        builders.node(f"gpu-a{number}", 8, schedulable=number != 3, **in_zone("eu-a"))
    for number in range(2):
        builders.node(f"l40s-b{number}", 4, L40S, **in_zone("eu-b"))
    Gpu.objects.filter(node__name="l40s-b1", index=3).update(healthy=False)
    builders.replica("llama-0", variant, Node.objects.get(name="gpu-a0"), (0, 1, 2, 3))
    return variant


def board(client: Client, **query: str) -> str:
    response = client.get(HOME, query)
    assert response.status_code == 200
    return response.content.decode()


def headings(body: str) -> list[str]:
    return [re.sub("<[^>]*>", "", found) for found in re.findall("<h3>(.*?)</h3>", body)]


def rows(body: str) -> list[str]:
    return re.findall(r'<text class="desk-pic-name"[^>]*>([^<]*)<', body)


def figures(body: str) -> dict[str, str]:
    part = body[body.index('board-figures">') : body.index("</dl>")]
    return dict(re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", part))


def test_a_small_fleet_is_drawn_node_by_node_with_what_there_is(two_zones: Variant, boss: Client) -> None:
    body = board(boss)
    assert headings(body) == ["eu-a · NVIDIA-H100-80GB-HBM3", "eu-b · NVIDIA-L40S"]
    assert rows(body) == ["gpu-a0", "gpu-a1", "gpu-a2", "gpu-a3", "l40s-b0", "l40s-b1"]
    assert figures(body) == {
        "nodes": "6",
        "GPUs": "40",
        "free": "27",
        "held": "4",
        "free on closed nodes": "8",
        "unhealthy": "1",
        "nodes closed": "1",
    }
    assert (
        "4 nodes, 32 GPUs · 20 free, at most 8 on one node · 8 free on closed nodes · 1 node closed" in body
    )
    assert "2 nodes, 8 GPUs · 7 free, at most 4 on one node · 1 unhealthy" in body
    assert "llama-0 of meta-llama/Llama-70B holds all of it" in body
    node = Node.objects.get(name="gpu-a0")
    assert f'href="{reverse("admin:sizing_node_change", args=[node.pk])}"' in body
    said = "Free GPUs per open node: 1 node with 3 free, 2 nodes with 4 free, 2 nodes with 8 free"
    assert f'aria-label="{said}"' in body
    assert "style=" not in body


def test_filters_keep_to_a_zone_a_type_or_a_model_and_say_so(two_zones: Variant, boss: Client) -> None:
    body = board(boss, zone="eu-b")
    assert rows(body) == ["l40s-b0", "l40s-b1"]
    assert "2 of 6 nodes with GPUs match." in body
    assert '<option value="eu-b" selected>eu-b</option>' in body
    assert '<a href="/admin/">Show all</a>' in body
    assert rows(board(boss, type="h100-80gb-hbm3", by="type"))[0] == "gpu-a0"
    body = board(boss, model="meta-llama/Llama-70B", by="zone")
    assert (headings(body), rows(body)) == (["eu-a"], ["gpu-a0"])
    assert '<a href="/admin/?by=zone">Show all</a>' in body
    body = board(boss, zone="eu-b", model="meta-llama/Llama-70B")
    assert "No node matches: none with these GPUs holds a replica of “meta-llama/Llama-70B”." in body
    assert headings(board(boss, by="nonsense", page="x", open="nothing")) == headings(board(boss))
    assert "left out of all figures" not in board(boss, type=L40S)
    mixed = builders.node("gpu-c0", 1)
    Gpu.objects.create(node=mixed, index=1, type=L40S, used_outside_mib=9000, memory_mib=46068)
    body = board(boss, type=L40S, zone="–")
    assert f"GPUs of the type {L40S} alone; 1 of other types is left out of all figures." in body
    assert figures(body) == {"nodes": "1", "GPUs": "1", "free": "0", "partly free": "1", "used outside": "1"}
    assert rows(board(boss, zone="–")) == ["gpu-c0"]
    assert '<option value="–">no zone</option>' in board(boss)
    body = board(boss, zone="<script>alert(1)</script>")
    assert "<script>alert" not in body
    assert f'value="{escape("<script>alert(1)</script>")}" selected' in body


def test_too_many_nodes_fold_into_groups_that_open_page_by_page(
    two_zones: Variant, boss: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_fleet, "WEIGHT_A_PAGE", 24)
    body = board(boss, targets_page="2")
    assert rows(body) == []
    assert headings(body) == ["eu-a · NVIDIA-H100-80GB-HBM3", "eu-b · NVIDIA-L40S"]
    assert "2 groups; each opens to its nodes." in body
    (link,) = re.findall(r'<h3><a href="([^"]*eu-a[^"]*)"', body)
    assert "targets_page=2" in link
    body = boss.get(HOME + link.replace("&amp;", "&").partition("#")[0]).content.decode()
    assert (headings(body), rows(body)) == (["eu-a · NVIDIA-H100-80GB-HBM3"], ["gpu-a0", "gpu-a1"])
    assert "page 1 of 2: 1 to 2 of 4 nodes" in body
    assert '<a href="?targets_page=2#fleet">All 2 groups</a>' in body
    (link,) = re.findall(r'<a href="([^"]*)">Next</a>', body)
    body = boss.get(HOME + link.replace("&amp;", "&").partition("#")[0]).content.decode()
    assert rows(body) == ["gpu-a2", "gpu-a3"]
    assert ">Next</a>" not in body
    assert ">Previous</a>" in body
    # A filter that leaves one group has nothing to fold.
    assert rows(board(boss, zone="eu-b", page="99")) == ["l40s-b0", "l40s-b1"]
    monkeypatch.setattr(board_fleet, "GROUPS_A_PAGE", 1)
    body = board(boss, page="2")
    assert headings(body) == ["eu-b · NVIDIA-L40S"]
    assert "page 2 of 2: 2 to 2 of 2 groups" in body


def test_the_board_shows_the_fleet_as_it_is_after_each_change(two_zones: Variant, boss: Client) -> None:
    assert figures(board(boss))["nodes closed"] == "1"
    Node.objects.filter(name="gpu-a1").update(schedulable=False)
    assert figures(board(boss))["nodes closed"] == "2"
    builders.replica("llama-1", two_zones, Node.objects.get(name="gpu-a2"), (0, 1, 2, 3))
    assert figures(board(boss))["held"] == "8"
    assert figures(board(boss)) == figures(board(boss))


def test_the_board_takes_as_many_queries_for_many_nodes_as_for_few(
    two_zones: Variant, boss: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = builders.profile()
    builders.measurement(two_zones, profile)

    def queries(**query: str) -> int:
        board(boss, zone="eu-a")  # reads the snapshot
        with CaptureQueriesContext(connection) as captured:
            board(boss, **query)
        return len(captured)

    builders.target(two_zones.model, profile=profile)
    few = queries()
    for number in range(30):
        node = builders.node(f"more-{number:02}", 4, **in_zone(f"eu-{number % 5}"))
        variant = builders.variant(builders.model(f"model-{number}"), "tp1", 1)
        builders.replica(f"one-{number}", variant, node, (0,))
        builders.target(variant.model, profile=profile)
    assert queries() == few
    assert few <= 15
    monkeypatch.setattr(board_fleet, "WEIGHT_A_PAGE", 24)
    assert queries(by="type") == few


def test_who_may_not_see_nodes_and_replicas_is_told_so(two_zones: Variant, viewer: Client) -> None:
    assert rows(board(viewer))
    assert "GPUs" in figures(board(viewer))
    client = Client()
    client.force_login(person("half", "view_node"))
    body = board(client)
    assert "You are not allowed to see nodes and replicas." in body
    assert "gpu-a0" not in body
    assert 'id="ask"' not in body
    assert "data-live" not in body


def test_an_empty_desk_says_how_it_is_filled(boss: Client, viewer: Client) -> None:
    body = board(boss)
    assert "No node is known yet." in body
    assert "python manage.py load_inventory FILE" in body
    for name in ("sizing_inventoryload_add", "sizing_node_add", "sizing_servedmodel_add"):
        assert f'href="{reverse(f"admin:{name}")}"' in body, name
    assert "No model is known yet." in body
    body = board(viewer)
    assert "python manage.py load_inventory FILE" in body
    assert reverse("admin:sizing_node_add") not in body
    builders.node("cpu-1", 0)
    body = board(boss)
    assert "No node has GPUs." in body
    builders.node("gpu-1", 1)
    assert "1 more node without GPUs" in board(boss)


def test_the_board_is_the_first_link_of_the_header(boss: Client) -> None:
    body = board(boss)
    header = body[body.index('class="desk-nav"') :]
    assert header[header.index("<a ") :].startswith('<a href="/admin/" aria-current="page">Board</a>')
    assert '<h1 class="visually-hidden">Board</h1>' in body


def test_a_page_of_nodes_is_shorter_where_more_replicas_share_the_gpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(board_fleet, "WEIGHT_A_PAGE", 10)
    assert board_fleet.begin_of_pages([4, 4, 2, 1, 9, 30, 1]) == [0, 3, 5, 6]
    assert board_fleet.begin_of_pages([3]) == [0]


def test_what_is_kept_of_a_fleet_goes_with_it(two_zones: Variant, boss: Client) -> None:
    board(boss)
    fleet = weakref.ref(snapshot.current().fleet)
    Node.objects.filter(name="gpu-a1").update(schedulable=False)
    board(boss)
    gc.collect()
    assert fleet() is None


# The question


def asked(client: Client, **query: str) -> str:
    return str(client.get(reverse("admin:ask"), query)["Location"])


def test_a_name_or_a_part_of_one_leads_to_the_target_page(two_zones: Variant, viewer: Client) -> None:
    builders.model("meta-llama/Llama-70B-Instruct")
    llama, other = ServedModel.objects.order_by("name")
    page, instruct = (reverse("admin:sizing_servedmodel_target", args=[m.pk]) for m in (llama, other))
    body = board(viewer)
    assert f'action="{reverse("admin:ask")}"' in body
    assert f'<a href="{page}">meta-llama/Llama-70B</a>' in body
    assert '<option value="meta-llama/Llama-70B-Instruct"></option>' in body
    assert asked(viewer, model="meta-llama/Llama-70B", tokens_per_sec="5000") == f"{page}?tokens_per_sec=5000"
    assert asked(viewer, model=" 70b-ins", tokens_per_sec=" 5,000&x ") == (
        f"{instruct}?tokens_per_sec=5%2C000%26x"
    )
    assert asked(viewer, model="instruct") == instruct


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "Name the model that you ask about."),
        ("gpt", 'No model is called "gpt". Pick one of the list under the field.'),
        (
            "gpt-trainer",
            '"gpt-trainer" serves no tokens: its workload is "other", so there is nothing to ask of it.',
        ),
        ("llama", '"llama" may be llama-1 and llama-2: name one of them.'),
    ],
)
def test_a_name_that_does_not_tell_leads_back_with_what_to_do(viewer: Client, name: str, said: str) -> None:
    for model in ("llama-1", "llama-2"):
        builders.model(model)
    builders.model("gpt-trainer", workload="other")
    response = viewer.get(reverse("admin:ask"), {"model": name, "tokens_per_sec": "777"}, follow=True)
    typed = f"ask_model={name}&ask_rate=777" if name else "ask_rate=777"
    assert response.redirect_chain[0][0] == f"{HOME}?{typed}"
    assert 'autocomplete="off" value="777"' in response.content.decode()
    assert not name or f' value="{name}">' in response.content.decode()
    assert [str(message) for message in response.context["messages"]] == [said]


def test_asking_needs_the_permission_to_view_models(outsider: Client) -> None:
    assert outsider.get(reverse("admin:ask"), {"model": "x"}).status_code == 403


# Small drawings


def counts(widest: int, *free: tuple[int, int]) -> Counts:
    nodes = sum(many for _, many in free)
    return Counts(nodes, 0, 10, 5, 2, 0, 1, 2, 0, 0, widest, free)


def test_the_spread_has_a_column_for_each_number_of_free_gpus_or_each_doubling() -> None:
    def labels(found: Counts) -> list[str]:
        return re.findall(r'<text x="[^"]*" y="44">([^<]*)<', spread(found))

    assert labels(counts(4, (0, 1200), (4, 1))) == ["0", "1", "2", "3", "4"]
    assert labels(counts(9, (0, 1))) == ["0", "1", "2", "3–4", "5–8", "9–16"]
    drawn = spread(counts(9, (0, 1200), (3, 1), (4, 1)))
    assert 'aria-label="Free GPUs per open node: 1,200 nodes with 0 free, 2 nodes with 3–4 free"' in drawn
    assert ">1,200</text>" in drawn
    assert spread(counts(8)) == ""


def test_the_shares_add_up_to_the_whole_bar() -> None:
    drawn = shares(counts(8, (0, 1)))
    assert re.findall(r'board-share-(\w+)" x="([\d.]+)" y="0" width="([\d.]+)"', drawn) == [
        ("held", "0.0", "500.0"),
        ("outside", "500.0", "100.0"),
        ("unhealthy", "600.0", "200.0"),
        ("free", "800.0", "200.0"),
    ]
    assert "<title>5 GPUs held</title>" in drawn
