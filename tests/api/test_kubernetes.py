"""The Kubernetes cluster sent as a list, and where its sync stands."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from sizing.models import ClusterImport, ClusterSync, InventoryChange, Node, Replica
from tests.api.conftest import Caller, send
from tests.cluster_lists import LLAMA, as_bytes, node, pod, small

PATH = "/api/v1/inventory/kubernetes"
TABLES = ("node", "gpu", "servedmodel", "variant", "replica")
VIEW = [f"view_{table}" for table in TABLES]
WRITE = [f"{verb}_{table}" for verb in ("add", "change", "delete") for table in TABLES]
INCOMPLETE = as_bytes(node(), pod("llama-0"), left=412)


def post(client: APIClient, content: bytes, query: str = "", media_type: str = "application/json") -> Any:
    return send(client, "POST", PATH + query, content, media_type)


def written() -> Any:
    return InventoryChange.objects.count(), Node.objects.count(), ClusterImport.objects.count()


# Imported --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_list_is_imported_and_its_answer_says_what_it_did(admin: APIClient, slash: str) -> None:
    answer = post(admin, small(), slash)
    assert answer.status_code == 200
    form = answer.json()
    assert list(form) == ["dry_run", "refusals", "changes", "ignored", "warnings", "report"]
    assert (form["dry_run"], form["refusals"]) == (False, [])
    assert form["changes"]["nodes"] == {
        "added": ["gpu-a1"],
        "gone": [],
        "changed": [],
        "moved": [],
        "details": {},
    }
    assert form["changes"]["rows"]["created"]["nodes"] == 1
    assert form["report"]["nodes"]["gpu-a1"]["resources"]["nvidia.com/gpu"]["free"] == 4
    assert Replica.objects.get().variant.model.name == LLAMA
    row = ClusterImport.objects.get()
    assert (row.trigger, row.state, row.size, row.body) == ("api", "done", len(small()), None)
    assert row.requested_by is not None
    assert row.requested_by.username == "ada"


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (yaml.safe_dump(json.loads(small())).encode(), "application/yaml"),
        (gzip.compress(small()), "application/gzip"),
        (gzip.compress(small()), "application/octet-stream"),
        (small(), "application/x-www-form-urlencoded"),
        (small(), ""),
    ],
)
def test_json_yaml_and_gzip_are_known_by_their_content(
    admin: APIClient, content: bytes, media_type: str
) -> None:
    assert post(admin, content, media_type=media_type).status_code == 200
    assert Node.objects.get().gpus.count() == 8


def test_a_dry_run_says_the_same_and_changes_nothing(admin: APIClient) -> None:
    before = written()
    form = post(admin, small(), "?dry_run=1").json()
    assert (form["dry_run"], form["changes"]["nodes"]["added"], form["changes"]["rows"]) == (
        True,
        ["gpu-a1"],
        None,
    )
    assert written() == before
    assert post(admin, small(), "?dry_run=0").json()["dry_run"] is False


# Refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (INCOMPLETE, "the list is incomplete"),
        (as_bytes(node()), "the list has nodes but no pods"),
        (b"", ""),
        (b"{", ""),
        (b"\xff\xfe\x00", ""),
        (b'{"kind": "Status", "status": "Failure", "message": "nodes is forbidden"}', ""),
    ],
)
def test_a_refused_list_is_a_400_in_the_usual_form_and_changes_nothing(
    admin: APIClient, content: bytes, error: str
) -> None:
    before = written()
    answer = post(admin, content)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert answer.json()["error"].startswith(error)
    assert written() == before


def test_what_would_be_refused_a_dry_run_tells_and_partial_takes(admin: APIClient) -> None:
    looked = post(admin, INCOMPLETE, "?dry_run=1")
    assert looked.status_code == 200
    assert looked.json()["refusals"][0].startswith("the list is incomplete")
    assert post(admin, INCOMPLETE, "?dry_run=1&partial=1").json()["refusals"] == []
    assert post(admin, INCOMPLETE, "?partial=1").status_code == 200
    assert ClusterImport.objects.get().partial
    assert Node.objects.exists()


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("?dry_run=yes", {"dry_run": ["must be 0 or 1"]}),
        ("?partial=true", {"partial": ["must be 0 or 1"]}),
        ("?partial=1&partial=1", {"partial": ["must be 0 or 1"]}),
    ],
)
def test_parameters_are_0_or_1(admin: APIClient, query: str, fields: dict[str, list[str]]) -> None:
    answer = post(admin, small(), query)
    assert (answer.status_code, answer.json()["fields"]) == (400, fields)
    assert not Node.objects.exists()


def test_an_unknown_parameter_is_a_400(admin: APIClient) -> None:
    answer = post(admin, small(), "?dryrun=1")
    assert answer.status_code == 400
    assert answer.json()["error"] == "dryrun: there is no such parameter; there are dry_run, partial"
    assert admin.get(f"{PATH}?dry_run=1").status_code == 400
    assert not Node.objects.exists()


def test_a_form_of_files_is_a_415_and_a_huge_body_a_413(admin: APIClient) -> None:
    assert post(admin, small(), media_type="multipart/form-data; boundary=x").status_code == 415
    large = {"content-length": str(100 * 1024 * 1024 + 1)}
    answer = send(admin, "POST", PATH, b"x", "application/json", headers=large)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_other_methods_are_a_405(admin: APIClient) -> None:
    assert admin.put(PATH, {}).status_code == 405
    assert admin.delete(PATH).status_code == 405


# Who may ---------------------------------------------------------------------------------------------


def test_an_import_needs_leave_for_every_table_that_it_writes(caller: Caller) -> None:
    for missing in WRITE:
        answer = post(caller(*(name for name in WRITE if name != missing)), small())
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        assert f"the permission sizing.{missing} is missing" in answer.json()["error"]
    assert not Node.objects.exists()
    assert post(caller(*WRITE), small()).status_code == 200


def test_to_look_leave_to_view_is_enough(caller: Caller) -> None:
    viewer = caller(*VIEW)
    assert post(viewer, small(), "?dry_run=1").status_code == 200
    assert viewer.get(PATH).status_code == 200
    for query in ("", "?dry_run=0", "?dry_run=1&dry_run=1"):
        assert post(viewer, small(), query).status_code == 403
    for missing in VIEW:
        client = caller(*(name for name in VIEW if name != missing))
        assert post(client, small(), "?dry_run=1").status_code == 403
        assert client.get(PATH).status_code == 403
    assert not Node.objects.exists()


# How the sync goes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("slash", ["", "/"])
def test_without_a_sync_the_state_is_off_and_nothing_was_imported(admin: APIClient, slash: str) -> None:
    form = admin.get(PATH + slash).json()
    assert (form["sync"]["configured"], form["sync"]["state"]) == (False, "off")
    assert form["sync"]["seen_at"] is None
    assert form["last_import"] is None


def test_the_last_import_is_told_with_its_changes(admin: APIClient) -> None:
    post(admin, small())
    post(admin, as_bytes(node(), pod("llama-0"), pod("llama-1")))
    ClusterImport.objects.create(name="later", trigger="admin", state="read")
    last = admin.get(PATH).json()["last_import"]
    assert (last["trigger"], last["requested_by"], last["partial"]) == ("api", "ada", False)
    assert last["changes"]["replicas"]["added"] == {
        "count": 1,
        "first": [{"name": "llm/llama-1", "what": ""}],
    }
    assert last["finished_at"] is not None


def test_a_failing_sync_is_told_with_its_age(admin: APIClient, settings: Any) -> None:
    settings.KUBERNETES = replace(django_settings.KUBERNETES, mode="in-cluster")
    now = timezone.now()
    ClusterSync.objects.create(
        pk=1,
        state="failing",
        server="https://10.0.0.1:6443",
        seen_at=now - timedelta(seconds=660),
        failing_since=now - timedelta(seconds=600),
        failed_at=now,
        failures=3,
        error="the cluster refused the token (401 Unauthorized)",
        error_in="listing pods",
        lease_until=now + timedelta(seconds=60),
    )
    sync = admin.get(PATH).json()["sync"]
    assert (sync["state"], sync["failures"], sync["error_in"], sync["stale"]) == (
        "failing",
        3,
        "listing pods",
        True,
    )
    assert 660 <= sync["seen_age_s"] < 720
    assert sync["failing_since"] is not None
    assert json.dumps(sync)


def test_while_the_desk_follows_a_cluster_a_list_is_refused_and_a_dry_run_says_why(
    admin: APIClient, settings: Any
) -> None:
    settings.KUBERNETES = replace(django_settings.KUBERNETES, mode="in-cluster")
    before = written()
    answer = post(admin, small())
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert "follows its cluster live" in answer.json()["error"]
    looked_at = post(admin, small(), "?dry_run=1")
    assert looked_at.status_code == 200
    assert ["follows its cluster live" in line for line in looked_at.json()["refusals"]] == [True]
    assert written() == before


def test_a_session_imports_as_a_token_does(admin: APIClient) -> None:
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(User.objects.get(username="ada"))
    client.get("/admin/")
    token = client.cookies["csrftoken"].value if "csrftoken" in client.cookies else "x" * 32
    client.cookies["csrftoken"] = token
    for media_type in ("application/json", "application/x-www-form-urlencoded"):
        refused = send(client, "POST", PATH, small(), media_type)
        assert refused.status_code == 403
        done = send(client, "POST", PATH, small(), media_type, HTTP_X_CSRFTOKEN=token)
        assert (done.status_code, Node.objects.count()) == (200, 1)
        other = send(client, "POST", "/api/v1/inventory", small(), media_type, HTTP_X_CSRFTOKEN=token)
        assert other.status_code == 405
