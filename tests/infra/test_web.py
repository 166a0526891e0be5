"""What every answer has in common, whatever the view."""

import logging
import re

import pytest
from django.contrib.auth import get_user_model
from django.db import InterfaceError, OperationalError, connection
from django.http import HttpResponse
from django.test import RequestFactory

from llmgw_admin import errors, middleware
from llmgw_admin.log_lines import OneLine

pytestmark = pytest.mark.django_db


def test_the_root_leads_to_the_admin(client):
    answer = client.get("/")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/")


@pytest.mark.parametrize("path", ["/admin/login", "/admin/login/", "/healthz", "/healthz/"])
def test_a_path_works_with_and_without_the_slash(client, path):
    assert client.get(path).status_code == 200


def test_the_admin_without_a_slash_takes_a_post_too(client):
    get_user_model().objects.create_superuser("root", password="a long enough word")
    answer = client.post("/admin/login?next=/admin/", {"username": "root", "password": "a long enough word"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/")


def test_every_page_carries_the_security_headers(client):
    headers = client.get("/admin/login/").headers
    assert headers["Content-Security-Policy"] == (
        "default-src 'self'; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    )
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"


def test_the_page_of_the_api_has_icons_of_its_own_and_no_inline_style_or_script(client):
    for path in ("/api/v1/docs", "/api/v1/docs/"):
        policy = client.get(path).headers["Content-Security-Policy"]
        assert policy.endswith("; img-src 'self' data:")
        assert "unsafe" not in policy
    assert "data:" not in client.get("/api/v1/schema").headers["Content-Security-Policy"]


def test_answers_of_every_kind_carry_the_security_headers(client):
    client.raise_request_exception = False
    answers = {
        "page": client.get("/admin/login/"),
        "redirect": client.get("/"),
        "API error": client.get("/api/v1/models"),
        "error page": client.get("/nope"),
        "static": client.get("/static/sizing/desk.css"),
        "strange host": client.get("/", headers={"Host": "evil.example"}),
        "too large": client.post("/admin/login/", b"x" * 1024 * 1025, content_type="text/plain"),
        "probe": client.get("/healthz"),
    }
    statuses = {kind: answer.status_code for kind, answer in answers.items()}
    assert statuses == dict(zip(answers, (200, 302, 401, 404, 200, 400, 413, 200), strict=True))
    for kind, answer in answers.items():
        headers = answer.headers
        assert headers["Content-Security-Policy"].startswith("default-src 'self'; object-src 'none'"), kind
        assert headers["X-Content-Type-Options"] == "nosniff", kind
        assert headers["Referrer-Policy"] == "same-origin", kind
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin", kind
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin", kind
        assert ("no-store" in headers["Cache-Control"]) == (kind != "static"), kind


@pytest.mark.parametrize(
    ("proxies", "said", "address"),
    [
        (0, "10.9.9.9", "127.0.0.1"),
        (1, "10.9.9.9", "10.9.9.9"),
        (1, "1.1.1.1, 10.9.9.9", "10.9.9.9"),
        (2, "1.1.1.1, 10.9.9.9, 10.0.0.1", "10.9.9.9"),
        (2, "10.9.9.9", "127.0.0.1"),
        (1, "10.9.9.9, somebody", "127.0.0.1"),
        (1, "", "127.0.0.1"),
    ],
)
def test_a_caller_is_who_our_outermost_proxy_says(settings, proxies, said, address):
    settings.PROXIES = proxies
    request = RequestFactory().get("/", headers={"X-Forwarded-For": said})
    middleware.ClientAddress(lambda request: HttpResponse())(request)
    assert request.META["REMOTE_ADDR"] == address


def test_only_who_has_signed_in_sends_a_large_form(client):
    large = b"x" * (middleware.LARGEST_FORM + 1)
    for path in ("/admin/login/", "/admin/sizing/benchimport/add/", "/nope"):
        answer = client.post(path, large, content_type="application/x-www-form-urlencoded")
        assert (answer.status_code, "<h1>Too large</h1>" in answer.content.decode()) == (413, True)
    assert client.post("/api/v1/nodes", large, content_type="application/json").status_code == 401
    client.force_login(get_user_model().objects.create_superuser("root"))
    assert client.post("/nope", large, content_type="text/plain").status_code == 404


def test_static_files_are_served_under_the_hash_of_their_content(client):
    page = client.get("/admin/login/").content.decode()
    address = re.search(r'href="(/static/admin/css/base\.css\?v=[0-9a-f]{12})"', page)
    assert address is not None
    answer = client.get(address[1])
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/css")
    assert b"DJANGO Admin styles" in b"".join(answer.streaming_content)


def test_an_unknown_address_is_json_under_the_api_and_a_page_elsewhere(client):
    answer = client.get("/api/v2/nope")
    assert answer.status_code == 404
    assert answer.json() == {"error": "there is nothing at this address", "code": "not_found"}
    page = client.get("/nope")
    assert page.status_code == 404
    assert "<h1>Not found</h1>" in page.content.decode()


def test_a_host_that_is_not_allowed_is_told_so(client):
    answer = client.get("/api/v1/models", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert answer.json() == {"error": "ALLOWED_HOSTS does not name this host", "code": "invalid"}


@pytest.mark.parametrize("error", [OperationalError("gone"), InterfaceError("closed")])
def test_a_database_that_is_away_is_a_503_in_a_view(error):
    away = middleware.DatabaseAway(lambda request: HttpResponse())
    answer = away.process_exception(RequestFactory().get("/api/v1/models"), error)
    assert answer is not None
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert b'"code": "unavailable"' in answer.content
    page = away.process_exception(RequestFactory().get("/admin/"), error)
    assert page is not None
    assert (page.status_code, "<h1>The desk cannot do this now</h1>" in page.content.decode()) == (503, True)


def test_any_other_error_is_left_to_the_500_that_shows_nothing():
    request = RequestFactory().get("/api/v1/models")
    away = middleware.DatabaseAway(lambda request: HttpResponse())
    assert away.process_exception(request, KeyError("x")) is None
    answer = errors.server_error(request)
    assert (answer.status_code, b'"code": "internal"' in answer.content) == (500, True)


def test_a_database_that_fails_outside_of_a_view_is_a_503_too():
    try:
        raise OperationalError("gone")
    except OperationalError:
        assert errors.server_error(RequestFactory().get("/api/v1/models")).status_code == 503


def test_a_form_without_its_token_gets_our_page(settings):
    answer = errors.csrf_failure(RequestFactory().post("/admin/login/"))
    assert (answer.status_code, "<h1>Not allowed</h1>" in answer.content.decode()) == (403, True)


def test_sqlite_waits_for_writers_and_writes_ahead():
    if connection.vendor != "sqlite":
        assert connection.settings_dict["OPTIONS"]["connect_timeout"] == 5
        return
    with connection.cursor() as cursor:
        values = [
            cursor.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        ]
    assert values == ["wal", 1, 1, 20000]


def test_a_log_record_is_one_line():
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        record = logging.LogRecord("desk", logging.ERROR, "", 0, "it\nfailed", (), (type(error), error, None))
    line = OneLine().format(record)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ERROR desk: it \| failed \| .*two \| lines", line)
