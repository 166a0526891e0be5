"""Tokens: made by command, shown once, checked at every call; and how many calls there may be."""

from __future__ import annotations

import base64
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from sizing.models import ApiToken, Node
from sizing.services import token_uses
from tests import builders


def ask(header: str) -> Any:
    return APIClient().get("/api/v1/nodes", headers={"authorization": header})


@pytest.fixture
def token(db: None) -> str:
    User.objects.create_superuser("ada", password="x")
    out = StringIO()
    call_command("create_token", "ada", "--label", "ci job", stdout=out)
    return out.getvalue().strip()


def test_a_token_signs_in_and_only_its_hash_is_kept(token: str) -> None:
    assert token.startswith("llmgw_")
    assert ask(f"Bearer {token}").status_code == 200
    row = ApiToken.objects.get()
    assert (row.label, row.expiry) == ("ci job", None)
    assert token not in (row.digest, row.token_key)


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer a b",
        "Bearer llmgw_x",
        "Bearer {token}x",
        "Token {token}",
        "Bearer \xff",
        "Bearer a\0b",
    ],
)
def test_what_is_no_token_is_a_401(token: str, header: str) -> None:
    answer = ask(header.format(token=token))
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_password_is_no_way_in(token: str) -> None:
    assert ask(f"Basic {base64.b64encode(b'ada:x').decode()}").status_code == 401


def test_an_expired_token_is_a_401(db: None) -> None:
    User.objects.create_superuser("ada", password="x")
    out = StringIO()
    call_command("create_token", "ada", "--label", "short", "--days", "2", stdout=out)
    expiry = ApiToken.objects.get().expiry
    assert timedelta(days=1, hours=23) < expiry - timezone.now() <= timedelta(days=2)
    assert ask(f"Bearer {out.getvalue().strip()}").status_code == 200
    ApiToken.objects.update(expiry=timezone.now() - timedelta(seconds=1))
    assert ask(f"Bearer {out.getvalue().strip()}").status_code == 401


def test_a_user_who_is_not_active_is_a_401(token: str) -> None:
    User.objects.update(is_active=False)
    assert ask(f"Bearer {token}").status_code == 401


def test_a_token_that_reads_only_looks_and_changes_nothing(db: None) -> None:
    User.objects.create_superuser("ada", password="x")
    builders.node("gpu-1")
    out = StringIO()
    call_command("create_token", "ada", "--label", "board", "--read-only", stdout=out)
    client = APIClient(headers={"authorization": f"Bearer {out.getvalue().strip()}"})
    for method in ("get", "head", "options"):
        assert getattr(client, method)("/api/v1/nodes").status_code == 200
    for method in ("post", "put", "patch", "delete"):
        for path in ("/api/v1/nodes", "/api/v1/nodes/gpu-1", "/api/v1/inventory", "/api/v1/models/m/refresh"):
            answer = getattr(client, method)(path, {})
            said = f"this token may only read (GET, HEAD, OPTIONS), not {method.upper()}"
            assert (answer.status_code, answer.json()) == (403, {"error": said, "code": "forbidden"})
    assert Node.objects.get().name == "gpu-1"


def test_a_revoked_token_is_a_401_and_stays_to_be_seen(token: str) -> None:
    out = StringIO()
    call_command("revoke_token", token[:12], stdout=out)
    assert out.getvalue() == f"revoked ci job ({token[:15]}…)\n"
    answer = ask(f"Bearer {token}")
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    row = ApiToken.objects.get()
    assert row.revoked_at is not None
    told = LogEntry.objects.latest("pk")
    assert (told.object_repr, told.get_change_message()) == (str(row), "Changed revoked.")
    call_command("revoke_token", token, stdout=out)
    assert out.getvalue().endswith("nothing to revoke: no such token lets anybody in\n")
    assert ApiToken.objects.get().revoked_at == row.revoked_at


def test_all_tokens_of_a_user_are_revoked_at_once(token: str) -> None:
    User.objects.create_superuser("eve", password="x")
    other = StringIO()
    call_command("create_token", "eve", "--label", "x", stdout=other)
    call_command("revoke_token", "--user", "ada", stdout=StringIO())
    assert ask(f"Bearer {token}").status_code == 401
    assert ask(f"Bearer {other.getvalue().strip()}").status_code == 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either the beginning of a token or --user USER"),
        (["llmgw_abcdef", "--user", "ada"], "give either the beginning of a token or --user USER"),
        (["llmgw_abc"], "give at least the first 10 signs of the token"),
        (["llmgw_zzzzzz"], 'no token begins with "llmgw_zzzzzz"'),
        (["--user", "bob"], 'no user "bob"'),
    ],
)
def test_a_wrong_revocation_is_one_line(token: str, arguments: list[str], message: str) -> None:
    err = StringIO()
    with pytest.raises(SystemExit) as stopped:
        call_command("revoke_token", *arguments, stderr=err)
    assert (stopped.value.code, err.getvalue()) == (2, message + "\n")
    assert ask(f"Bearer {token}").status_code == 200


def test_when_a_token_was_used_is_written_apart_from_its_requests(token: str) -> None:
    begun = timezone.now()
    with CaptureQueriesContext(connection) as queries:
        assert ask(f"Bearer {token}").status_code == 200
    assert not [query for query in queries if "UPDATE" in query["sql"]]
    assert ApiToken.objects.get().last_used_at is None
    token_uses.write()
    used = ApiToken.objects.get().last_used_at
    assert used is not None
    assert begun <= used <= timezone.now()
    with CaptureQueriesContext(connection) as queries:
        token_uses.write()
    assert len(queries) == 0


def test_a_use_that_cannot_be_written_fails_nothing_and_is_written_later(
    token: str, monkeypatch: Any, caplog: Any
) -> None:
    assert ask(f"Bearer {token}").status_code == 200
    with monkeypatch.context() as patch:
        patch.setattr(ApiToken.objects, "filter", _away)
        token_uses.write()
    assert "when tokens were used is not written yet: gone" in caplog.text
    token_uses.write()
    assert ApiToken.objects.get().last_used_at is not None


def _away(*_: Any, **__: Any) -> Any:
    raise OperationalError("gone")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bob", "--label", "x"], 'no user "bob"'),
        (["ada"], "the label must have 1 to 120 characters"),
        (["ada", "--label", " "], "the label must have 1 to 120 characters"),
        (["ada", "--label", "a\nb"], "the label must be one line, without line breaks"),
        (["ada", "--label", "x", "--days", "0"], "days must be from 1 to 36500"),
        (["ada", "--label", "x", "--days", "-1"], "--days must be a whole number of days"),
        (["ada", "--label", "x", "--days", "9" * 5000], "days must be from 1 to 36500"),
        (["ada", "--label", "x", "--days", "99999999999"], "days must be from 1 to 36500"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_2(db: None, arguments: list[str], message: str) -> None:
    User.objects.create_user("ada")
    out, err = StringIO(), StringIO()
    with pytest.raises(SystemExit) as stopped:
        call_command("create_token", *arguments, stdout=out, stderr=err)
    assert stopped.value.code == 2
    assert (out.getvalue(), err.getvalue()) == ("", message + "\n")
    assert ApiToken.objects.count() == 0


def test_a_session_signs_in_too(admin: APIClient) -> None:
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(User.objects.get(username="ada"))
    assert client.get("/api/v1/nodes").status_code == 200
    refused = client.post("/api/v1/nodes", {"name": "n"})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")


def test_a_signed_in_caller_has_so_many_calls_a_minute(
    admin: APIClient, settings: Any, monkeypatch: Any
) -> None:
    settings.THROTTLE = 3
    now = 1_000_000.0
    monkeypatch.setattr("sizing.api.throttling.time.time", lambda: now)
    assert [admin.get("/api/v1/nodes").status_code for _ in range(4)] == [200, 200, 200, 429]
    answer = admin.get("/api/v1/models")
    assert answer.json()["code"] == "throttled"
    assert 1 <= int(answer.headers["Retry-After"]) <= 61
    now += int(answer.headers["Retry-After"])
    assert admin.get("/api/v1/nodes").status_code == 200


def test_a_cache_that_is_away_holds_up_nobody_and_is_left_alone_for_a_while(
    admin: APIClient, settings: Any, caplog: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("sizing.api.throttling._away_until", 0.0)
    away = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1/0"}
    settings.CACHES = {"default": away}
    settings.THROTTLE = 1
    assert [admin.get("/api/v1/nodes").status_code for _ in range(2)] == [200, 200]
    assert caplog.text.count("requests are not counted, the cache is away: ") == 1
    assert ask("Bearer llmgw_x").status_code == 401


def test_guessing_tokens_is_held_up_after_30_a_minute(db: None, monkeypatch: Any) -> None:
    monkeypatch.setattr("sizing.api.throttling.time.time", lambda: 1_000_000.0)
    answers = [ask(f"Bearer llmgw_{i}").status_code for i in range(31)]
    assert answers == [401] * 30 + [429]
    assert APIClient().get("/api/v1/nodes").status_code == 429


def test_a_forwarded_address_is_not_believed(db: None, monkeypatch: Any) -> None:
    monkeypatch.setattr("sizing.api.throttling.time.time", lambda: 1_000_000.0)
    for i in range(31):
        answer = APIClient().get("/api/v1/nodes", headers={"x-forwarded-for": f"10.0.0.{i}"})
    assert answer.status_code == 429
