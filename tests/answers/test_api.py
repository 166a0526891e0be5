"""Kept answers over REST: listed, shown, and computed again."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from sizing.models import Answer, Node, ServedModel
from tests.answers.conftest import ask
from tests.api.conftest import Caller

TARGET = "/api/v1/models/llama/target"


def test_the_answer_of_the_api_carries_the_id_that_shows_it(llama: ServedModel, admin: APIClient) -> None:
    given = admin.get(TARGET, {"tokens_per_sec": "5000.0", "utilization": "0.9", "explain": "nodes"}).json()
    kept = admin.get(f"/api/v1/answers/{given['answer_id']}").json()
    assert {name: kept[name] for name in ("channel", "asked_by", "model", "profile", "variant")} == {
        "channel": "api",
        "asked_by": "ada",
        "model": "llama",
        "profile": "",
        "variant": "",
    }
    assert (kept["tokens_per_sec"], kept["utilization"], kept["as_if"]) == ("5000.0", "0.9", [])
    assert (kept["needed"], kept["current"], kept["more"], kept["room"], kept["fits"]) == (6, 2, 4, 2, False)
    assert (kept["replayable"], kept["measured"]["tok_per_sec"]) == (True, "1000.000000")
    del given["answer_id"], given["nodes"], given["measurement"]["age_s"]
    assert kept["result"] == given


def test_an_answer_is_computed_again_whatever_the_cluster_is_now(
    llama: ServedModel, admin: APIClient
) -> None:
    pk = admin.get(TARGET, {"tokens_per_sec": "4000"}).json()["answer_id"]
    Node.objects.filter(name="gpu-a2").update(schedulable=False)
    assert not admin.get(TARGET, {"tokens_per_sec": "4000"}).json()["fits"]
    again = admin.get(f"/api/v1/answers/{pk}/replay/").json()
    assert (again["same"], again["differences"], again["error"], again["result"]["fits"]) == (
        True,
        [],
        "",
        True,
    )
    row = Answer.objects.get(pk=pk)
    row.result["needed"] = 3
    row.save()
    again = admin.get(f"/api/v1/answers/{pk}/replay").json()
    assert (again["same"], again["differences"]) == (False, [{"path": "needed", "before": 3, "now": 4}])
    Answer.objects.update(inventory=None)
    refused = admin.get(f"/api/v1/answers/{pk}/replay")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["3000", "5000", "4000"]),
        ("asked_by=ada", ["5000", "4000"]),
        ("asked_by=ada&fits=true", ["4000"]),
        ("fits=false", ["5000"]),
        ("channel=command", ["3000"]),
        ("model=nobody", []),
        ("model=llama&page_size=1", ["3000"]),
        ("ordering=asked_at", ["4000", "5000", "3000"]),
        (f"asked_after={quote('2026-01-01T00:00:00+00:00')}", ["3000", "5000", "4000"]),
        ("asked_before=2026-01-01T00:00:00Z", []),
    ],
)
def test_the_list_is_filtered(
    llama: ServedModel,
    ada: User,
    caller: Caller,
    query: str,
    found: list[str],
) -> None:
    for user, rate, channel in ((ada, "4000", "api"), (ada, "5000", "api"), (None, "3000", "command")):
        ask(user, rate, channel)
    told = caller("view_answer").get(f"/api/v1/answers?{query}").json()["results"]
    assert [one["tokens_per_sec"] for one in told] == found
    assert all("result" not in one for one in told)


def test_a_list_takes_as_many_queries_for_many_rows_as_for_few(
    llama: ServedModel,
    ada: User,
    caller: Caller,
) -> None:
    client = caller("view_answer")

    def queries() -> int:
        with CaptureQueriesContext(connection) as taken:
            assert client.get("/api/v1/answers").status_code == 200
        return len(taken)

    ask(ada, "1")
    few = queries()
    for rate in range(2, 20):
        ask(ada, str(rate))
    assert queries() == few


@pytest.mark.parametrize(
    "query", ["asked_after=9999-12-31T23:59:59-23:59", "asked_before=0001-01-01T00:00:00%2B23:59"]
)
def test_a_time_that_there_is_not_in_utc_is_refused(llama: ServedModel, admin: APIClient, query: str) -> None:
    refused = admin.get(f"/api/v1/answers?{query}")
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid")
    name = query.partition("=")[0]
    assert refused.json()["fields"] == {name: ["Enter a valid date/time."]}
    edge = quote("9999-12-31T23:59:59+00:00")
    assert admin.get(f"/api/v1/answers?asked_before={edge}").status_code == 200


@pytest.mark.parametrize("key", ["00000000-0000-4000-8000-000000000000", "1", "x", "%00"])
def test_what_is_no_answer_is_not_found(admin: APIClient, key: Any) -> None:
    for path in (f"/api/v1/answers/{key}", f"/api/v1/answers/{key}/replay"):
        assert admin.get(path).json()["code"] == "not_found"
