"""Signing in: where it leads, how long failures make one wait, and when a session ends."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.urls import reverse

from sizing.models import SignInFailures
from sizing.models.sign_in import forget_old
from sizing.services import sign_in as signing_in
from sizing.services.sign_in import FREE_TRIES, FREE_TRIES_OF_ADDRESS, LONGEST_WAIT_S
from tests.admin.cluster import person

HERE, ELSEWHERE = "10.0.0.1", "10.0.0.2"


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 12, 1, tzinfo=UTC)

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(signing_in, "read_shared_now", lambda: clock.now)
    return clock


@pytest.fixture
def boss(db: None) -> User:
    return person("boss", superuser=True)


def sign_in(name: str, password: str, address: str = HERE, client: Client | None = None) -> Any:
    return (client or Client()).post(
        reverse("admin:login") + "?next=/admin/sizing/node/",
        {"username": name, "password": password},
        REMOTE_ADDR=address,
    )


def wait_of(name: str, address: str = HERE, password: str = "wrong") -> int:
    """By how many seconds a try is too early; 0: it was one."""
    answer = sign_in(name, password, address)
    assert answer.status_code in (200, 302, 429)
    return int(answer.headers.get("Retry-After", 0))


def test_signing_in_leads_where_one_wanted_to_go(boss: User) -> None:
    response = sign_in("boss", "pass-word-1")
    assert response.status_code == 302
    assert response["Location"] == "/admin/sizing/node/"


def test_each_failure_waits_twice_as_long_as_the_one_before(boss: User, clock: Clock) -> None:
    for _ in range(FREE_TRIES):
        assert wait_of("boss") == 0
    waits = []
    for _ in range(12):
        waits.append(wait_of("BOSS"))  # which is refused and not counted
        clock.forward(waits[-1])
        assert wait_of("boss") == 0
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, LONGEST_WAIT_S, LONGEST_WAIT_S]


def test_too_early_even_the_right_password_is_told_how_long_to_wait(boss: User, clock: Clock) -> None:
    for seconds in (0,) * FREE_TRIES + (1, 2, 4, 8, 16, 32, 64):
        clock.forward(seconds)
        assert wait_of("boss") == 0
    response = sign_in("boss", "pass-word-1")
    assert (response.status_code, response["Retry-After"]) == (429, "128")
    body = response.content.decode()
    assert "Too many failed sign-ins. Try again in 3 minutes." in body
    assert "next=/admin/sizing/node/" in body
    clock.forward(127)
    assert "Try again in 1 second." in sign_in("boss", "pass-word-1").content.decode()
    clock.forward(1)
    assert sign_in("boss", "pass-word-1").status_code == 302


def test_who_guesses_locks_nobody_else_out(boss: User, clock: Clock) -> None:
    person("other", superuser=True)
    for _ in range(FREE_TRIES):
        wait_of("boss")
    assert wait_of("boss") == 1
    assert sign_in("boss", "pass-word-1", ELSEWHERE).status_code == 302
    assert sign_in("other", "pass-word-1").status_code == 302


def test_an_address_that_tries_many_names_waits_for_all_of_them(boss: User, clock: Clock) -> None:
    for number in range(FREE_TRIES_OF_ADDRESS):
        assert wait_of(f"name{number}") == 0
    before = SignInFailures.objects.count()
    assert (wait_of("name-x"), wait_of("boss", password="pass-word-1")) == (1, 1)
    assert SignInFailures.objects.count() == before
    assert wait_of("boss", ELSEWHERE, "pass-word-1") == 0


@pytest.mark.django_db(transaction=True)
def test_many_tries_at_the_same_time_are_held_to_the_same_limit(clock: Clock) -> None:
    def tried(_: int) -> bool:
        try:
            with signing_in.attempt("boss", HERE):
                return True
        except signing_in.Wait:
            return False
        finally:
            connection.close()

    with ThreadPoolExecutor(16) as threads:
        allowed = sum(threads.map(tried, range(32)))
    assert 1 <= allowed <= FREE_TRIES
    counted = SignInFailures.objects.order_by("failures").values_list("failures", flat=True)
    assert set(counted) == {allowed}


def test_the_addresses_of_one_ipv6_network_count_as_one(boss: User, clock: Clock) -> None:
    for number in range(FREE_TRIES):
        assert wait_of("boss", f"2001:db8::{number}") == 0
    assert wait_of("boss", "2001:db8::ffff") == 1
    assert wait_of("boss", "2001:db8:0:1::1") == 0


def test_a_success_forgets_the_failures_before_it_and_an_hour_does_too(boss: User, clock: Clock) -> None:
    for _ in range(2):
        for _ in range(FREE_TRIES - 1):
            assert wait_of("boss") == 0
        assert wait_of("boss", password="pass-word-1") == 0
    for _ in range(FREE_TRIES):
        assert wait_of("boss") == 0
    clock.forward(3602)
    assert [wait_of("boss") for _ in range(FREE_TRIES)] == [0] * FREE_TRIES


def test_a_success_takes_back_no_failure_of_its_address(boss: User, clock: Clock) -> None:
    for number in range(FREE_TRIES_OF_ADDRESS - 1):
        wait_of(f"name{number}")
        assert wait_of("boss", password="pass-word-1") == 0
    assert (wait_of("name-x"), wait_of("name-y")) == (0, 1)


def test_a_clock_that_was_wrong_locks_nobody_out(boss: User, clock: Clock) -> None:
    clock.forward(7200)
    for _ in range(FREE_TRIES):
        wait_of("boss")
    clock.forward(-7200)
    assert wait_of("boss", password="pass-word-1") == 0


def test_the_log_tells_of_a_failure_but_not_what_may_be_a_password(boss: User, caplog: Any) -> None:
    sign_in("boss", "wrong")
    sign_in("hunter2", "")
    assert "sign-in failed from 10.0.0.1 for boss" in caplog.text
    assert "sign-in failed from 10.0.0.1 for an unknown name" in caplog.text
    assert "hunter2" not in caplog.text
    assert "wrong" not in caplog.text


def test_a_sign_in_gives_a_new_session_and_signing_out_ends_it(boss: User) -> None:
    client = Client()
    session = client.session
    session["planted"] = "by somebody else"
    session.save()
    client.cookies[settings.SESSION_COOKIE_NAME] = str(session.session_key)
    sign_in("boss", "pass-word-1", client=client)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    assert cookie.value != session.session_key
    assert (cookie["httponly"], cookie["samesite"], cookie["max-age"]) == (True, "Lax", 12 * 3600)
    assert not Session.objects.filter(session_key=session.session_key).exists()
    stolen = Client()
    stolen.cookies[settings.SESSION_COOKIE_NAME] = cookie.value
    assert stolen.get("/admin/").status_code == 200
    client.post(reverse("admin:logout"))
    assert stolen.get("/admin/").status_code == 302


def test_a_new_password_ends_the_other_sessions_and_the_history_tells_it(boss: User) -> None:
    here, there = Client(), Client()
    for client in (here, there):
        client.force_login(boss)
    new = {"old_password": "pass-word-1", "new_password1": "Long-enough-9", "new_password2": "Long-enough-9"}
    wrong = here.post(reverse("admin:password_change"), new | {"old_password": "x"})
    assert (wrong.status_code, LogEntry.objects.count()) == (200, 0)
    assert here.post(reverse("admin:password_change"), new).status_code == 302
    assert (here.get("/admin/").status_code, there.get("/admin/").status_code) == (200, 302)
    told = LogEntry.objects.get()
    assert (told.user, told.object_repr, told.get_change_message()) == (boss, "boss", "Changed password.")


def test_old_failures_and_expired_sessions_are_cleared_away(boss: User) -> None:
    now = datetime.now(UTC)
    for key, minutes in (("old", -61), ("young", -59)):
        SignInFailures.objects.create(key=key, failures=1, free_at=now + timedelta(minutes=minutes))
    for key, minutes in (("over", -1), ("lives", 1)):
        Session.objects.create(session_key=key, session_data="", expire_date=now + timedelta(minutes=minutes))
    forget_old()
    assert list(SignInFailures.objects.values_list("key", flat=True)) == ["young"]
    assert list(Session.objects.values_list("session_key", flat=True)) == ["lives"]
