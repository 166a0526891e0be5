"""Lists: filters of few choices, search, what an empty one says, and the table to be downloaded."""

from __future__ import annotations

import csv
import io
from html import unescape
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sizing.admin.choosing import OFFERED
from sizing.admin.empty import WORDS
from sizing.models import Gpu, Node, Replica, ServedModel, Variant
from tests import builders
from tests.admin.cluster import make_everything

ZONE = "topology.kubernetes.io/zone"
LISTS = [model._meta.model_name for model in admin.site._registry if model._meta.app_label == "sizing"]


def url(name: str, page: str = "changelist") -> str:
    return reverse(f"admin:sizing_{name}_{page}")


def names(client: Client, name: str, **query: Any) -> list[str]:
    """The rows of a list, by name."""
    response = client.get(url(name), query)
    assert response.status_code == 200, query
    return [str(row) for row in response.context["cl"].result_list]


@pytest.fixture
def zones(db: None) -> None:
    builders.node("gpu-a1", 2, labels={ZONE: "eu-1a", "rack": "r7"})
    builders.node("gpu-a2", 2, "L4", labels={ZONE: "eu-1a"}, schedulable=False)
    builders.node("gpu-b1", 1, labels={ZONE: "eu-1b"}, ready=False, stale=True)
    builders.node("bare", 0)


def test_nodes_are_filtered_by_state_zone_and_type(zones: None, boss: Client) -> None:
    assert names(boss, "node", state="open") == ["bare", "gpu-a1"]
    assert names(boss, "node", state="cordoned") == ["gpu-a2"]
    assert names(boss, "node", state="not-ready") == names(boss, "node", state="stale") == ["gpu-b1"]
    assert names(boss, "node", zone="eu-1a") == ["gpu-a1", "gpu-a2"]
    assert names(boss, "node", zone="eu-1a", gpu_type="L4") == ["gpu-a2"]
    assert names(boss, "node", zone="-") == ["bare"]
    assert names(boss, "node", zone="eu-9z") == []
    body = boss.get(url("node")).content.decode()
    for query in ("?zone=eu-1a", "?zone=eu-1b", "?zone=-", "?gpu_type=L4", "?state=not-ready"):
        assert f'href="{query}"' in body
    assert names(boss, "gpu", zone="eu-1b") == ["gpu-b1 GPU 0"]
    Node.objects.filter(name="gpu-b1").update(labels={ZONE: "eu-1c"})
    assert 'href="?zone=eu-1c"' in boss.get(url("node")).content.decode()


def test_nodes_are_found_by_name_label_and_uuid(zones: None, boss: Client) -> None:
    Gpu.objects.filter(node__name="gpu-a2", index=1).update(uuid="GPU-7f3a")
    assert names(boss, "node", q="A1") == ["gpu-a1"]
    assert names(boss, "node", q="zone=eu-1b") == ["gpu-b1"]
    assert names(boss, "node", q="rack=r7") == ["gpu-a1"]
    assert names(boss, "node", q="rack=r8") == []
    assert names(boss, "node", q="7f3a") == ["gpu-a2"]
    assert names(boss, "node", q="eu-1a gpu-a2") == ["gpu-a2"]
    assert names(boss, "node", q="100%") == []


def test_gpus_are_filtered_by_whether_they_are_held(zones: None, boss: Client) -> None:
    variant = builders.variant(builders.model(), "x1", 1)
    builders.replica("r0", variant, Node.objects.get(name="gpu-a1"), (0,))
    builders.replica("r1", variant, Node.objects.get(name="gpu-a1"), (1,), state="pending")
    assert names(boss, "gpu", held="yes") == ["gpu-a1 GPU 0"]
    assert names(boss, "gpu", held="no", zone="eu-1a", gpu_type=builders.H100) == ["gpu-a1 GPU 1"]


def test_replicas_are_filtered_by_model_and_node(zones: None, boss: Client) -> None:
    for i, node in enumerate(("gpu-a1", "gpu-b1")):
        variant = builders.variant(builders.model(f"m{i}"), "x1", 1)
        builders.replica(f"r{i}", variant, Node.objects.get(name=node), (0,))
    idle = builders.model("idle")
    one = ServedModel.objects.get(name="m1")
    assert names(boss, "replica", model=one.pk) == ["r1"]
    assert names(boss, "replica", node=Node.objects.get(name="gpu-a1").pk) == ["r0"]
    assert names(boss, "replica", model="x") == names(boss, "replica", node="1e9") == []
    body = boss.get(url("replica")).content.decode()
    assert f'href="?model={one.pk}"' in body
    assert "idle" not in body
    assert "idle" in boss.get(url("replica"), {"model": idle.pk}).content.decode()


def test_a_filter_never_offers_thousands(boss: Client) -> None:
    models = ServedModel.objects.bulk_create(ServedModel(name=f"m{i:03}") for i in range(45))
    variants = Variant.objects.bulk_create(Variant(model=model, name="v", gpus=1) for model in models)
    Replica.objects.bulk_create(
        Replica(name=f"r{i:03}", variant=v, state="pending") for i, v in enumerate(variants)
    )
    Node.objects.bulk_create(Node(name=f"n{i:03}", labels={ZONE: f"z{i:03}"}) for i in range(45))
    for i in range(45):
        builders.profile(f"p{i:03}")
    for name, parameter, offered in (("replica", "model=", 0), ("node", "zone=", 40)):
        body = boss.get(url(name)).content.decode()
        assert body.count(f'href="?{parameter}') == offered, name
    assert boss.get(url("measurement")).content.decode().count("profile__id__exact=") == 40
    assert 'href="?zone=z044"' in boss.get(url("node"), {"zone": "z044"}).content.decode()


@pytest.mark.parametrize("name", [name for name in LISTS if name != "clustersync"])
def test_an_empty_list_says_what_to_do_next(boss: Client, outsider: Client, name: str) -> None:
    body = boss.get(url(name)).content.decode()
    assert 'class="desk-empty"' in body
    assert 'name="action"' not in body
    assert "Download as CSV" not in body
    empty = boss.get(url(name)).context["cl"].empty
    assert empty.sentence == WORDS[f"sizing.{name}"][0]
    for address, _words in empty.links:
        assert boss.get(address).status_code == 200, address
    searched = boss.get(url(name), {"q": "nobody"})
    if searched.context["cl"].search_fields:
        assert searched.context["cl"].empty.links == [("?", "Clear the search and all filters")]
    assert outsider.get(url(name)).status_code == 403


def test_an_empty_list_offers_only_what_one_may_do(viewer: Client) -> None:
    assert viewer.get(url("node")).context["cl"].empty.links == []
    assert "No node is known yet." in viewer.get(url("node")).content.decode()
    links = viewer.get(url("refresh")).context["cl"].empty.links
    assert links == [(url("servedmodel"), "See the models")]


def table(client: Client, name: str, **query: Any) -> list[list[str]]:
    response = client.get(url(name, "csv"), query)
    assert response.status_code == 200
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert response["Content-Disposition"].startswith('attachment; filename="')
    return list(csv.reader(io.StringIO(response.content.decode())))


def test_a_list_is_downloaded_as_it_is_filtered(zones: None, boss: Client) -> None:
    Node.objects.filter(name="gpu-a1").update(memory_mib=2031000, cost_per_hour="39.80")
    head, *rows = table(boss, "node", zone="eu-1a")
    assert head[:2] == ["Name", "State, taints"]
    assert [row[0] for row in rows] == ["gpu-a1", "gpu-a2"]
    assert rows[0] == ["gpu-a1", "open", f"2 × {builders.H100}", "0 of 2", "", "eu-1a", "", "2031000", "39.8"]
    assert [row[0] for row in table(boss, "node", q="gpu", o="-1")[1:]] == ["gpu-b1", "gpu-a2", "gpu-a1"]
    body = unescape(boss.get(url("node"), {"zone": "eu-1a", "p": "1"}).content.decode())
    assert f'href="{url("node", "csv")}?zone=eu-1a" class="desk-csv"' in body
    assert boss.get(url("node", "csv"), {"nothing": "x"})["Location"] == f"{url('node')}?e=1"
    assert boss.post(url("node", "csv")).status_code == 405


def test_the_pieces_of_a_cell_stand_apart_in_the_download(boss: Client) -> None:
    taints = [{"key": "dedicated", "value": "rag", "effect": "NoSchedule"}]
    builders.node("gpu-a1", 0, schedulable=False, taints=taints)
    assert table(boss, "node")[1][1] == "cordoned dedicated=rag:NoSchedule"


def test_no_cell_is_taken_for_a_formula(boss: Client) -> None:
    builders.node("=1+1", 0)
    builders.model("@SUM(A1)", owner="+evil", priority=-5)
    assert table(boss, "node")[1][0] == "'=1+1"
    row = table(boss, "servedmodel")[1]
    assert (row[0], row[2], row[-1]) == ("'@SUM(A1)", "-5", "'+evil")


@pytest.mark.parametrize("name", LISTS)
def test_every_list_is_downloaded_in_as_many_queries_for_many_rows_as_for_few(
    boss: Client, outsider: Client, name: str
) -> None:
    counts = []
    for first in (0, 3):
        make_everything(3, "<i>", first)
        table(boss, name)
        with CaptureQueriesContext(connection) as queries:
            rows = table(boss, name)
        counts.append(len(queries))
        text = "\n".join(",".join(row) for row in rows)
        assert "&lt;" not in text
        assert "\n" in text
    assert counts[0] == counts[1]
    assert outsider.get(url(name, "csv")).status_code == 403


@pytest.mark.parametrize("name", LISTS)
def test_every_head_of_a_list_sorts_it_and_its_table(boss: Client, name: str) -> None:
    [columns] = [
        its.list_display for table, its in admin.site._registry.items() if table.__name__.lower() == name
    ]
    for number, column in enumerate(columns, 1):
        for page in ("changelist", "csv"):
            assert boss.get(url(name, page), {"o": f"{number}.-1"}).status_code == 200, column


def test_a_list_is_sorted_by_what_its_columns_count(boss: Client) -> None:
    for name, number in (("none", 0), ("three", 3), ("one", 1)):
        model = builders.model(name)
        for i in range(number):
            builders.variant(model, f"v{i}")
    assert names(boss, "servedmodel", o="-7") == ["three", "one", "none"]


def test_a_form_offers_few_objects_without_a_script_and_many_by_search_alone(boss: Client) -> None:
    model = builders.model("llama")
    url = reverse("admin:sizing_variant_add")
    assert f'<option value="{model.pk}">llama</option>' in boss.get(url).content.decode()
    ServedModel.objects.bulk_create(ServedModel(name=f"m{number}") for number in range(OFFERED))
    body = boss.get(url).content.decode()
    assert "<option" not in body.split('name="model"')[1].split("</select>")[0].replace(
        '<option value=""', ""
    )
    assert (
        f'<option value="{model.pk}" selected>llama</option>'
        in boss.get(f"{url}?model={model.pk}").content.decode()
    )
