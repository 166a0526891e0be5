"""The cluster in a real browser: a list looked at and imported, rules tried, the sync followed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.utils import timezone
from playwright.sync_api import FilePayload, expect

from sizing.models import ClusterImport, ClusterSync, MappingRule, Node, Replica
from sizing.services import cluster_imports
from sizing.syncing import importing
from tests.browser.conftest import Desk
from tests.cluster_lists import LLAMA, as_bytes, node, pod

GIVE = "/admin/sizing/clusterimport/add/"
RULES = "/admin/sizing/mappingrule/"
SYNC = "/admin/sizing/clustersync/"
LONG = "a-rather-long-name-of-a-node-that-has-no-space-in-it.example.internal"


def cluster(left: int = 0) -> bytes:
    """A cluster with a bit of everything, and names that are too long for a phone."""
    return as_bytes(
        node(LONG),
        node("gpu-a2", unschedulable=True),
        *(node(f"gpu-b{i:02}", ready=False) for i in range(20)),
        pod("llama-0", on=LONG, labels={"team": "rag"}),
        pod("llama-1", on=LONG, labels={"team": "a-team-with-a-very-long-name-indeed"}),
        pod("llama-2", on=None),
        {"kind": "ConfigMap", "metadata": {"name": "x"}},
        left=left,
    )


def give(desk: Desk, content: bytes) -> ClusterImport:
    page = desk.page
    page.goto(f"{desk.address}{GIVE}")
    file: FilePayload = {"name": "cluster.json", "mimeType": "application/json", "buffer": content}
    page.get_by_label("List of the cluster").set_input_files(file)
    page.get_by_role("button", name="Read the list").click()
    expect(page.get_by_role("heading", name="The list", exact=True)).to_be_visible()
    return ClusterImport.objects.latest("pk")


def follow_a_cluster(settings: Any) -> None:
    settings.KUBERNETES = replace(django_settings.KUBERNETES, mode="in-cluster")


def test_a_list_is_looked_at_then_imported(desk: Desk) -> None:
    page = desk.page
    page.goto(f"{desk.address}/admin/")
    page.get_by_role("link", name="Import the cluster", exact=True).click()
    assert page.url == f"{desk.address}{GIVE}"
    row = give(desk, as_bytes(node(), pod("llama-0")))
    assert page.url == f"{desk.address}/admin/sizing/clusterimport/{row.pk}/change/"
    expect(page.locator("#sentence")).to_contain_text("An import changes 3 objects.")
    expect(page.get_by_role("cell", name="nvidia.com/gpu")).to_be_visible()
    assert not Node.objects.exists()
    page.get_by_role("button", name="Import").click()
    expect(
        page.get_by_text("The list is imported: 1 node added, 1 replica added, 1 model added.")
    ).to_be_visible()
    assert Node.objects.get().name == "gpu-a1"
    assert Replica.objects.get().variant.model.name == LLAMA


def test_a_large_list_is_followed_until_it_is_imported(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_imports, "LARGE_BYTES", 10)
    row = give(desk, as_bytes(node(), pod("llama-0")))
    page = desk.page
    expect(page.locator("#sentence")).to_contain_text("a worker reads the list as soon as one is free")
    ClusterImport.objects.update(state="running", progress=40, attempts=1)
    expect(page.locator("progress")).to_have_attribute("value", "40")
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    ClusterImport.objects.update(state="queued", attempts=0)
    assert importing.read(row.pk)
    expect(page.locator("#sentence")).to_contain_text("An import changes 3 objects.")
    page.get_by_role("button", name="Import").click()
    expect(page.locator("#sentence")).to_contain_text("a worker imports the list as soon as one is free")
    assert importing.bring(row.pk)
    expect(page.locator("#sentence")).to_contain_text("The list is imported: 3 objects changed.")


def write_rule(desk: Desk, model: str) -> None:
    page = desk.page
    page.goto(f"{desk.address}{RULES}add/")
    page.get_by_label("Name:", exact=True).fill("by team")
    page.get_by_label("Key").fill("team")
    page.get_by_label("Pattern").fill("(.+)")
    page.get_by_label("Model").fill(model)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_rule_is_tried_before_it_is_saved(desk: Desk, scripts: bool) -> None:
    give(desk, cluster())
    desk.page.get_by_role("button", name="Import").click()
    expect(desk.page.get_by_text("The list is imported: ").first).to_be_visible()
    with desk.another(scripts=scripts) as other:
        page = other.page
        write_rule(other, r"team-\1")
        page.get_by_role("button", name="Preview").click()
        expect(page.locator("#sentence")).to_contain_text(
            "Not saved. 2 pods become something else, 1 stays as it is."
        )
        row = page.get_by_role("row", name="llm/llama-0")
        expect(row.get_by_role("cell").nth(3)).to_have_text("→ team-rag")
        assert not MappingRule.objects.exists()
        expect(page.get_by_label("Model")).to_have_value(r"team-\1")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_text("The rules work from the next import or sync on.")).to_be_visible()
        assert MappingRule.objects.get().model == r"team-\1"


def test_the_page_of_the_sync_follows_it(desk: Desk, settings: Any) -> None:
    page = desk.page
    page.goto(f"{desk.address}{SYNC}")
    expect(page.locator("#sentence")).to_have_text("The sync with a live cluster is off.")
    follow_a_cluster(settings)
    now = timezone.now()
    ClusterSync.objects.create(
        pk=1, state="watching", seen_at=now, listed_at=now, lease_until=now + timedelta(minutes=5), nodes=12
    )
    page.reload()
    expect(page.locator("#sentence")).to_contain_text("The inventory follows the cluster")
    ClusterSync.objects.update(
        state="failing",
        failures=2,
        failing_since=now,
        failed_at=now,
        error="no connection",
        error_in="listing",
    )
    expect(page.locator("#sentence")).to_contain_text("The sync has failed for")
    expect(page.get_by_text("no connection")).to_be_visible()
    page.get_by_role("button", name="Sync now").click()
    expect(page.get_by_text("A fresh list is asked for.").first).to_be_visible()
    assert ClusterSync.objects.get().sync_requested_at is not None


@pytest.mark.looks
def test_each_step_with_the_cluster_is_accessible_and_fits(desk: Desk, settings: Any) -> None:
    page = desk.page
    page.goto(f"{desk.address}{GIVE}")
    page.get_by_role("button", name="Read the list").click()
    expect(page.get_by_text("Choose a file.")).to_be_visible()
    desk.check("the form with errors")
    give(desk, cluster(left=412))
    desk.check("a list that is refused")
    page.get_by_role("button", name="Take it as incomplete").click()
    expect(page.locator("#sentence")).to_contain_text("An import changes")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    desk.check("what a list says")
    row = ClusterImport.objects.get()
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_text("The list is imported: ").first).to_be_visible()
    desk.check("what was imported")
    ClusterImport.objects.create(name="x.json", state="running", progress=40, trigger="admin")
    page.goto(f"{desk.address}/admin/sizing/clusterimport/{ClusterImport.objects.latest('pk').pk}/change/")
    desk.check("one that is read")
    write_rule(desk, r"team-\1")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#sentence")).to_contain_text("Not saved.")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    desk.check("a rule that is tried")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("link", name="What the rules do").click()
    desk.check("what the rules do")
    follow_a_cluster(settings)
    row.refresh_from_db()
    now = timezone.now()
    ClusterSync.objects.update_or_create(
        pk=1,
        defaults={
            "state": "failing",
            "server": f"https://{LONG}:6443",
            "seen_at": now - timedelta(hours=1),
            "listed_at": now - timedelta(hours=1),
            "changed_at": now,
            "failing_since": now,
            "failed_at": now,
            "failures": 3,
            "error": "the API server answered 500 Internal Server Error: " + "x" * 90,
            "error_in": "listing pods",
            "lease_until": now + timedelta(minutes=5),
            "report": row.report,
            "changes": row.changes,
        },
    )
    page.goto(f"{desk.address}{SYNC}")
    desk.check("a sync that fails")
