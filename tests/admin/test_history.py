"""Who changed what: in the history of each object and of the whole desk, whatever way it came."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sizing.models import ClusterImport, Gpu, InventoryLoad, Node, Replica, ServedModel, Variant, history
from sizing.models.history import By, Event, way_of
from sizing.services import cluster_imports, inventory_loads, kubernetes
from sizing.services.errors import DeskError
from tests import builders
from tests.admin.cluster import person
from tests.admin.test_writing import confirm
from tests.cluster_lists import LLAMA, as_bytes, node, pod

HISTORY = "/admin/history/"


def told() -> list[tuple[str, str, str, str]]:
    """Who, way, object and what of all entries, the oldest first."""
    rows = LogEntry.objects.order_by("pk").select_related("user")
    return [(row.user.username, way_of(row), row.object_repr, row.get_change_message()) for row in rows]


def text(client: Client, url: str) -> str:
    answer = client.get(url)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def a_load(*nodes: dict[str, Any], **fields: Any) -> bytes:
    return json.dumps({"version": 1, "nodes": nodes, **fields}).encode()


def a_node(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "gpus": [{"type": builders.H100, "memory_mib": builders.H100_MIB}], **fields}


def test_a_loaded_file_tells_of_each_object_what_changed_of_it(boss: Client) -> None:
    ada = User.objects.create_user("ada")
    inventory_loads.load(a_load(a_node("n1"), a_node("n2")), name="x", trigger="api", user=ada)
    first = InventoryLoad.objects.get()
    assert told() == [
        ("ada", "API", str(first), "Added."),
        ("ada", f"load {first.pk}", "n1", "Added."),
        ("ada", f"load {first.pk}", "n2", "Added."),
        ("ada", f"load {first.pk}", "n1 GPU 0", "Added."),
        ("ada", f"load {first.pk}", "n2 GPU 0", "Added."),
    ]
    gone = Node.objects.get(name="n2")
    LogEntry.objects.all().delete()
    changed = a_load(a_node("n1", ready=False, labels={"zone": "b"}))
    inventory_loads.load(changed, True, name="x", trigger="command", user=None)
    second = InventoryLoad.objects.get(pk__gt=first.pk)
    assert told() == [
        ("the desk", "command", str(second), "Added."),
        ("the desk", f"load {second.pk}", "n1", "Changed ready yes → no and labels: zone."),
        ("the desk", f"load {second.pk}", "n2", "Deleted node “n2”."),
        ("the desk", f"load {second.pk}", "n2 GPU 0", "Deleted GPU “n2 GPU 0”."),
    ]
    assert LogEntry.objects.get(object_repr="n2").object_id == str(gone.pk)
    node = Node.objects.get()
    page = text(boss, reverse("admin:sizing_node_history", args=[node.pk]))
    link = reverse("admin:sizing_inventoryload_change", args=[second.pk])
    assert f'by <a href="{link}">load {second.pk}</a>' in page
    assert "Changed ready yes → no and labels: zone." in page
    assert "the desk" in page


def test_every_kind_of_object_of_a_file_is_told_under_its_own_id(db: None) -> None:
    profile = {"name": "chat", "input_tokens": 10, "output_tokens": 10, "slo": {"ttft_ms": 500}}
    model = {"name": "m", "variants": [{"name": "v", "gpus": 1}]}
    measured = {"model": "m", "variant": "v", "profile": "chat", "tok_per_sec": 100}
    replica = {"name": "r", "model": "m", "variant": "v", "placement": [{"node": "n1", "gpus": [0]}]}
    document = a_load(
        a_node("n1"),
        profiles=[profile],
        models=[model],
        measurements=[{**measured, "measured_at": "2026-11-02T09:00:00Z"}],
        replicas=[replica],
        targets=[{"model": "m", "profile": "chat", "tokens_per_sec": 5}],
    )
    inventory_loads.load(document, name="x", trigger="command", user=None)
    entries = LogEntry.objects.exclude(content_type__model="inventoryload").order_by("pk")
    for entry in entries:
        assert entry.get_edited_object().pk == int(entry.object_id or 0)
    assert sorted(e.content_type.model for e in entries if e.content_type) == sorted(
        ["node", "gpu", "benchprofile", "servedmodel", "variant", "measurement", "replica", "target"]
    )
    ids = {entry.content_type_id: entry.object_id for entry in entries}
    LogEntry.objects.all().delete()
    inventory_loads.load(b"version: 1", True, name="x", trigger="command", user=None)
    gone = LogEntry.objects.exclude(content_type__model="inventoryload")
    assert {entry.content_type_id: entry.object_id for entry in gone} == ids


def test_above_a_thousand_changes_only_the_load_itself_tells(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sizing.inventory.happened.MOST", 3)
    inventory_loads.load(a_load(a_node("n1"), a_node("n2")), name="x", trigger="command", user=None)
    assert [name for _, _, name, _ in told()] == [str(InventoryLoad.objects.get())]
    inventory_loads.load(a_load(a_node("n3")), name="x", trigger="command", user=None)
    assert [name for _, _, name, _ in told()][2:] == ["n3", "n3 GPU 0"]


def test_the_desk_itself_is_an_account_that_nobody_signs_in_to(db: None) -> None:
    history.write(By(history.COMMAND), [history.added(builders.node("n1", 0))])
    desk = User.objects.get()
    assert (desk.username, desk.is_active, desk.is_staff, desk.has_usable_password()) == (
        "the desk",
        False,
        False,
        False,
    )
    history.write(By(history.COMMAND), [history.added(builders.node("n2", 0))])
    assert User.objects.get() == desk


def test_many_entries_are_few_statements(db: None) -> None:
    def queries(number: int) -> int:
        events = [Event(Node, i, f"n{i}", 1) for i in range(number)]
        with CaptureQueriesContext(connection) as captured:
            history.write(By(history.SYNC), events)
        return len(captured)

    queries(1)
    assert queries(2) == 2
    assert queries(400) <= 6  # SQLite takes them in parts
    history.write(By(history.SYNC), [Event(Node, i, "n", 1) for i in range(history.MOST + 1)])
    assert LogEntry.objects.count() == 403


def cluster(*names: str, ready: str = "True") -> bytes:
    status = {
        "allocatable": {"nvidia.com/gpu": "1", "cpu": "8", "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": ready}],
    }
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {}, "status": status}
        for name in names
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}).encode()


def test_a_cluster_import_tells_of_each_object_under_the_import(db: None, boss: Client) -> None:
    def bring(content: bytes) -> ClusterImport:
        outcome = kubernetes.bring(kubernetes.read(content), partial=True)
        how: Any = {"name": "x", "size": 1, "partial": True, "trigger": "command", "user": None}
        cluster_imports.note(outcome, **how)
        return ClusterImport.objects.latest("pk")

    first = bring(cluster("k1"))
    assert told() == [
        ("the desk", "command", f"cluster import {first.pk}", "Added."),
        ("the desk", f"import {first.pk}", "k1", "Added."),
    ]
    assert LogEntry.objects.latest("pk").object_id == str(Node.objects.get().pk)
    LogEntry.objects.all().delete()
    second = bring(cluster("k1", ready="False"))
    assert told()[1][1:3] == (f"import {second.pk}", "k1")
    assert "ready" in told()[1][3]


def test_gpus_and_variants_that_come_with_an_import_are_told_too(db: None) -> None:
    def events(*items: dict[str, Any]) -> list[Event]:
        return kubernetes.bring(kubernetes.read(as_bytes(*items))).events

    first = {(one.table, one.pk): one.name for one in events(node("k1", 1), pod("p", "k1", 1))}
    gpu, variant = Gpu.objects.get(), Variant.objects.get()
    assert first[Gpu, gpu.pk] == "k1 GPU 0"
    assert first[Variant, variant.pk] == f"{LLAMA} · {variant.name}"
    second = events(node("k1", 2), pod("p", "k1", 1))
    assert [(one.name, one.flag) for one in second] == [("k1", CHANGE), ("k1 GPU 1", ADDITION)]
    third = events(node("k2", 1), pod("p", "k2", 1))
    assert {one.pk for one in third if (one.table, one.flag) == (Gpu, DELETION)} >= {gpu.pk}


def test_a_list_that_is_imported_on_a_page_is_told_of_who_imports_it(boss: Client) -> None:
    given = User.objects.create_user("gus")
    from io import BytesIO

    row = cluster_imports.take("x.json", BytesIO(cluster("k1")), partial=True, user=given)
    boss.post(reverse("admin:sizing_clusterimport_import", args=[row.pk]))
    assert ("boss", f"import {row.pk}", "k1", "Added.") in told()


def test_old_entries_of_the_sync_go_and_no_others(db: None) -> None:
    node = builders.node("n1", 0)
    for way in (history.SYNC, history.COMMAND):
        history.write(By(way), [history.added(node)])
    history.drop_old_of_sync()
    assert LogEntry.objects.count() == 2
    for entry in LogEntry.objects.all():
        entry.action_time -= history.KEPT_OF_SYNC
        entry.save()
    history.drop_old_of_sync()
    assert [way for _, way, _, _ in told()] == ["command"]


def test_a_token_made_by_command_is_told(db: None) -> None:
    User.objects.create_user("ada")
    call_command("create_token", "ada", "--label", "ci", stdout=open("/dev/null", "w"))  # noqa: SIM115
    [(who, way, name, what)] = told()
    assert (who, way, what) == ("the desk", "command", "Added.")
    assert name.startswith("ci (")


# The page of the whole desk ----------------------------------------------------------------------


def test_the_page_tells_who_changed_what_by_which_way_and_when(boss: Client) -> None:
    node, model = builders.node("gpu-a1", 0), builders.model("llama")
    by = User.objects.get(username="boss")
    history.write(By(history.API, by), [history.changed(node, "ready")])
    history.write(By(history.SYNC), [history.removed(model)])
    confirm(boss, "admin:sizing_node_changelist", "cordon", [node])
    page = text(boss, HISTORY)
    assert f'<a href="{reverse("admin:sizing_node_change", args=[node.pk])}">gpu-a1</a>' in page
    rows = page.split("<tbody>")[1].split("</tbody>")[0].split("</tr>")[:-1]
    assert ["by page" in rows[0], "by sync" in rows[1], "by API" in rows[2]] == [True] * 3
    assert "Deleted." in rows[1]
    assert "<td>llama</td>" in rows[1]
    for query, shown in (
        ("who=boss", [0, 2]),
        ("who=the+desk", [1]),
        ("who=nobody", []),
        ("kind=sizing.servedmodel", [1]),
        ("since=2020-01-01", [0, 1, 2]),
        ("since=2999-01-01", []),
        ("who=boss&kind=sizing.servedmodel", []),
    ):
        found = text(boss, f"{HISTORY}?{query}")
        assert [i for i, row in enumerate(rows) if row.strip() in found] == shown, query
    assert "Nothing in the history is so." in text(boss, f"{HISTORY}?who=nobody")
    assert "Give a day, such as 2026-11-02." in text(boss, f"{HISTORY}?since=yesterday")
    assert "There is no such kind" in text(boss, f"{HISTORY}?kind=x")


def test_a_page_has_50_entries_and_leads_to_the_older_ones(boss: Client) -> None:
    events = [Event(Node, None, f"node-{i:03}", 1) for i in range(120)]
    history.write(By(history.SYNC), events)
    url, seen = HISTORY + "?kind=sizing.node", []
    boss.get(url)
    counts = set()
    while url:
        with CaptureQueriesContext(connection) as captured:
            answer = boss.get(url)
        counts.add(len(captured))
        seen += [entry.object_repr for entry in answer.context["entries"]]
        url = HISTORY + answer.context["older"] if answer.context["older"] else ""
    assert seen == [event.name for event in reversed(events)]
    assert len(counts) == 1
    assert counts.pop() <= 6


def test_the_history_shows_only_what_one_may_view(boss: Client, outsider: Client) -> None:
    history.write(By(history.SYNC), [history.added(builders.node("gpu-a1", 0))])
    history.write(By(history.SYNC), [history.added(builders.model("llama"))])
    sees_models = Client()
    sees_models.force_login(person("mo", "view_servedmodel"))
    page = text(sees_models, HISTORY)
    assert "llama" in page
    assert "gpu-a1" not in page
    assert "Nodes</option>" not in page
    assert "There is no such kind, or you may not view it." in text(
        sees_models, f"{HISTORY}?kind=sizing.node"
    )
    assert "Nothing was changed yet that you may view." in text(outsider, HISTORY)
    assert boss.post(HISTORY).status_code == 405


def test_a_name_with_markup_is_escaped(boss: Client) -> None:
    name = "<b>x</b>"
    model = ServedModel.objects.create(name=name)
    replica = Replica(name=name, variant=builders.variant(model))
    for event in (history.added(model), history.changed(model, name), Event(Replica, None, str(replica), 3)):
        history.write(By(name), [event])
    for url in (HISTORY, reverse("admin:sizing_servedmodel_history", args=[model.pk])):
        assert name not in text(boss, url)


def test_what_a_page_removes_or_changes_with_its_object_is_told_of_each(boss: Client) -> None:
    model = builders.model("llama")
    variant = builders.variant(model, "tp4", 4)
    node = builders.node("n1", 1)
    form = {**variant_form(variant), "gpus": 2}
    assert boss.post(reverse("admin:sizing_variant_change", args=[variant.pk]), form).status_code == 302
    boss.post(reverse("admin:sizing_servedmodel_delete", args=[model.pk]), {"post": "yes"})
    gpu = node.gpus.get()
    form = {"name": "n1", "ready": "on", "schedulable": "on", "labels": "{}", "taints": "[]"}
    line = {"id": gpu.pk, "node": node.pk, "index": 0, "type": gpu.type, "used_outside_mib": 5, "uuid": ""}
    form |= {f"gpus-0-{name}": str(value) for name, value in line.items()}
    form |= {"gpus-TOTAL_FORMS": "1", "gpus-INITIAL_FORMS": "1", "gpus-0-memory_mib": str(gpu.memory_mib)}
    assert boss.post(reverse("admin:sizing_node_change", args=[node.pk]), form).status_code == 302
    assert {way for _, way, _, _ in told()} == {"page"}
    assert [(name, what.split()[0]) for _, _, name, what in told()] == [
        ("llama · tp4", "Changed"),
        ("llama", "Deleted"),
        ("llama · tp4", "Deleted"),
        ("n1 GPU 0", "Changed"),
        ("n1", "Changed"),
    ]
    assert "used outside mib" in text(boss, reverse("admin:sizing_gpu_history", args=[gpu.pk]))


def variant_form(variant: Any) -> dict[str, Any]:
    """What the form of a variant says, of what it must."""
    form = {"model": variant.model_id, "name": variant.name, "position": 0, "nodes": 1, "gpus": 4}
    form |= {"cpu_millis": 0, "memory_mib": 0}
    return {**form, "gpu_memory_fraction": "0.9", "gpu_types": "", "node_selector": "", "tolerations": ""}


def test_a_refused_load_adds_nothing_to_the_history(boss: Client) -> None:
    with pytest.raises(DeskError):
        inventory_loads.load(b"{}", name="x", trigger="api", user=None)
    given = SimpleUploadedFile("x.yaml", b"{}")
    assert boss.post(reverse("admin:sizing_inventoryload_add"), {"inventory_file": given}).status_code == 302
    assert {row.state for row in InventoryLoad.objects.all()} == {"refused"}
    assert InventoryLoad.objects.count() == 2
    assert told() == []


def test_what_was_loaded_or_imported_is_deleted_by_nobody_below_a_superuser(boss: Client) -> None:
    inventory_loads.load(a_load(a_node("n1")), name="x", trigger="command", user=None)
    outcome = kubernetes.bring(kubernetes.read(cluster("k1")), partial=True)
    how: Any = {"name": "x", "size": 1, "partial": True, "trigger": "command", "user": None}
    cluster_imports.note(outcome, **how)
    operator = Client()
    kinds = ("node", "gpu", "benchprofile", "servedmodel", "variant", "measurement", "replica", "target")
    own = ("inventoryload", "clusterimport")
    verbs = [f"{verb}_{kind}" for verb in ("view", "add", "change", "delete") for kind in (*kinds, *own)]
    operator.force_login(person("otto", *verbs))
    for row in (InventoryLoad.objects.get(), ClusterImport.objects.get()):
        table = row._meta.model_name
        url = reverse(f"admin:sizing_{table}_delete", args=[row.pk])
        assert operator.post(url, {"post": "yes"}).status_code == 403
        listed = text(operator, reverse(f"admin:sizing_{table}_changelist"))
        assert "delete_selected" not in listed
        assert boss.post(url, {"post": "yes"}).status_code == 302
