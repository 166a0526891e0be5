"""What lists and forms say: words for flags, plain decimals, dates with their zone, ways back."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from llmgw_admin.log_lines import OneLine, without_traceback_of_refusals
from sizing.models import Gpu, Node, Replica, Variant
from tests import builders
from tests.admin.cluster import person
from tests.admin.test_writing import act, add_replica, fleet, replica_form

__all__ = ["fleet"]


def page(client: Client, name: str, *args: Any) -> str:
    response = client.get(reverse(f"admin:{name}", args=args))
    assert response.status_code == 200
    return response.content.decode()


# The app's own index


def test_the_apps_index_shows_its_groups(boss: Client, viewer: Client) -> None:
    body = page(boss, "app_list", "sizing")
    assert "<h1>Capacity</h1>" in body
    assert "What is served" in body
    assert reverse("admin:sizing_target_changelist") in body
    assert reverse("admin:auth_user_changelist") not in body
    body = page(viewer, "app_list", "sizing")
    assert reverse("admin:sizing_node_changelist") in body
    assert "Wishes" not in body


def test_an_app_without_anything_to_see_is_not_found(outsider: Client) -> None:
    assert outsider.get(reverse("admin:app_list", args=["sizing"])).status_code == 404


# Variants


def variant_form(model: Any, name: str, **fields: str) -> dict[str, str]:
    least = {"gpus": "1", "nodes": "1", "cpu_millis": "0", "memory_mib": "0"}
    return {"model": str(model.pk), "name": name} | least | fields


def test_a_new_variant_without_a_position_is_the_last(fleet: Variant, boss: Client) -> None:
    url = reverse("admin:sizing_variant_add")
    for name in ("tp2", "tp1"):
        assert boss.post(url, variant_form(fleet.model, name, position="")).status_code == 302
    found = fleet.model.variants.order_by("position").values_list("name", "position")
    assert list(found) == [("tp4", 0), ("tp2", 1), ("tp1", 2)]
    assert boss.post(url, variant_form(builders.model("new"), "only", position="")).status_code == 302
    assert Variant.objects.get(name="only").position == 0


def test_a_position_that_is_given_is_kept(fleet: Variant, boss: Client) -> None:
    form = variant_form(fleet.model, "tp2", position="7")
    assert boss.post(reverse("admin:sizing_variant_add"), form).status_code == 302
    assert Variant.objects.get(name="tp2").position == 7


def test_the_form_of_a_new_variant_offers_no_position(fleet: Variant, boss: Client) -> None:
    body = page(boss, "sizing_variant_add")
    assert "Order of preference, lowest first. Empty: the last." in body
    assert 'name="position" value' not in body


# Words, numbers and dates


def test_lists_and_forms_say_flags_in_words(fleet: Variant, boss: Client, viewer: Client) -> None:
    Gpu.objects.filter(node__name="gpu-a1", index=0).update(healthy=False, partition=True)
    node = Node.objects.get(name="gpu-a1")
    for client, name, args in (
        (boss, "sizing_replica_changelist", ()),
        (boss, "sizing_gpu_changelist", ()),
        (boss, "auth_user_changelist", ()),
        (viewer, "sizing_node_change", (node.pk,)),
        (viewer, "sizing_replica_change", (Replica.objects.get().pk,)),
    ):
        body = page(client, name, *args)
        assert "icon-no" not in body, name
        assert "icon-yes" not in body, name
    gpus = page(boss, "sizing_gpu_changelist")
    assert '<td class="field-health">unhealthy</td><td class="field-split">partition</td>' in gpus
    assert '<td class="field-health">healthy</td><td class="field-split">–</td>' in gpus


def test_decimals_have_no_zeros_behind_them(db: None, boss: Client) -> None:
    node = builders.node("gpu-a1", 17, cost_per_hour="39.8", memory_mib=2031000)
    assert 'value="39.8"' in page(boss, "sizing_node_change", node.pk)
    client = Client()
    client.force_login(person("looker", "view_node", "view_gpu", "view_benchprofile"))
    body = page(client, "sizing_node_change", node.pk)
    assert '<div class="readonly">39.8</div>' in body
    assert '<div class="readonly">2,031,000</div>' in body
    assert "<p>81,559</p>" in body
    profile = builders.profile(percentile="99", e2e_ms="8600")
    body = page(client, "sizing_benchprofile_change", profile.pk)
    assert '<div class="readonly">99</div>' in body
    assert '<div class="readonly">8,600</div>' in body


def test_abbreviations_are_written_as_such(fleet: Variant, boss: Client) -> None:
    assert "SLO met</label>" in page(boss, "sizing_measurement_add")
    assert "GPUs:</label>" in page(boss, "sizing_variant_add")
    assert "UUID:</label>" in page(boss, "sizing_gpu_add")
    assert "UUID of GPU 0" in page(boss, "sizing_node_change", Node.objects.get(name="gpu-a1").pk)
    assert "By SLO met" in " ".join(page(boss, "sizing_measurement_changelist").split())


def test_dates_are_iso_and_say_their_zone(fleet: Variant, boss: Client, viewer: Client) -> None:
    Replica.objects.update(started_at=datetime(2026, 11, 20, 12, 45, tzinfo=UTC))
    body = page(boss, "sizing_replica_changelist")
    assert "Started (UTC)" in body
    assert ">2026-11-20 12:45</td>" in body
    pk = Replica.objects.get().pk
    assert "Started at (UTC):" in page(boss, "sizing_replica_change", pk)
    assert '<div class="readonly">2026-11-20 12:45 UTC</div>' in page(viewer, "sizing_replica_change", pk)
    assert "Date joined (UTC):" in page(boss, "auth_user_change", User.objects.get(username="boss").pk)


def test_a_list_that_leaves_nothing_out_does_not_offer_all(fleet: Variant, boss: Client) -> None:
    url = reverse("admin:sizing_node_changelist")
    assert "Show all" not in boss.get(url).content.decode()
    assert "Show all" in boss.get(url, {"q": "a1"}).content.decode()
    assert "Show all" in boss.get(url, {"ready__exact": "1"}).content.decode()


def test_the_list_of_nodes_shows_their_taints(boss: Client) -> None:
    one = {"key": "dedicated", "value": "rag", "effect": "NoSchedule"}
    builders.node("gpu-a1", taints=[one])
    builders.node("gpu-a2", taints=[one, {"key": "spot", "effect": "NoExecute"}, one])
    body = page(boss, "sizing_node_changelist")
    assert '<div class="desk-taints">dedicated=rag:<wbr>NoSchedule</div>' in body
    assert "dedicated=rag:<wbr>NoSchedule, spot:<wbr>NoExecute and 1 more</div>" in body


# Warnings and refusals


def messages(response: Any) -> list[str]:
    return [str(message) for message in response.context["messages"]]


@pytest.mark.parametrize(
    ("state", "reason"), [({"schedulable": False}, "is cordoned"), ({"ready": False}, "is not ready")]
)
def test_a_replica_on_a_closed_node_is_saved_with_the_inventorys_warning(
    fleet: Variant, boss: Client, state: dict[str, bool], reason: str
) -> None:
    Node.objects.update(**state)
    response = boss.post(reverse("admin:sizing_replica_add"), replica_form(fleet), follow=True)
    warning = f'replica "llama-1" is on node "gpu-a2", which {reason}'
    assert warning in messages(response)
    assert len(messages(response)) == 2
    assert Replica.objects.filter(name="llama-1").exists()


def test_a_replica_on_an_open_node_is_saved_without_a_warning(fleet: Variant, boss: Client) -> None:
    fleet.model.min_replicas = 5
    fleet.model.save()
    response = boss.get(add_replica(boss, fleet)["Location"])
    assert len(messages(response)) == 1


def test_what_cannot_be_deleted_leads_back(fleet: Variant, boss: Client) -> None:
    node = Node.objects.get(name="gpu-a1")
    every = f'href="{reverse("admin:sizing_node_changelist")}">All nodes</a>'
    body = page(boss, "sizing_node_delete", node.pk)
    assert f'href="{reverse("admin:sizing_node_change", args=[node.pk])}">Back to gpu-a1</a>' in body
    assert every in body
    response = act(boss, "admin:sizing_node_changelist", "delete_selected", [node], index="0")
    assert every in response.content.decode()


def test_a_refusal_is_one_line_of_the_log_and_no_traceback(
    outsider: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "django.request")
    assert outsider.get(reverse("admin:sizing_node_changelist")).status_code == 403
    (record,) = [record for record in caplog.records if record.name == "django.request"]
    assert without_traceback_of_refusals(record)
    assert OneLine().format(record).endswith("Forbidden (Permission denied): /admin/sizing/node/")


def test_a_fault_keeps_its_traceback() -> None:
    record = logging.makeLogRecord({"exc_info": (ValueError, ValueError("x"), None), "status_code": 500})
    assert without_traceback_of_refusals(record)
    assert record.exc_info is not None
