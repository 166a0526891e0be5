"""Every request has an id, which its answer, its log lines and its tasks carry."""

from __future__ import annotations

import logging
import re
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client, RequestFactory

from llmgw_admin import errors, task_log
from llmgw_admin.request_log import RequestLog
from sizing import log_context, tally
from sizing.models import Refresh
from sizing.services import refreshes
from tests import builders

MADE = re.compile(r"[0-9a-f]{32}")


def access(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    found = [r for r in caplog.records if r.name == "llmgw_admin.access"]
    return [(r.getMessage().rpartition(" ms")[0].rpartition(" ")[0], r.fields) for r in found]  # type: ignore[attr-defined]


def test_the_id_of_the_caller_is_kept_and_another_is_made(db: None, client: Client) -> None:
    given = client.get("/healthz", headers={"X-Request-Id": "from-the-proxy.1"})
    assert given.headers["X-Request-Id"] == "from-the-proxy.1"
    made = client.get("/healthz", headers={"X-Request-Id": "no plain word"})
    assert MADE.fullmatch(made.headers["X-Request-Id"])
    assert made.headers["X-Request-Id"] != client.get("/healthz").headers["X-Request-Id"]


def test_a_request_leaves_a_line_with_its_user_and_without_what_was_asked_for(
    db: None, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.force_login(User.objects.create_superuser("ada"))
    with caplog.at_level(logging.INFO):
        client.get("/admin/sizing/node/?q=secret")
        client.get("/api/v1/nodes/none")
        client.get("/healthz/live")
        client.get("/static/sizing/desk.css")
    lines = access(caplog)
    assert [line for line, _ in lines] == ["GET /admin/sizing/node/ 200", "GET /api/v1/nodes/none 404"]
    assert [(fields["status"], fields["user"]) for _, fields in lines] == [(200, "ada"), (404, "ada")]
    assert all(fields["duration_ms"] >= 0 for _, fields in lines)


def test_nobody_is_asked_for_who_it_is_where_nobody_looked(
    db: None, client: Client, caplog: pytest.LogCaptureFixture, django_assert_num_queries: Any
) -> None:
    client.force_login(User.objects.create_superuser("ada"))
    with caplog.at_level(logging.INFO), django_assert_num_queries(0):
        client.get("/")
    assert [(line, "user" in fields) for line, fields in access(caplog)] == [("GET / 302", False)]


def test_requests_are_counted_by_the_name_of_their_address(db: None, client: Client) -> None:
    def counted() -> dict[tuple[str, ...], float]:
        found = tally.totals().counts.items()
        return {
            tuple(v for _, v in labels): n for (name, labels), n in found if name.startswith("llmgw_http")
        }

    before = counted()
    for name in ("a", "b"):
        client.get(f"/api/v1/nodes/{name}")
        client.get(f"/api/v1/nope/{name}")
    client.generic("BREW", "/healthz")
    grown = {key: n - before.get(key, 0) for key, n in counted().items() if n != before.get(key, 0)}
    assert grown == {
        ("node-detail", "GET", "401"): 2,
        ("nowhere", "GET", "401"): 2,
        ("healthz", "other", "405"): 1,
    }


def test_an_error_page_shows_the_id_and_so_does_the_line_of_the_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(request: Any) -> HttpResponse:
        logging.getLogger("anywhere").error("it broke: %s", log_context.request_id())
        return errors.server_error(request)

    request = RequestFactory().get("/admin/", headers={"X-Request-Id": "r-500"})
    answer = RequestLog(fail)(request)
    assert (answer.status_code, answer.headers["X-Request-Id"]) == (500, "r-500")
    assert "<code>r-500</code>" in answer.content.decode()
    assert "it broke: r-500" in caplog.messages


def test_a_row_and_its_message_carry_the_id_of_the_request_they_were_made_in(db: None) -> None:
    variant, profile = builders.variant(builders.model()), builders.profile()
    builders.replica("llama-0", variant, benchable=True, endpoint="http://10.0.0.1/v1")
    headers: dict[str, Any] = {}
    with log_context.telling(request_id="r-7"):
        row = refreshes.request(variant.model.name, profile.name, trigger="api", wake=False)
        task_log.send_the_id(headers=headers)
    assert (row.request_id, headers) == ("r-7", {"desk_request_id": "r-7"})
    other = Refresh.objects.create(variant=variant, profile=builders.profile("batch"), trigger="schedule")
    assert other.request_id == ""


def test_a_task_takes_over_the_id_of_its_message_if_it_is_one() -> None:
    for sent, taken in (("r-7", "r-7"), ("r 7\n", "")):
        task = SimpleNamespace(name="sweep", request=SimpleNamespace(headers={"desk_request_id": sent}))
        task_log.begin(task_id="t1", task=task)
        assert log_context.about().get("request_id", "") == taken
        assert (log_context.about()["task"], log_context.about()["task_id"]) == ("sweep", "t1")
        task_log.end(task_id="t1", task=task, state="SUCCESS")
        assert log_context.about() == {}


def test_no_line_holds_the_digest_of_a_token(
    db: None, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        client.get(f"/admin/sizing/apitoken/{'0123abcd' * 16}/change/")
    assert access(caplog)[0][0] == "GET /admin/sizing/apitoken/0123abcd…/change/ 302"
    assert "0123abcd0" not in caplog.text
