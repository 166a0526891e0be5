"""Tokens: made by command, shown once, checked at every call; and how many calls there may be."""

from __future__ import annotations

import base64
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.utils import timezone
from rest_framework.test import APIClient

from sizing.models import ApiToken


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
