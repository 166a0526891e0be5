"""Two hosts, each with web, workers and a schedule, on one database and one broker: they act as one desk."""

from __future__ import annotations

import http.client
import re
import signal
from collections.abc import Iterator
from urllib.parse import urlencode, urlsplit

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User

from tests.faults.rows import generators, measured_once, nothing_runs, queued, wait_for
from tests.infra.desk import Desk, until
from tests.services.client import Client
from tests.services.currency import figures, watch
from tests.services.setups import SetUp

SETUP = pytest.mark.parametrize("setup", ["redis"], indirect=True)


@pytest.fixture(scope="module")
def other(setup: SetUp, desk: Desk) -> Iterator[Desk]:
    """The desk's second host."""
    started = Desk(setup.host("b"))
    yield started
    started.stop(signal.SIGKILL)


def asked(address: str, method: str, path: str, cookies: dict[str, str], form: dict[str, str] | None = None):
    """What a browser on this host gets, and keeps of cookies."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
    if form is not None:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        form = form | {"csrfmiddlewaretoken": cookies["csrftoken"]}
    connection.request(method, path, urlencode(form) if form is not None else None, headers)
    answer = connection.getresponse()
    body = answer.read().decode()
    for cookie in answer.headers.get_all("Set-Cookie", []):
        name, _, value = cookie.partition(";")[0].partition("=")
        cookies[name] = value
    connection.close()
    return answer.status, body


def signed_in(address: str, name: str) -> dict[str, str]:
    """The cookies of a new administrator who signed in at this host."""
    hashed = PBKDF2PasswordHasher().encode("pass-word-1", "salt", iterations=1000)  # the tests' own is MD5
    User.objects.create(username=name, password=hashed, is_staff=True, is_superuser=True)
    cookies: dict[str, str] = {}
    asked(address, "GET", "/admin/login/", cookies)
    form = {"username": name, "password": "pass-word-1", "next": "/admin/"}
    status, body = asked(address, "POST", "/admin/login/", cookies, form)
    assert status == 302, re.sub(r"<[^>]*>", "", body)
    return cookies


@SETUP
def test_who_signs_in_at_one_host_is_signed_in_at_the_other_until_the_log_out(
    desk: Desk, other: Desk, rows: None
) -> None:
    cookies = signed_in(desk.address, "both")
    assert asked(other.address, "GET", "/admin/", cookies)[0] == 200
    assert asked(other.address, "POST", "/admin/logout/", dict(cookies), {})[0] == 200
    assert asked(desk.address, "GET", "/admin/", cookies)[0] == 302


@SETUP
def test_the_workers_of_both_hosts_share_the_refreshes_and_take_each_once(
    desk: Desk, other: Desk, rows: None, replica: str
) -> None:
    measuring = [queued(replica, most_levels=1) for _ in range(8)]
    assert until(lambda: bool(generators(desk) and generators(other)), 30)
    for row in measuring:
        wait_for(row, "done")
        measured_once(row, attempts=1)
    nothing_runs(desk, replica)
    nothing_runs(other, replica)


@SETUP
def test_no_answer_is_older_than_the_last_write_before_its_question(
    desk: Desk, other: Desk, client: Client, setup: SetUp
) -> None:
    session = signed_in(other.address, "reader")["sessionid"]
    headers = {"Authorization": f"Bearer {client.token}", "Cookie": f"sessionid={session}"}
    addresses = [desk.address, other.address]
    seen = watch(addresses, headers, setup.shared["DATABASE_URL"], *figures(), seconds=5)
    print(f"{seen.writes} writes, {seen.reads} reads, {len(seen.values)} values")
    assert (seen.failed, seen.stale) == ([], [])
    assert min(seen.reads.values()) > 5
    assert len(seen.values) > 5
