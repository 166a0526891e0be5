"""Signing in, and the limit on failures."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from sizing.admin.site import FAILURES_PER_NAME
from tests.admin.cluster import person

PER_MINUTE_LIMIT = "llmgw_admin.middleware.SignInThrottle"


@pytest.fixture
def only_the_sites_own_limit(settings: Any) -> None:
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if name != PER_MINUTE_LIMIT]


def sign_in(client: Client, name: str, password: str) -> Any:
    return client.post(
        reverse("admin:login") + "?next=/admin/sizing/node/", {"username": name, "password": password}
    )


def test_signing_in_leads_where_one_wanted_to_go(db: None) -> None:
    person("boss", superuser=True)
    response = sign_in(Client(), "boss", "pass-word-1")
    assert response.status_code == 302
    assert response["Location"] == "/admin/sizing/node/"


def test_after_too_many_failures_even_the_right_password_waits(
    db: None, only_the_sites_own_limit: None
) -> None:
    person("boss", superuser=True)
    person("other", superuser=True)
    client = Client()
    for _ in range(FAILURES_PER_NAME):
        assert sign_in(client, "boss", "wrong").status_code == 200
    response = sign_in(client, "boss", "pass-word-1")
    assert response.status_code == 429
    assert response["Retry-After"] == "300"
    body = response.content.decode()
    assert "Too many failed sign-ins. Wait five minutes, then try again." in body
    assert "next=/admin/sizing/node/" in body
    assert sign_in(client, "other", "pass-word-1").status_code == 302


def test_a_success_forgets_the_failures_before_it(db: None, only_the_sites_own_limit: None) -> None:
    person("boss", superuser=True)
    for _ in range(2):
        for _ in range(FAILURES_PER_NAME - 1):
            assert sign_in(Client(), "boss", "wrong").status_code == 200
        assert sign_in(Client(), "boss", "pass-word-1").status_code == 302
