"""The pages of inventory files: bring, look, load, discard, export; and a row of every load."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from sizing.models import InventoryLoad, Node, Replica, Target
from sizing.services import inventory, inventory_loads
from tests import builders
from tests.admin.cluster import person
from tests.admin.test_measurement_page import words
from tests.inventory.documents import load, revision, sound

LIST = "/admin/sizing/inventoryload/"
GIVE = f"{LIST}add/"
EXPORT = f"{LIST}export/"
TABLES = ("node", "gpu", "benchprofile", "servedmodel", "variant", "measurement", "replica", "target")

State = InventoryLoad.State


def give(client: Client, document: Any, name: str = "fleet.json", **more: str) -> HttpResponse:
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    form = {"inventory_file": SimpleUploadedFile(name, content), **more}
    return client.post(GIVE, form)  # type: ignore[return-value]


def given(client: Client, document: Any, **more: str) -> InventoryLoad:
    """The row that a file became."""
    response = give(client, document, **more)
    assert response.status_code == 302, words(response.content.decode())
    row = InventoryLoad.objects.latest("pk")
    assert response["Location"] == f"{LIST}{row.pk}/change/"
    return row


def page(client: Client, row: InventoryLoad) -> str:
    response = client.get(f"{LIST}{row.pk}/change/")
    assert response.status_code == 200
    return words(unescape(response.content.decode()))


def do(client: Client, row: InventoryLoad, act: str) -> str:
    response = client.post(f"{LIST}{row.pk}/{act}/", follow=True)
    assert response.status_code == 200
    return words(unescape(response.content.decode()))


def loader(*, replace: bool = False) -> Client:
    """Somebody who may load, and with `replace` also remove."""
    verbs = ("add", "change", "view", *(["delete"] if replace else []))
    client = Client()
    client.force_login(person("loader", *(f"{verb}_{table}" for verb in verbs for table in TABLES)))
    return client


CHANGED = (
    ("nodes.0.schedulable", False),
    ("nodes.0.labels.zone", "c"),
    ("nodes.1.gpus.0.count", 1),
    ("nodes.+", {"name": "gpu-a3", "gpus": [{"type": "L4", "memory_mib": 24000}]}),
    ("models.0.variants.0.node_selector", {"zone": "c"}),
    ("measurements.0.tok_per_sec", 1200),
    ("replicas.1.placement.0.gpus", [3]),
    ("replicas.1.state", "draining"),
    ("targets.0.tokens_per_sec", 6000),
)


def test_a_file_is_looked_at_by_name_and_changes_nothing_until_it_is_loaded(boss: Client) -> None:
    load(sound())
    before = revision()
    row = given(boss, sound(*CHANGED), replace="on")
    assert (row.state, row.body is not None, revision()) == (State.PREVIEW, True, before)
    text = page(boss, row)
    assert "not loaded yet A load changes 9 objects, 2 of which it removes." in text
    for said in (
        "1 GPU removed gpu-a2 GPU 1",
        "1 measurement removed llama · tp2 on chat: 1,180.5 tok/s, 2026-11-02 09:00",
        "1 node updated gpu-a1 schedulable yes → no; labels: zone",
        "1 variant updated llama · tp2 node selector none → zone=c",
        "1 replica updated llama-1 state ready → draining; on gpu-a1 GPU 2 → gpu-a1 GPU 3",
        "1 target updated llama on chat tokens per sec 5000 → 6000",
        "1 node created gpu-a3",
        "1 GPU created gpu-a3 GPU 0",
        "1 measurement created llama · tp2 on chat: 1,200 tok/s, 2026-11-02 09:00",
        'replica "llama-1" is on node "gpu-a1", which is cordoned',
        "what it leaves out is removed",
    ):
        assert said in text, said
    text = do(boss, row, "load")
    assert "The file is loaded: " in text
    assert "Loaded: 9 objects changed." in text
    row.refresh_from_db()
    assert (row.state, row.body, row.finished_at is not None) == (State.LOADED, None, True)
    assert Replica.objects.get(name="llama-1").state == "draining"
    assert Target.objects.get().tokens_per_sec == 6000
    assert f"Load {row.pk} is not there to be loaded any more." in do(boss, row, "load")


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(
    "edits",
    [
        CHANGED,
        (("nodes", []),),
        (("replicas", []), ("targets", [])),
        (("measurements.+", sound()["measurements"][0] | {"source": "again"}),),
        (("models.0.variants.0.gpus", 1), ("replicas.0.placement.0.gpus", [0])),
    ],
)
def test_a_preview_counts_what_the_load_then_does(db: None, edits: Any, replace: bool) -> None:
    load(sound())
    document = sound(*edits)
    if replace and "nodes" in dict(edits):
        document["replicas"] = []
    before = inventory.preview(document, replace)
    after = inventory.load_document(document, replace)
    assert before.as_json() == after.as_json()
    assert before.difference.digest() == after.difference.digest()
    assert inventory.preview(document, replace).changed == 0


def test_a_load_that_would_do_something_else_by_now_says_so_and_shows_it(boss: Client) -> None:
    load(sound())
    row = given(boss, {"version": 1, "nodes": [{"name": "gpu-a1", "ready": False}, {"name": "gpu-a9"}]})
    Node.objects.filter(name="gpu-a1").update(cost_per_hour="12.5")
    before = revision()
    text = do(boss, row, "load")
    assert "Not loaded: the inventory changed since you looked" in text
    assert "cost per hour 12.5 → none" in text
    assert revision() == before
    assert "The file is loaded: 1 node created, 1 node updated." in do(boss, row, "load")
    assert not Node.objects.get(name="gpu-a1").ready


def test_a_replica_that_took_the_name_of_one_to_be_removed_is_not_removed_unasked(boss: Client) -> None:
    load(sound())
    name = sound()["replicas"][0]["name"]
    other = builders.variant(builders.model("another"), "tp1", 1)
    row = given(boss, sound(("replicas", []), ("targets", [])), replace="on")
    Replica.objects.filter(name=name).update(variant=other)
    assert "Not loaded: the inventory changed since you looked" in do(boss, row, "load")
    assert Replica.objects.filter(name=name).exists()


def test_what_does_not_concern_the_file_may_change_meanwhile(boss: Client) -> None:
    load(sound())
    row = given(boss, {"version": 1, "nodes": [{"name": "gpu-a9"}]})
    Node.objects.filter(name="gpu-a1").update(ready=False)
    assert "The file is loaded: 1 node created." in do(boss, row, "load")


def test_a_file_that_does_not_fit_any_more_is_refused_and_says_why(boss: Client) -> None:
    load(sound())
    row = given(
        boss,
        {
            "version": 1,
            "replicas": [
                sound()["replicas"][0]
                | {"name": "llama-2", "placement": [{"node": "gpu-a2", "gpus": [0, 1]}]}
            ],
        },
    )
    Node.objects.get(name="gpu-a2").gpus.all().delete()
    text = do(boss, row, "load")
    assert "Not loaded: the inventory changed since you looked, and the file does not fit it now." in text
    assert "replicas[0].placement[0].gpus[0]" in text
    row.refresh_from_db()
    assert (row.state, row.body) == (State.REFUSED, None)
    assert not Replica.objects.filter(name="llama-2").exists()


def test_errors_are_told_by_path_and_nothing_is_kept_of_the_file(boss: Client) -> None:
    row = given(boss, sound(("nodes.0.ready", 1), ("replicas.0.placement.0.node", "gpu-z")))
    text = page(boss, row)
    assert "The file has 2 errors; nothing was changed." in text
    assert "nodes[0].ready : must be true or false, not 1" in text
    assert 'replicas[0].placement[0].node : no node "gpu-z"' in text
    assert (row.state, row.body, ">Load<" in text) == (State.REFUSED, None, False)
    assert not Node.objects.exists()
    unreadable = given(boss, b"a: b: c")
    assert "The file has 1 error; nothing was changed." in page(boss, unreadable)
    assert "The file has 2 errors" in words(boss.get(LIST).content.decode())


def test_a_form_without_a_file_says_so(boss: Client) -> None:
    response = boss.post(GIVE, {})
    assert response.status_code == 200
    assert "Choose a file." in response.content.decode()
    assert not InventoryLoad.objects.exists()


def test_a_file_can_be_looked_at_again_and_discarded(boss: Client) -> None:
    row = given(boss, sound())
    load(sound())
    text = do(boss, row, "again")
    assert "The inventory is like this already: a load changes nothing." in text
    assert f"/{row.pk}/load/" not in boss.get(f"{LIST}{row.pk}/change/").content.decode()
    assert f"Inventory load {row.pk} is discarded; nothing was changed." in do(boss, row, "discard")
    assert not InventoryLoad.objects.exists()
    assert "any more: it was discarded" in do(boss, row, "load")


def test_a_file_that_nobody_loads_is_kept_a_day(boss: Client) -> None:
    old = given(boss, sound())
    InventoryLoad.objects.update(created_at=timezone.now() - timedelta(hours=25))
    new = given(boss, sound())
    assert list(InventoryLoad.objects.values_list("pk", flat=True)) == [new.pk] != [old.pk]


def test_who_may_not_remove_may_load_but_not_replace(db: None) -> None:
    client = loader()
    assert 'name="replace"' not in client.get(GIVE).content.decode()
    response = give(client, sound(), replace="on")
    assert "You may not remove what a file leaves out" in unescape(response.content.decode())
    row = given(client, sound())
    assert "The file is loaded" in do(client, row, "load")
    row = InventoryLoad.objects.create(
        name="x", trigger="admin", replace=True, body=b"", changes={"digest": ""}, counts={}
    )
    assert client.post(f"{LIST}{row.pk}/load/").status_code == 403


def test_who_may_look_sees_loads_and_the_export_but_no_button(
    db: None, outsider: Client, boss: Client
) -> None:
    client = Client()
    client.force_login(person("looker", *(f"view_{table}" for table in TABLES)))
    row = given(boss, sound())
    body = client.get(f"{LIST}{row.pk}/change/").content.decode()
    assert f"/{row.pk}/" not in body.replace(f"/{row.pk}/history/", "")
    assert client.get(GIVE).status_code == 403
    assert GIVE not in client.get(LIST).content.decode()
    for act in ("load", "again", "discard"):
        assert client.post(f"{LIST}{row.pk}/{act}/").status_code == 403
        assert boss.get(f"{LIST}{row.pk}/{act}/").status_code == 405
    assert client.get(EXPORT).status_code == 200
    for url in (LIST, GIVE, EXPORT, f"{LIST}{row.pk}/change/"):
        assert outsider.get(url).status_code == 403


def test_the_export_is_what_a_load_reads_back(boss: Client) -> None:
    load(sound())
    for query, kind in (("", "yaml"), ("?as=json", "json")):
        response = boss.get(EXPORT + query)
        assert response["Content-Type"] == f"application/{kind}; charset=utf-8"
        assert response["Content-Disposition"].startswith('attachment; filename="inventory-20')
        assert response["Content-Disposition"].endswith(f'.{kind}"')
        row = given(boss, response.content, replace="on")
        assert "like this already" in page(boss, row)


def test_every_load_leaves_a_row(boss: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "fleet.json"
    path.write_text(json.dumps(sound()))
    call_command("load_inventory", str(path), stdout=io.StringIO())
    path.write_text("{")
    with pytest.raises(SystemExit):
        call_command("load_inventory", str(path), "--replace", stdout=io.StringIO(), stderr=io.StringIO())
    api = APIClient()
    api.force_login(person("ada", superuser=True))
    for document, status in ((sound(("nodes.0.pods", 9)), 200), ({"version": 2}, 400)):
        answer = api.put("/api/v1/inventory", json.dumps(document), content_type="application/json")
        assert answer.status_code == status
    found = InventoryLoad.objects.order_by("pk").values_list("name", "trigger", "state", "replace", "size")
    size = len(json.dumps(sound()))
    assert list(found) == [
        ("fleet.json", "command", "loaded", False, size),
        ("fleet.json", "command", "refused", True, 1),
        ("a document", "api", "loaded", False, len(json.dumps(sound(("nodes.0.pods", 9))))),
        ("a document", "api", "refused", False, len('{"version": 2}')),
    ]
    first, third = InventoryLoad.objects.order_by("pk")[0], InventoryLoad.objects.order_by("pk")[2]
    assert (first.counts["created"]["nodes"], first.requested_by, str(third.requested_by)) == (2, None, "ada")
    assert third.changes["updated"]["nodes"]["first"] == [{"name": "gpu-a1", "what": "pods none → 9"}]
    listed = words(boss.get(LIST).content.decode())
    assert "by ada, by the API" in listed
    assert "by a command" in listed


def test_the_list_takes_as_many_queries_for_many_as_for_few(boss: Client) -> None:
    counts = []
    for _ in range(2):
        for i in range(3):
            inventory_loads.load(b"version: 1", name=f"{i}.yaml", trigger="command", user=None)
        boss.get(LIST)
        with CaptureQueriesContext(connection) as queries:
            boss.get(LIST)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 10
