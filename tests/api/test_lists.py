"""Lists: pages, filters, search, order, and a constant number of queries."""

from __future__ import annotations

import gc
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from sizing.domain.levels import Level
from sizing.models import (
    BenchFile,
    BenchImport,
    BenchLevel,
    BenchProfile,
    Gpu,
    Measurement,
    Node,
    Placement,
    Refresh,
    Replica,
    ServedModel,
    Target,
    Variant,
)
from tests.api.conftest import LLAMA, Caller

COLLECTIONS = [
    "models",
    "profiles",
    "variants",
    "nodes",
    "replicas",
    "measurements",
    "targets",
    "refreshes",
    "imports",
]


def add_rows(count: int) -> None:
    """So many more of everything."""
    for i in range(BenchProfile.objects.count(), BenchProfile.objects.count() + count):
        profile = BenchProfile.objects.create(name=f"p{i}", input_tokens=1, output_tokens=1, ttft_ms=1)
        model = ServedModel.objects.create(name=f"m{i}", default_profile=profile)
        variant = Variant.objects.create(model=model, name=f"v{i}")
        node = Node.objects.create(name=f"n{i}", labels={"rack": str(i)})
        gpu = Gpu.objects.create(node=node, index=0, type="L4", memory_mib=24000)
        replica = Replica.objects.create(name=f"r{i}", variant=variant)
        Placement.objects.create(replica=replica, gpu=gpu)
        at = datetime(2026, 11, 1, tzinfo=UTC)
        Target.objects.create(model=model, profile=profile, variant=variant, tokens_per_sec=1)
        # One that is done, one that failed, and one that waits.
        refreshes = [
            Refresh.objects.create(
                variant=variant, profile=profile, replica=replica, trigger=trigger, state=state
            )
            for state, trigger in (("done", "schedule"), ("failed", "command"), ("queued", "api"))
        ]
        measurement = Measurement.objects.create(
            variant=variant, profile=profile, tok_per_sec=1, measured_at=at, refresh=refreshes[0]
        )
        # One that is stored, and one that is not; each with a file.
        for owner, state in ((measurement, "stored"), (None, "done")):
            brought = BenchImport.objects.create(
                variant=variant, profile=profile, trigger="api", state=state, measurement=owner
            )
            held = {"measurement": owner} if owner else {"bench_import": brought}
            BenchFile.objects.create(position=1, name=f"f{i}.json", size=1, sha256=f"{i}", **held)
        BenchLevel.objects.bulk_create(
            BenchLevel(position=position, verdict="pass", why="", observed=Level().as_dict(), **owner)
            for position in (1, 2)
            for owner in ({"measurement": measurement}, {"refresh": refreshes[1]})
        )


def queries(client: APIClient, path: str) -> int:
    client.get(path)
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path).status_code == 200
    return len(captured)


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_more_rows_take_no_more_queries(admin: APIClient, collection: str) -> None:
    add_rows(3)
    few = queries(admin, f"/api/v1/{collection}")
    add_rows(27)
    rows = {"refreshes": 90, "imports": 60}.get(collection, 30)
    assert admin.get(f"/api/v1/{collection}").json()["count"] == rows
    assert queries(admin, f"/api/v1/{collection}") == few <= 5


def test_a_target_takes_as_many_queries_as_the_sign_in(fleet: dict[str, Any], caller: Caller) -> None:
    client = caller("view_servedmodel")
    # The token, two for the permissions, and one or two for the revision.
    assert queries(client, f"/api/v1/models/{LLAMA}/target?tokens_per_sec=5000") <= 5


def test_pages_have_next_and_previous(admin: APIClient) -> None:
    add_rows(5)
    page = admin.get("/api/v1/nodes?page_size=2&page=2").json()
    assert [node["name"] for node in page["results"]] == ["n2", "n3"]
    assert (page["count"], page["next"], page["previous"]) == (
        5,
        "http://testserver/api/v1/nodes?page=3&page_size=2",
        "http://testserver/api/v1/nodes?page_size=2",
    )


def test_a_page_has_100_rows_and_at_most_1000(admin: APIClient) -> None:
    Node.objects.bulk_create(Node(name=f"n{i:04}") for i in range(1001))
    assert len(admin.get("/api/v1/nodes").json()["results"]) == 100
    assert len(admin.get("/api/v1/nodes?page_size=1000").json()["results"]) == 1000
    assert len(admin.get("/api/v1/nodes?page_size=5000").json()["results"]) == 1000


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("replicas?state=failed", []),
        ("replicas?state=ready&model=m1", ["r1"]),
        ("replicas?node=n2", ["r2"]),
        ("replicas?variant=v0", ["r0"]),
        ("replicas?search=m1", ["r1"]),
        ("replicas?benchable=false&ordering=-name", ["r2", "r1", "r0"]),
        ("nodes?type=L4&ready=true&schedulable=true", ["n0", "n1", "n2"]),
        ("nodes?type=L40S", []),
        ("nodes?ready=false", []),
        ("nodes?label=rack=1", ["n1"]),
        ("nodes?label=rack", ["n0", "n1", "n2"]),
        ("nodes?label=a.b/c=1", []),
        ("nodes?name__contains=N2", ["n2"]),
        ("nodes?name=n2", ["n2"]),
        ("nodes?search=n&ordering=-ready,-name", ["n2", "n1", "n0"]),
        ("models?default_profile=p1", ["m1"]),
        ("models?workload=other", []),
        ("variants?model=m2", ["v2"]),
        ("profiles?arrival=poisson&search=p0", ["p0"]),
    ],
)
def test_lists_can_be_filtered_searched_and_ordered(admin: APIClient, query: str, names: list[str]) -> None:
    add_rows(3)
    assert [row["name"] for row in admin.get(f"/api/v1/{query}").json()["results"]] == names


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("measurements?model=m1", 1),
        ("measurements?profile=p1&stale=false", 1),
        ("measurements?stale=true", 0),
        ("measurements?bound=edge", 0),
        ("targets?model=m1", 1),
        ("targets?variant=v9", 0),
        ("refreshes?state=queued&trigger=api", 3),
        ("refreshes?model=m1&state=failed", 1),
        ("refreshes?model=m1&state=cancelled", 0),
        ("refreshes?model=m1", 3),
        ("refreshes?model=m9", 0),
        ("refreshes?variant=v2", 3),
        ("refreshes?variant=v2&model=m1", 0),
        ("refreshes?profile=p1", 3),
        ("refreshes?trigger=schedule&profile=p1", 1),
        ("refreshes?trigger=admin", 0),
        ("refreshes?search=m2", 3),
    ],
)
def test_lists_without_names_can_be_filtered_too(admin: APIClient, query: str, count: int) -> None:
    add_rows(3)
    assert admin.get(f"/api/v1/{query}").json()["count"] == count


def rows_of_nodes() -> list[dict[str, Any]]:
    """The rows about nodes that are alive, of whichever answer."""
    there = (found for found in gc.get_objects() if type(found) is dict)
    return [found for found in there if "node" in found and isinstance(found.get("holders"), list)]


def test_what_an_answer_said_of_each_node_is_freed_without_a_collection(
    fleet: dict[str, Any], admin: APIClient
) -> None:
    gc.collect()
    before = {id(row): row for row in rows_of_nodes()}
    gc.disable()
    try:
        path = f"/api/v1/models/{LLAMA}/target?tokens_per_sec=5000&explain=nodes"
        said = admin.get(path).content  # its .json() would keep what it read
        left = [row for row in rows_of_nodes() if id(row) not in before]
    finally:
        gc.enable()
    assert left == []
    assert b'"holders":["' in said
