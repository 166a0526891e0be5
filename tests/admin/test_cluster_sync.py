"""The page of the sync: off, on, failing, stale, without a worker."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.utils import timezone

from sizing.models import ClusterSync, Node
from tests.admin.brought import IMPORTING, VIEWING, brought
from tests.admin.cluster import person
from tests.admin.test_measurement_page import words
from tests.cluster_lists import as_bytes, node, pod

PAGE = "/admin/sizing/clustersync/"
LIVE = f"{PAGE}live/"
NOW = f"{PAGE}now/"


@pytest.fixture
def on(settings: Any) -> None:
    """A desk that follows a cluster."""
    settings.KUBERNETES = replace(django_settings.KUBERNETES, mode="in-cluster")


def ago(seconds: float) -> Any:
    return timezone.now() - timedelta(seconds=seconds)


def sync(**fields: Any) -> ClusterSync:
    known = {
        "server": "https://10.0.0.1:6443",
        "state": "watching",
        "seen_at": ago(4),
        "listed_at": ago(900),
        "lease_until": timezone.now() + timedelta(minutes=1),
        "nodes": 12,
        "pods": 340,
        "events": 5678,
    }
    ClusterSync.objects.filter(pk=1).delete()
    return ClusterSync.objects.create(pk=1, **(known | fields))


def page(client: Client, path: str = PAGE) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return words(response.content.decode())


def test_a_sync_that_is_off_says_which_settings_turn_it_on(boss: Client) -> None:
    body = page(boss)
    assert "The sync with a live cluster is off." in body
    for name in ("KUBERNETES=in-cluster", "KUBERNETES=kubeconfig", "KUBECONFIG=PATH", "KUBERNETES_CONTEXT"):
        assert name in body
    assert "Sync now" not in body
    assert not ClusterSync.objects.exists()
    assert "The sync is off; nothing was asked for." in words(boss.post(NOW, follow=True).content.decode())
    assert not ClusterSync.objects.exists()


@pytest.mark.usefixtures("on")
def test_a_sync_that_watches_says_when_the_cluster_was_last_seen(boss: Client) -> None:
    sync(changed_at=ago(7200))
    for path in (PAGE, LIVE, f"{PAGE}1/change/"):
        body = page(boss, path)
        assert "The inventory follows the cluster: it was seen 4 s ago." in body.replace("\u202f", " ")
        assert "https://10.0.0.1:6443" in body
        assert "nodes 12" in body
        assert "events 5,678" in body
        assert "2 h ago" in body.replace("\u202f", " ")


@pytest.mark.usefixtures("on")
def test_a_sync_that_fails_says_since_when_how_often_and_why(boss: Client) -> None:
    sync(
        state="failing",
        seen_at=ago(400),
        failing_since=ago(390),
        failed_at=ago(3),
        failures=8,
        error="the cluster refused the token (401 Unauthorized)",
        error_in="listing pods",
    )
    body = page(boss).replace("\u202f", " ")
    assert "The sync has failed for 6 min; the cluster was seen 6 min ago." in body
    assert (
        "Failed listing pods, 8 in a row, last 3 s ago: the cluster refused the token (401 Unauthorized)."
        in body
    )
    assert "count as stale" not in body
    ClusterSync.objects.update(seen_at=ago(660))
    assert "The cluster's nodes count as stale until it is seen again" in page(boss).replace("&#x27;", "'")


@pytest.mark.usefixtures("on")
def test_a_sync_without_a_worker_says_so(boss: Client) -> None:
    sync(lease_until=ago(300))
    body = page(boss)
    assert "No worker runs the sync." in body
    assert "Start a worker of the queue sync" in body


@pytest.mark.usefixtures("on")
def test_a_sync_that_never_ran_waits_for_a_worker(boss: Client) -> None:
    assert "The sync waits for a worker; the cluster was never seen." in page(boss)


@pytest.mark.usefixtures("on")
def test_the_last_change_and_what_was_ignored_stand_there(boss: Client) -> None:
    odd = {"kind": "ConfigMap", "metadata": {"name": "x"}}
    row = brought(boss, as_bytes(node(), node("gpu-a2", ready=False), pod("llama-0"), odd))
    sync(changed_at=ago(60), changes=row.changes, report=row.report)
    body = page(boss)
    assert "2 nodes added gpu-a1 gpu-a2" in body
    assert "Closed for new pods: 1 node gpu-a2 : not_ready:False" in body
    assert "1 ConfigMap : says nothing about capacity" in body
    assert not Node.objects.exists()


@pytest.mark.usefixtures("on")
def test_a_fresh_list_is_asked_for_by_those_who_may_import(boss: Client) -> None:
    sync()
    assert boss.get(NOW).status_code == 405
    for name, perms in (("looker", VIEWING), ("almost", [*VIEWING, *IMPORTING[1:]])):
        client = Client()
        client.force_login(person(name, *perms))
        assert "Sync now" not in page(client)
        assert client.post(NOW).status_code == 403
    assert ClusterSync.objects.get().sync_requested_at is None
    body = words(boss.post(NOW, follow=True).content.decode())
    assert body.count("A fresh list is asked for.") == 2
    assert ClusterSync.objects.get().sync_requested_at is not None
    ClusterSync.objects.update(listed_at=timezone.now())
    assert "A fresh list is asked for." not in page(boss)


@pytest.mark.parametrize("missing", VIEWING)
def test_those_who_may_not_see_all_that_the_cluster_names_do_not_see_the_sync(db: None, missing: str) -> None:
    client = Client()
    client.force_login(person("almost", "view_clustersync", *(set(VIEWING) - {missing})))
    for path in (PAGE, LIVE, f"{PAGE}1/change/"):
        assert client.get(path).status_code == 403
    assert client.post(NOW).status_code == 403
