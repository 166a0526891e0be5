"""Lists of the cluster brought on a page: what they say and change stands there before they are imported."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sizing.admin.cluster import giving
from sizing.inventory.kubernetes.reading import read_listing
from sizing.models import ClusterImport, Node, Replica
from sizing.services import cluster_imports
from sizing.syncing import importing
from tests import builders
from tests.admin.brought import ACTS, GIVE, IMPORTING, LIST, VIEWING, bring, brought, buttons, do, page, url
from tests.admin.cluster import person
from tests.admin.test_every_page import HOSTILE
from tests.admin.test_measurement_page import words
from tests.cluster_lists import LLAMA, as_bytes, listed, node, pod, small

INCOMPLETE = as_bytes(node(), pod("llama-0"), left=412)


# Looking at them -------------------------------------------------------------------------------------


def test_what_a_list_says_and_changes_is_shown_before_anything_is_changed(boss: Client) -> None:
    content = as_bytes(
        node(),
        node("gpu-a2", unschedulable=True),
        node("cpu-1", gpus=0),
        pod("llama-0"),
        pod("llama-1", on=None),
        {"kind": "ConfigMap", "metadata": {"name": "x", "namespace": "llm"}},
    )
    row = brought(boss, content)
    body = page(boss, row)
    assert "An import changes" in body
    assert "3 nodes added cpu-1 gpu-a1 gpu-a2" in body
    assert "2 replicas added llm/llama-0 llm/llama-1" in body
    assert f"1 model added {LLAMA}" in body
    assert "H100-80GB-HBM3 nvidia.com/gpu 2 16 4 12 4" in body
    assert "1 node without GPUs." in body
    assert "Closed for new pods: 1 node gpu-a2 : cordoned" in body
    assert "Waiting for devices: 1 pod llm/llama-1 4 nvidia.com/gpu" in body
    assert "1 ConfigMap : says nothing about capacity" in body
    assert "cluster.json" in body
    assert "by boss, on a page" in body
    assert buttons(boss, row) == ["Import", "Discard"]
    assert not Node.objects.exists()


def test_a_list_is_imported_and_its_file_is_not_kept(boss: Client) -> None:
    row = brought(boss, small())
    body = do(boss, row, "import")
    assert "The list is imported: 1 node added, 1 replica added, 1 model added." in body
    assert "The list is imported: 3 objects changed." in body
    assert "What it changed" in body
    row.refresh_from_db()
    assert (row.state, row.body, row.trigger) == ("done", None, "admin")
    assert Node.objects.get().gpus.count() == 8
    assert Replica.objects.get().variant.model.name == LLAMA
    assert buttons(boss, row) == []
    assert boss.post(url(row, "import"), follow=True).status_code == 200
    assert Node.objects.count() == 1


def test_the_import_looks_at_the_inventory_as_it_then_is(boss: Client) -> None:
    first, second = brought(boss, small()), brought(boss, small())
    do(boss, first, "import")
    assert "The list is imported: nothing differs." in do(boss, second, "import")
    second.refresh_from_db()
    assert second.message == "nothing differs"


def test_an_import_that_would_do_more_than_was_shown_is_asked_again(boss: Client) -> None:
    row = brought(boss, small())
    do(boss, brought(boss, as_bytes(node(), node("gpu-z9"), pod("llama-0"))), "import")
    body = do(boss, row, "import")
    assert "The inventory changed meanwhile, and the import would do something else now" in body
    assert (Node.objects.count(), Replica.objects.count()) == (2, 1)
    row.refresh_from_db()
    assert (row.state, row.message) == ("read", "1 node is gone")
    assert "The list is imported: 1 node is gone." in do(boss, row, "import")
    assert list(Node.objects.values_list("name", flat=True)) == ["gpu-a1"]


def test_a_list_that_says_nothing_new_says_so(boss: Client) -> None:
    do(boss, brought(boss, small()), "import")
    assert "The inventory is like this already." in page(boss, brought(boss, small()))


def test_what_moves_is_told_with_where_it_was(boss: Client) -> None:
    do(boss, brought(boss, as_bytes(node(), node("gpu-a2"), pod("llama-0"))), "import")
    row = brought(boss, as_bytes(node(), node("gpu-a2"), pod("llama-0", on="gpu-a2")))
    body = page(boss, row)
    assert "An import changes 1 object." in body
    assert "1 replica moved llm/llama-0 gpu-a1 GPU 0,1,2,3 → gpu-a2 GPU 0,1,2,3" in body


def test_more_names_than_one_reads_are_folded_in(boss: Client) -> None:
    row = brought(boss, as_bytes(*(node(f"gpu-{i:03}") for i in range(250)), pod("llama-0", on="gpu-000")))
    body = page(boss, row)
    assert "250 nodes added gpu-000" in body
    assert "The others gpu-010" in body
    assert "gpu-199 And 50 more." in body
    assert "gpu-200" not in body


def test_it_may_be_discarded(boss: Client) -> None:
    row = brought(boss, small())
    assert f"Cluster import {row.pk} is discarded; nothing was changed." in do(boss, row, "discard")
    assert not ClusterImport.objects.exists()
    assert not Node.objects.exists()
    response = boss.get(url(row), follow=True)
    assert "any more: it was discarded" in words(response.content.decode())


# Refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "why"),
    [(INCOMPLETE, "The list is incomplete"), (as_bytes(node()), "The list has nodes but no pods")],
)
def test_an_incomplete_list_offers_no_import_until_it_is_taken_so(
    boss: Client, content: bytes, why: str
) -> None:
    row = brought(boss, content)
    body = page(boss, row)
    assert "The list cannot be imported as it is." in body
    assert f"Why it cannot be imported as it is {why}" in body
    assert buttons(boss, row) == ["Take it as incomplete", "Discard"]
    assert why.lower() in do(boss, row, "import").lower()
    assert not Node.objects.exists()
    do(boss, row, "partial")
    assert buttons(boss, row) == ["Import", "Discard"]
    do(boss, row, "import")
    assert Node.objects.get().name == "gpu-a1"


def test_the_box_takes_an_incomplete_list_at_once(boss: Client) -> None:
    row = brought(boss, INCOMPLETE, partial="on")
    assert "taken so on purpose" in page(boss, row)
    assert buttons(boss, row) == ["Import", "Discard"]


@pytest.mark.parametrize("content", [b"", b"{", b"nodes: [", b'{"kind": "Status", "message": "no leave"}'])
def test_what_is_no_list_is_an_error_at_the_field_and_nothing_is_kept(boss: Client, content: bytes) -> None:
    response = bring(boss, content)
    assert response.status_code == 200
    errors = response.context["form"].errors  # type: ignore[attr-defined]
    assert list(errors) == ["list_file"]
    assert not ClusterImport.objects.exists()


def test_a_form_without_a_file_says_so(boss: Client) -> None:
    response = boss.post(GIVE, {})
    assert response.context["form"].errors == {"list_file": ["Choose a file."]}


def test_a_list_that_is_too_large_is_taken_no_further(boss: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving, "LARGEST_DOCUMENT", 100)
    response = bring(boss, b" " * 200_000)
    assert response.context["form"].errors["list_file"] == [giving.TOO_LARGE]  # type: ignore[attr-defined]
    assert not ClusterImport.objects.exists()


def test_what_a_list_names_is_escaped_everywhere(boss: Client) -> None:
    odd = pod("llama-0", model="", labels={"llmgw-admin/model": HOSTILE})
    content = as_bytes(node(), odd, {"kind": HOSTILE, "metadata": {"name": HOSTILE}})
    row = brought(boss, content, name=f"{HOSTILE}.json")
    for address in (url(row), url(row, "live"), LIST, url(row, "history")):
        body = boss.get(address).content.decode()
        assert HOSTILE not in body
    assert "&lt;script&gt;" in boss.get(url(row)).content.decode()


def test_while_the_desk_follows_a_cluster_no_list_is_imported(
    boss: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, waiting = brought(boss, small()), brought(boss, small())
    monkeypatch.setattr(cluster_imports, "LARGE_BYTES", 10)
    do(boss, waiting, "import")
    off = settings.KUBERNETES
    settings.KUBERNETES = replace(off, mode="in-cluster")
    body = page(boss, row)
    assert "An import changes 3 objects." in body
    assert "Why it cannot be imported as it is" in body
    assert "KUBERNETES=off" in body
    assert buttons(boss, row) == ["Discard"]
    assert "KUBERNETES=off" in do(boss, row, "import")
    assert importing.bring(waiting.pk)
    waiting.refresh_from_db()
    assert waiting.state == "read"
    assert "KUBERNETES=off" in waiting.error
    assert not Node.objects.exists()
    settings.KUBERNETES = off
    assert buttons(boss, row) == ["Import", "Discard"]


# Large ones ------------------------------------------------------------------------------------------


def test_a_large_list_is_read_and_imported_by_a_worker(boss: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_imports, "LARGE_BYTES", 10)
    row = brought(boss, small())
    assert "a worker reads the list as soon as one is free" in page(boss, row)
    assert buttons(boss, row) == ["Discard"]
    assert importing.waiting() == ([row.pk], [])
    assert importing.read(row.pk)
    assert not importing.read(row.pk)
    assert "An import changes 3 objects." in page(boss, row)
    assert "a worker imports the list as soon as one is free" in do(boss, row, "import")
    assert not Node.objects.exists()
    assert importing.waiting() == ([], [row.pk])
    assert importing.bring(row.pk)
    assert not importing.bring(row.pk)
    assert Node.objects.exists()
    assert "The list is imported: 3 objects changed." in page(boss, row)


def test_a_small_file_that_unpacks_to_a_large_one_is_for_a_worker(boss: Client) -> None:
    raw = json.dumps(listed(node(), pod("llama-0"))).encode() + b" " * cluster_imports.LARGE_BYTES
    row = brought(boss, gzip.compress(raw))
    assert row.state == "queued"
    assert importing.read(row.pk)
    row.refresh_from_db()
    assert row.state == "read"


def test_what_a_worker_cannot_read_is_told_on_the_page(boss: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_imports, "LARGE_BYTES", 10)
    row = brought(boss, b'{"kind": "List", "items": [')
    importing.read(row.pk)
    row.refresh_from_db()
    assert (row.state, row.body) == ("failed", None)
    assert row.error
    assert "The list was not imported; nothing was changed." in page(boss, row)


def test_a_list_that_is_being_read_can_be_cancelled(boss: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_imports, "LARGE_BYTES", 10)
    row = brought(boss, small())

    def cancelled(*args: Any) -> Any:
        assert buttons(boss, row) == ["Cancel"]
        do(boss, row, "cancel")
        assert buttons(boss, row) == []
        return read_listing(*args)

    monkeypatch.setattr(importing, "read_listing", cancelled)
    importing.read(row.pk)
    row.refresh_from_db()
    assert (row.state, row.error, row.body) == ("failed", importing.CANCELLED, None)


@pytest.mark.parametrize("at_work", [False, True])
def test_an_import_that_hangs_says_for_how_long_and_can_be_cancelled(
    boss: Client, monkeypatch: pytest.MonkeyPatch, at_work: bool
) -> None:
    monkeypatch.setattr(cluster_imports, "LARGE_BYTES", 10)
    row = brought(boss, small())
    importing.read(row.pk)
    do(boss, row, "import")
    ago = timezone.now() - timedelta(minutes=3)
    ClusterImport.objects.update(queued_at=ago, heartbeat_at=ago if at_work else None)
    body = page(boss, row).replace("\u202f", " ")
    assert ("it was last heard of 3 min ago." if at_work else "Brought 3 min ago: a worker imports") in body
    assert buttons(boss, row) == ["Cancel"]
    assert "cancelled; nothing was changed" in do(boss, row, "cancel")
    assert buttons(boss, row) == ["Import", "Discard"]
    do(boss, row, "discard")
    assert not ClusterImport.objects.exists()


# The list and its columns ----------------------------------------------------------------------------


def test_the_history_says_who_when_what_and_what_came_of_it(boss: Client) -> None:
    do(boss, brought(boss, small()), "import")
    brought(boss, INCOMPLETE)
    body = words(boss.get(LIST).content.decode())
    assert "imported cluster.json 1 node added, 1 replica added, 1 model added by boss, on a page" in body
    assert "not imported yet cluster.json cannot be imported as it is by boss, on a page" in body


def test_the_list_reads_no_files_and_no_reports(boss: Client) -> None:
    brought(boss, small())
    with CaptureQueriesContext(connection) as queries:
        boss.get(LIST)
    (rows,) = [q["sql"] for q in queries if '"sizing_clusterimport"."name"' in q["sql"]]
    assert not any(f'"sizing_clusterimport"."{name}"' in rows for name in ("body", "report", "changes"))


# Who may ---------------------------------------------------------------------------------------------


def test_those_who_may_not_change_all_that_is_written_can_only_look(boss: Client) -> None:
    row = brought(boss, small())
    almost = [name for name in IMPORTING if name != "delete_replica"]
    for name, perms, sees in (
        ("looker", VIEWING, 200),
        ("almost", [*VIEWING, *almost], 200),
        ("of imports", ["view_clusterimport"], 403),
        *((f"but {one}", [*(set(VIEWING) - {one})], 403) for one in VIEWING),
        ("outsider", [], 403),
    ):
        client = Client()
        client.force_login(person(name, *perms))
        assert client.get(LIST).status_code == sees
        assert client.get(url(row)).status_code == sees
        assert client.get(url(row, "live")).status_code == sees
        assert client.get(GIVE).status_code == 403
        assert bring(client, small()).status_code == 403
        for act in ACTS:
            assert client.post(url(row, act)).status_code == 403
        if sees == 200:
            assert buttons(client, row) == []
    row.refresh_from_db()
    assert row.state == "read"
    assert not Node.objects.exists()


def test_who_may_change_all_that_is_written_may_import(db: None) -> None:
    client = Client()
    client.force_login(person("importer", *IMPORTING))
    do(client, brought(client, small()), "import")
    assert Node.objects.exists()


def test_nothing_is_done_without_the_token_of_the_form(boss: Client) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("root", superuser=True))
    assert bring(client, small()).status_code == 403
    assert not ClusterImport.objects.exists()
    row = brought(boss, small())
    for act in ACTS:
        assert client.post(url(row, act)).status_code == 403
        assert client.get(url(row, act)).status_code == 405
    assert not Node.objects.exists()


def test_the_ways_to_the_page_are_shown_to_those_who_may(boss: Client) -> None:
    link = f'href="{GIVE}"'
    home = boss.get("/admin/").content.decode()
    assert home.count(link) == 2  # in its group, and beside the hint of an empty desk
    assert link in boss.get(LIST).content.decode()
    looker = Client()
    looker.force_login(person("looker", *VIEWING))
    for path in ("/admin/", LIST):
        assert link not in looker.get(path).content.decode(), path
    builders.node()
    assert boss.get("/admin/").content.decode().count(link) == 1
