"""Every registered list and form opens, takes as many queries for 30 rows as for 3, and escapes names."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests import builders
from tests.admin.cluster import make_everything

REGISTERED = sorted(admin.site._registry, key=lambda model: model._meta.label)
by_model = pytest.mark.parametrize("model", REGISTERED, ids=lambda model: model._meta.label)

HOSTILE = "<script>alert(1)</script>"


def address(model: Any, page: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def pages_of(model: Any, row: Any) -> dict[str, str]:
    pk = quote(row.pk)
    name = model._meta.model_name
    pages = {page: address(model, page, pk) for page in ("change", "history")}
    if name not in ("clustersync", "answer"):
        pages["delete"] = address(model, "delete", pk)
    if name not in ("refresh", "apitoken", "clustersync", "answer"):
        pages["add"] = address(model, "add")
    if name == "mappingrule":
        pages["pods"] = address(model, "pods")
    return pages | {"changelist": address(model, "changelist")}


@by_model
def test_every_page_of_every_registered_model_opens(model: Any, boss: Client) -> None:
    make_everything()
    row = model._default_manager.order_by("pk").first()
    for page, url in pages_of(model, row).items():
        assert boss.get(url).status_code == 200, page


@by_model
def test_searching_every_list_works(model: Any, boss: Client) -> None:
    make_everything()
    assert boss.get(address(model, "changelist"), {"q": "gpu chat"}).status_code == 200


@by_model
def test_a_list_of_30_rows_takes_as_many_queries_as_one_of_3(model: Any, boss: Client) -> None:
    url = address(model, "changelist")
    make_everything(3)
    boss.get(url)
    with CaptureQueriesContext(connection) as few:
        assert boss.get(url).status_code == 200
    make_everything(27, first=3)
    boss.get(url)  # what was written since is read once, by whoever asks first
    with CaptureQueriesContext(connection) as many:
        assert boss.get(url).status_code == 200
    assert len(many) == len(few), [query["sql"] for query in many]
    assert len(few) <= 12


@by_model
def test_names_with_markup_are_escaped_on_every_page(model: Any, boss: Client) -> None:
    make_everything(hostile=HOSTILE)
    row = model._default_manager.order_by("pk").first()
    for page, url in pages_of(model, row).items():
        body = boss.get(url).content.decode()
        assert HOSTILE not in body, page
        assert "<script>alert" not in body, page


def test_names_with_markup_are_escaped_on_the_home_page(boss: Client) -> None:
    make_everything(hostile=HOSTILE)
    body = boss.get(reverse("admin:index")).content.decode()
    assert "alert(1)" in body
    assert HOSTILE not in body


def test_the_form_of_a_node_with_its_gpus_takes_as_many_queries_for_16_as_for_4(boss: Client) -> None:
    counts = []
    for gpus in (4, 16):
        node = builders.node(f"gpu-{gpus}", gpus)
        url = reverse("admin:sizing_node_change", args=[node.pk])
        boss.get(url)
        with CaptureQueriesContext(connection) as queries:
            body = boss.get(url).content.decode()
        assert f'name="gpus-{gpus - 1}-uuid"' in body
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_a_node_of_many_slices_lists_them_to_be_read(boss: Client) -> None:
    counts = []
    for gpus in (17, 56):
        url = reverse("admin:sizing_node_change", args=[builders.node(f"mig-{gpus}", gpus).pk])
        boss.get(url)
        with CaptureQueriesContext(connection) as queries:
            body = boss.get(url).content.decode()
        assert 'name="gpus-0-uuid"' not in body
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_an_empty_desk_says_what_to_do_next(boss: Client) -> None:
    assert "python manage.py load_inventory FILE" in boss.get(reverse("admin:index")).content.decode()
