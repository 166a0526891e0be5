"""Who keeps a row: a filter of lists, a line in forms, and what saving a change does."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from sizing.models import Node, Replica, ServedModel, Variant
from tests import builders
from tests.admin.cluster import person

KEPT = {
    "servedmodel": "Made from the cluster. Saving a change keeps it by hand from then on.",
    "variant": "Made from the cluster. Saving a change keeps it by hand from then on.",
    "node": "Kept by the cluster: its next import or sync overwrites all but the cost per hour.",
    "replica": "Kept by the cluster: its next import or sync overwrites all but endpoint and benchable.",
}
TABLES: dict[str, Any] = {
    "servedmodel": ServedModel,
    "variant": Variant,
    "node": Node,
    "replica": Replica,
}
KINDS = list(TABLES)


@pytest.fixture(autouse=True)
def fleet(db: None) -> None:
    """One of each, kept by the cluster."""
    variant = builders.variant(builders.model("llama", owner="team a"), "tp4", 4)
    builders.replica("llama-0", variant, builders.node("gpu-a1"), (0, 1, 2, 3))
    for table in TABLES.values():
        table.objects.update(source="kubernetes")


def page(client: Client, kind: str) -> str:
    row = TABLES[kind].objects.get()
    return client.get(reverse(f"admin:sizing_{kind}_change", args=[row.pk])).content.decode()


def fields_of(client: Client, kind: str) -> tuple[str, dict[str, Any]]:
    """The address of the only row's form, and what it holds."""
    url = reverse(f"admin:sizing_{kind}_change", args=[TABLES[kind].objects.get().pk])
    context = client.get(url).context
    forms = [context["adminform"].form]
    for inline in context["inline_admin_formsets"]:
        forms += [inline.formset.management_form, *inline.formset.forms]
    data = {}
    for form in forms:
        for bound in form:
            value = bound.field.prepare_value(bound.value())
            if value is not None and value is not False:
                data[bound.html_name] = value
    return url, data


@pytest.mark.parametrize("kind", KINDS)
def test_a_form_says_that_the_cluster_keeps_the_row(boss: Client, kind: str) -> None:
    assert page(boss, kind).count(KEPT[kind]) == 1
    TABLES[kind].objects.update(source="")
    assert KEPT[kind] not in page(boss, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_who_may_only_look_is_not_told_of_saving(client: Client, kind: str) -> None:
    client.force_login(person("looks", f"view_{kind}"))
    assert KEPT[kind] not in page(client, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_is_filtered_by_source(boss: Client, kind: str) -> None:
    url = reverse(f"admin:sizing_{kind}_changelist")

    def shown(query: str) -> int:
        return int(boss.get(f"{url}?{query}").context["cl"].result_count)

    assert [shown("source=hand"), shown("source=kubernetes"), shown("")] == [0, 1, 1]
    TABLES[kind].objects.update(source="")
    assert [shown("source=hand"), shown("source=kubernetes")] == [1, 0]


@pytest.mark.parametrize(
    ("kind", "field", "value"), [("servedmodel", "owner", "team b"), ("variant", "cpu_millis", "4000")]
)
def test_what_is_changed_of_a_model_or_variant_is_kept_by_hand(
    boss: Client, kind: str, field: str, value: str
) -> None:
    url, data = fields_of(boss, kind)
    assert boss.post(url, data).status_code == 302
    assert TABLES[kind].objects.get().source == "kubernetes"
    assert boss.post(url, data | {field: value}).status_code == 302
    row = TABLES[kind].objects.get()
    assert (row.source, str(getattr(row, field))) == ("", value)
    other = Variant if kind == "servedmodel" else ServedModel
    assert other.objects.get().source == "kubernetes"


@pytest.mark.parametrize(
    ("kind", "field", "value"), [("node", "cost_per_hour", "3.000000"), ("replica", "endpoint", "http://r")]
)
def test_nodes_and_replicas_stay_the_clusters(boss: Client, kind: str, field: str, value: str) -> None:
    url, data = fields_of(boss, kind)
    assert boss.post(url, data | {field: value}).status_code == 302
    row = TABLES[kind].objects.get()
    assert (row.source, str(getattr(row, field))) == ("kubernetes", value)


def test_a_replica_may_have_a_priority_of_its_own(boss: Client) -> None:
    url, data = fields_of(boss, "replica")
    assert boss.post(url, data | {"priority": "-7"}).status_code == 302
    assert Replica.objects.get().priority == -7
    assert boss.post(url, data | {"priority": ""}).status_code == 302
    assert Replica.objects.get().priority is None
    refused = boss.post(url, data | {"priority": str(2**31)})
    assert "Ensure this value is less than or equal to 2147483647." in refused.content.decode()


def test_a_half_group_of_the_cluster_is_saved_with_a_warning(boss: Client) -> None:
    url, data = fields_of(boss, "replica")
    saved = boss.post(url, data | {"placement": "gpu-a1: 0 1"}, follow=True)
    assert str(next(iter(saved.context["messages"]))) == (
        'replica "llama-0": holds 2 GPUs of node "gpu-a1", but variant "tp4" takes 4 on each node'
    )
    assert Replica.objects.get().placements.count() == 2
    Replica.objects.update(source="")
    refused = boss.post(url, data | {"placement": "gpu-a1: 0 1 2"})
    assert refused.status_code == 200
    assert Replica.objects.get().placements.count() == 2
