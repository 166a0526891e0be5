"""Writes by the admin: the holding rules, actions with a confirmation, deleting, canceling."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from sizing.models import Gpu, Measurement, Node, Placement, Refresh, Replica, Variant
from sizing.services.targets import ask, parse_question
from tests import builders
from tests.admin.cluster import person

NODES = "admin:sizing_node_changelist"


@pytest.fixture
def fleet(db: None) -> Variant:
    """`llama` runs once, on GPUs 0 to 3 of gpu-a1; gpu-a2 is empty."""
    variant = builders.variant(builders.model("llama"), "tp4", 4)
    builders.measurement(variant, builders.profile("chat"), 1000)
    builders.replica("llama-0", variant, builders.node("gpu-a1"), (0, 1, 2, 3))
    builders.node("gpu-a2")
    return variant


def free_room() -> int:
    room: int = ask(parse_question("llama", {"tokens_per_sec": ["9000"]}))["free_room"]
    return room


def replica_form(variant: Variant, **fields: str) -> dict[str, str]:
    return {
        "name": "llama-1",
        "variant": str(variant.pk),
        "state": "ready",
        "placement": "gpu-a2: 0-3",
        "started_at_0": "",
        "started_at_1": "",
        "endpoint": "",
    } | fields


def add_replica(client: Client, variant: Variant, **fields: str) -> Any:
    return client.post(reverse("admin:sizing_replica_add"), replica_form(variant, **fields))


def placed(name: str) -> list[tuple[str, int]]:
    found = Placement.objects.filter(replica__name=name).order_by("gpu__node__name", "gpu__index")
    return list(found.values_list("gpu__node__name", "gpu__index"))


# Placement


def test_a_replica_is_placed_by_text(fleet: Variant, boss: Client) -> None:
    assert add_replica(boss, fleet, placement="gpu-a2: 0 1, 2;").status_code == 200
    assert add_replica(boss, fleet, placement="gpu-a2: 0 1, 2-3;").status_code == 302
    assert placed("llama-1") == [("gpu-a2", 0), ("gpu-a2", 1), ("gpu-a2", 2), ("gpu-a2", 3)]
    assert free_room() == 2


def test_a_replica_is_moved_by_text(fleet: Variant, boss: Client) -> None:
    replica = Replica.objects.get()
    url = reverse("admin:sizing_replica_change", args=[replica.pk])
    assert "gpu-a1: 0 1 2 3</textarea>" in boss.get(url).content.decode()
    form = replica_form(fleet, name="llama-0", placement="gpu-a1: 2 3 4 5")
    assert boss.post(url, form).status_code == 302
    assert placed("llama-0") == [("gpu-a1", 2), ("gpu-a1", 3), ("gpu-a1", 4), ("gpu-a1", 5)]


def test_gpus_that_somebody_holds_whole_are_refused_and_nothing_is_saved(
    fleet: Variant, boss: Client
) -> None:
    response = add_replica(boss, fleet, placement="gpu-a1: 3 4 5 6")
    assert response.status_code == 200
    body = response.content.decode()
    assert "gpu-a1" in body[body.index("errornote") : body.index("errornote") + 800]
    assert "gpu-a1: 3 4 5 6</textarea>" in body
    assert list(Replica.objects.values_list("name", flat=True)) == ["llama-0"]
    assert placed("llama-1") == []
    assert not LogEntry.objects.exists()


def test_a_claim_that_would_not_fit_its_holders_is_refused(fleet: Variant, boss: Client) -> None:
    fleet.gpu_memory_mib = 40000
    fleet.save()
    builders.replica("llama-1", fleet, Node.objects.get(name="gpu-a1"), (0, 1, 2, 3))
    form = {
        "model": str(fleet.model_id),
        "name": "tp4",
        "position": "0",
        "gpus": "4",
        "nodes": "1",
        "gpu_memory_mib": "41000",
        "cpu_millis": "0",
        "memory_mib": "0",
    }
    response = boss.post(reverse("admin:sizing_variant_change", args=[fleet.pk]), form)
    assert response.status_code == 200
    assert "errornote" in response.content.decode()
    fleet.refresh_from_db()
    assert fleet.gpu_memory_mib == 40000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("gpu-z: 0", "no node &quot;gpu-z&quot;"),
        ("gpu-a2: 9", "node &quot;gpu-a2&quot; has no GPU 9"),
        ("gpu-a2: 1 1", "node &quot;gpu-a2&quot;: GPU 1 is named twice"),
        ("gpu-a2: 0; gpu-a2: 1", "node &quot;gpu-a2&quot; is named twice"),
        ("gpu-a2 0 1", "&quot;gpu-a2 0 1&quot; is not of the form NODE: GPU GPU"),
        ("gpu-a2: 3-1", "node &quot;gpu-a2&quot;: 3-1 is no range of GPUs"),
        ("", "A replica without a placement can only be pending."),
    ],
)
def test_a_placement_that_cannot_be_read_says_where(
    fleet: Variant, boss: Client, text: str, problem: str
) -> None:
    assert problem in add_replica(boss, fleet, placement=text).content.decode()
    assert Replica.objects.count() == 1


def test_a_pending_replica_needs_no_placement(fleet: Variant, boss: Client) -> None:
    assert add_replica(boss, fleet, placement="", state="pending").status_code == 302


def test_odd_but_possible_holdings_are_saved_with_a_warning(fleet: Variant, boss: Client) -> None:
    Gpu.objects.filter(node__name="gpu-a2").update(used_outside_mib=5000)
    response = boss.post(reverse("admin:sizing_replica_add"), replica_form(fleet), follow=True)
    assert Replica.objects.filter(name="llama-1").exists()
    assert 'class="warning"' in response.content.decode()


def test_a_viewer_sees_the_placement_but_no_buttons(fleet: Variant, viewer: Client) -> None:
    body = viewer.get(
        reverse("admin:sizing_replica_change", args=[Replica.objects.get().pk])
    ).content.decode()
    assert "gpu-a1: 0 1 2 3" in body
    assert 'name="_save"' not in body
    assert "<textarea" not in body


# Documents in forms


@pytest.mark.parametrize(
    ("field", "text", "problem"),
    [
        ("labels", '{"zone": 1}', "must be a text, not 1"),
        ("labels", "[]", "labels: must be a mapping, not a list"),
        ("taints", '[{"key": "a", "effect": "Never"}]', "taints[0].effect: must be one of"),
        ("taints", "{", "line 1"),
    ],
)
def test_labels_and_taints_are_checked_as_in_the_inventory_file(
    fleet: Variant, boss: Client, field: str, text: str, problem: str
) -> None:
    node = Node.objects.create(name="bare")
    form = {
        "name": "bare",
        "ready": "on",
        "schedulable": "on",
        "gpus-TOTAL_FORMS": "0",
        "gpus-INITIAL_FORMS": "0",
    }
    response = boss.post(reverse("admin:sizing_node_change", args=[node.pk]), form | {field: text})
    assert problem in response.content.decode()


def test_labels_may_be_written_as_in_the_inventory_file(fleet: Variant, boss: Client) -> None:
    form = {
        "name": "bare",
        "labels": "{topology.kubernetes.io/zone: eu-1a}",
        "taints": "[{key: dedicated, effect: NoSchedule}]",
        "gpus-TOTAL_FORMS": "0",
        "gpus-INITIAL_FORMS": "0",
    }
    assert boss.post(reverse("admin:sizing_node_add"), form).status_code == 302
    node = Node.objects.get(name="bare")
    assert node.labels == {"topology.kubernetes.io/zone": "eu-1a"}
    assert node.taints == [{"key": "dedicated", "effect": "NoSchedule"}]


# Actions


def act(client: Client, list_name: str, action: str, rows: list[Any], **more: str | list[str]) -> Any:
    data = {"action": action, "_selected_action": [str(row.pk) for row in rows], **more}
    return client.post(reverse(list_name), data)


def hidden(body: str, name: str) -> list[str]:
    """The values that a form carries along by this name."""
    return [unescape(value) for value in re.findall(rf'type="hidden" name="{name}" value="([^"]*)"', body)]


def confirm(client: Client, list_name: str, action: str, rows: list[Any], **more: str | list[str]) -> Any:
    """Take an action and say yes to what it would change."""
    (digest,) = hidden(act(client, list_name, action, rows, **more).content.decode(), "confirmed")
    return act(client, list_name, action, rows, confirmed=digest, **more)


def test_cordoning_asks_first_and_then_changes_the_answer(fleet: Variant, boss: Client) -> None:
    nodes = list(Node.objects.all())
    assert free_room() == 3
    response = act(boss, NODES, "cordon", nodes, index="0")
    body = response.content.decode()
    assert "Cordon 2 nodes?" in body
    assert "gpu-a1: open → cordoned, 4 of 8 GPUs held" in body
    assert free_room() == 3
    assert confirm(boss, NODES, "cordon", nodes).status_code == 302
    assert free_room() == 0
    assert LogEntry.objects.count() == 2
    assert confirm(boss, NODES, "uncordon", nodes[:1]).status_code == 302
    assert free_room() == 1


def test_cordoning_what_is_cordoned_changes_nothing(fleet: Variant, boss: Client) -> None:
    Node.objects.update(schedulable=False)
    response = act(boss, NODES, "cordon", list(Node.objects.all()), index="0")
    assert response.status_code == 302
    assert not LogEntry.objects.exists()


def test_all_pages_of_a_list_can_be_cordoned(fleet: Variant, boss: Client) -> None:
    Node.objects.bulk_create(Node(name=f"bare-{i}") for i in range(120))
    first = Node.objects.first()
    response = act(boss, NODES, "cordon", [first], index="0", select_across="1")
    assert "Cordon 122 nodes?" in response.content.decode()
    assert 'name="select_across" value="1"' in response.content.decode()
    confirm(boss, NODES, "cordon", [first], select_across="1")
    assert not Node.objects.filter(schedulable=True).exists()


def test_a_viewer_is_offered_no_action_and_can_do_none(fleet: Variant, viewer: Client, boss: Client) -> None:
    assert '<option value="cordon"' in boss.get(reverse(NODES)).content.decode()
    assert '<option value="cordon"' not in viewer.get(reverse(NODES)).content.decode()
    act(viewer, NODES, "cordon", list(Node.objects.all()), confirmed="yes")
    assert Node.objects.filter(schedulable=True).count() == 2


def test_replicas_are_marked_benchable_after_a_confirmation(fleet: Variant, boss: Client) -> None:
    rows = list(Replica.objects.all())
    name = "admin:sizing_replica_changelist"
    assert (
        "Mark 1 replica as benchable?" in act(boss, name, "mark_benchable", rows, index="0").content.decode()
    )
    confirm(boss, name, "mark_benchable", rows)
    assert Replica.objects.get().benchable
    confirm(boss, name, "unmark_benchable", rows)
    assert not Replica.objects.get().benchable


# Deleting


def test_a_node_with_replicas_says_why_it_stays(fleet: Variant, boss: Client) -> None:
    node = Node.objects.get(name="gpu-a1")
    url = reverse("admin:sizing_node_delete", args=[node.pk])
    assert "gpu-a1 is in use by the replica llama-0." in boss.get(url).content.decode()
    boss.post(url, {"post": "yes"})
    assert Node.objects.filter(name="gpu-a1").exists()


def test_selected_models_with_replicas_say_why_they_stay(fleet: Variant, boss: Client) -> None:
    response = act(boss, "admin:sizing_servedmodel_changelist", "delete_selected", [fleet.model], index="0")
    assert "is in use by the replica llama-0" in response.content.decode()


def test_a_gpu_that_is_held_cannot_be_taken_off_its_node(fleet: Variant, boss: Client) -> None:
    node = Node.objects.get(name="gpu-a1")
    form = {
        "name": "gpu-a1",
        "ready": "on",
        "schedulable": "on",
        "gpus-TOTAL_FORMS": "8",
        "gpus-INITIAL_FORMS": "8",
    }
    for i, gpu in enumerate(node.gpus.order_by("index")):
        fields = {
            "id": gpu.pk,
            "node": node.pk,
            "index": i,
            "type": gpu.type,
            "memory_mib": gpu.memory_mib,
            "used_outside_mib": 0,
            "healthy": "on",
        }
        form |= {f"gpus-{i}-{name}": str(value) for name, value in fields.items()}
    url = reverse("admin:sizing_node_change", args=[node.pk])
    assert boss.post(url, form | {"gpus-0-DELETE": "on"}).status_code == 200
    assert Gpu.objects.filter(node=node).count() == 8
    assert boss.post(url, form | {"gpus-7-DELETE": "on"}).status_code == 302
    assert Gpu.objects.filter(node=node).count() == 7


# Refreshes


def test_a_queued_refresh_is_cancelled_by_post(fleet: Variant, boss: Client, viewer: Client) -> None:
    refresh = Refresh.objects.create(
        variant=fleet, profile=fleet.measurements.get().profile, trigger=Refresh.Trigger.ADMIN
    )
    page = reverse("admin:sizing_refresh_change", args=[refresh.pk])
    cancel = reverse("admin:sizing_refresh_cancel", args=[refresh.pk])
    assert cancel not in viewer.get(page).content.decode()
    assert viewer.post(cancel).status_code == 403
    assert cancel in boss.get(page).content.decode()
    assert boss.get(cancel).status_code == 405
    assert boss.post(cancel).status_code == 302
    refresh.refresh_from_db()
    assert refresh.state == Refresh.State.CANCELLED
    assert cancel not in boss.get(page).content.decode()


def test_targets_take_only_variants_of_their_model(fleet: Variant, boss: Client) -> None:
    other = builders.model("other")
    form = {"model": str(other.pk), "variant": str(fleet.pk), "tokens_per_sec": "10", "utilization": "1"}
    response = boss.post(reverse("admin:sizing_target_add"), form)
    assert "This is a variant of llama, not of other." in response.content.decode()


def test_variants_are_offered_with_the_name_of_their_model(fleet: Variant, boss: Client) -> None:
    query = {"app_label": "sizing", "model_name": "replica", "field_name": "variant", "term": "tp4"}
    response = boss.get(reverse("admin:autocomplete"), query)
    assert response.json()["results"] == [{"id": str(fleet.pk), "text": "llama · tp4"}]


def test_autocomplete_is_refused_to_those_who_may_not_view(fleet: Variant, db: None) -> None:
    client = Client()
    client.force_login(person("nobody", "view_replica"))
    query = {"app_label": "sizing", "model_name": "replica", "field_name": "variant", "term": ""}
    assert client.get(reverse("admin:autocomplete"), query).status_code == 403


def test_a_measured_variant_says_why_it_stays(fleet: Variant, boss: Client) -> None:
    measured = Measurement.objects.select_related("variant").earliest("pk")
    Replica.objects.all().delete()
    url = f"/admin/sizing/variant/{measured.variant.pk}/delete/"
    assert "is in use by the measurement" in boss.get(url).content.decode()
    boss.post(url, {"post": "yes"})
    assert Measurement.objects.filter(pk=measured.pk).exists()
