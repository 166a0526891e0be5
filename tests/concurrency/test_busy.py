"""Writers that wait too long for others are told so, and nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection, connections
from django.test import Client
from django.urls import reverse

from sizing.models import Node, locking
from sizing.models.triggers import ADVISORY_LOCK
from sizing.services.database import BUSY, unavailable
from tests import builders
from tests.admin.cluster import person
from tests.concurrency.forms import opened

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Writers wait a fraction of a second."""
    monkeypatch.setattr(locking, "LONGEST_WAIT_S", 0.2)
    if connection.vendor == "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 200")
        yield
        cursor.execute("PRAGMA busy_timeout = 20000")


@contextmanager
def somebody_writing() -> Iterator[Any]:
    """Somebody else is in the middle of a write."""
    other = connections.create_connection("default")
    with other.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("BEGIN")
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [ADVISORY_LOCK])
        else:
            cursor.execute("BEGIN IMMEDIATE")
        try:
            yield cursor
        finally:
            cursor.execute("ROLLBACK")
    other.close()


def test_a_writer_that_waits_too_long_gets_a_503_that_says_so(
    impatient: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = builders.node("gpu-a1", gpus=1)
    client = Client(raise_request_exception=False)
    client.force_login(person("boss", superuser=True))
    page, rest = reverse("admin:sizing_node_change", args=[node.pk]), "/api/v1/nodes/gpu-a1"
    form = opened(client, page, "node_form")
    file = tmp_path / "inventory.json"
    file.write_text('{"version": 1, "nodes": [{"name": "gpu-a2"}]}')
    with somebody_writing():
        answers = [
            client.post(page, form | {"cost_per_hour": "1"}),
            client.post(reverse("admin:sizing_node_delete", args=[node.pk]), {"post": "yes"}),
            client.patch(rest, {"cost_per_hour": 1}, content_type="application/json"),
            client.delete(rest, headers={"If-Match": "*"}),
            client.put("/api/v1/inventory", file.read_bytes(), content_type="application/json"),
        ]
        assert [answer.status_code for answer in answers] == [503] * 5
        assert [answer.headers["Retry-After"] for answer in answers] == ["5"] * 5
        assert all(BUSY[1:] in answer.content.decode() for answer in answers)
        assert answers[2].json() == {"error": BUSY, "code": "unavailable"}
        with pytest.raises(SystemExit) as ended:
            call_command("load_inventory", str(file))
        assert (ended.value.code, capsys.readouterr().err) == (2, f"{BUSY}\n")
        # Readers do not wait for writers.
        assert client.get(page).status_code == client.get(rest).status_code == 200
    assert list(Node.objects.values_list("name", "cost_per_hour")) == [("gpu-a1", None)]
    assert client.post(page, form | {"cost_per_hour": "1"}).status_code == 302


def test_rows_that_two_hold_crosswise_are_told_as_other_writes_that_take_too_long() -> None:
    """By writers that do not take the lock of all writers. SQLite lets nobody hold a half."""
    if connection.vendor != "postgresql":
        return
    builders.profile("a")
    builders.profile("b")
    found: list[OperationalError] = []

    def hold(cursor: Any, name: str) -> None:
        try:
            cursor.execute("SELECT 1 FROM sizing_benchprofile WHERE name = %s FOR UPDATE", [name])
        except OperationalError as error:
            found.append(error)
            cursor.execute("ROLLBACK")

    with somebody_writing() as other, connection.cursor() as mine:
        mine.execute("BEGIN")
        hold(other, "a")
        hold(mine, "b")
        waiting = Thread(target=hold, args=(other, "b"))
        waiting.start()
        hold(mine, "a")
        waiting.join()
        mine.execute("ROLLBACK")
    assert [str(error).split("\n")[0] for error in found] == ["deadlock detected"]
    assert unavailable(found[0]) == BUSY
