"""Writing on a thread: no answer waits for it, or fails with it."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from sizing.models import Answer, KeptInventory, Measurement
from sizing.services import answers
from sizing.services.answers import keeping, recorder
from tests.admin.cluster import person
from tests.answers.conftest import ask, small_fleet

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def by_a_thread(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.ANSWERS_AT_ONCE = False
    monkeypatch.setattr(recorder, "IDLE_S", 0.1)
    small_fleet()
    yield
    if thread := recorder._thread:
        thread.join(20)
        assert not thread.is_alive()


def test_many_threads_ask_and_all_is_written_once() -> None:
    asked: list[Any] = []

    def asking(rates: range) -> None:
        asked.extend(ask(None, str(rate)) for rate in rates for _ in range(2))
        connection.close()

    threads = [Thread(target=asking, args=(range(1, 41),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers.flush(20)
    kept = {str(pk) for pk in Answer.objects.values_list("pk", flat=True)}
    assert kept == set(asked)
    assert KeptInventory.objects.count() == 1
    assert set(Answer.objects.values_list("inventory", flat=True)) == {KeptInventory.objects.get().pk}


def test_while_the_database_is_away_answers_are_given_and_the_newest_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = recorder.write

    def away(jobs: Any) -> None:
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(recorder, "write", away)
    monkeypatch.setattr(recorder, "MOST_WAITING", 3)
    asked = [ask(None, str(rate)) for rate in range(1, 8)]
    assert all(asked)
    assert not Answer.objects.exists()
    monkeypatch.setattr(recorder, "write", write)
    assert answers.flush(20)
    assert {str(row.pk) for row in Answer.objects.all()} == set(asked[-3:])


def test_an_answer_that_is_just_being_written_is_waited_for() -> None:
    pk = ask(None)
    row = answers.written_by_now(UUID(pk))
    assert row is not None
    assert str(row.pk) == pk


@pytest.mark.parametrize(
    "path", ["/api/v1/answers/{}", "/api/v1/answers/{}/replay", "/admin/sizing/answer/{}/change/"]
)
def test_an_answer_that_another_process_has_yet_to_write_is_waited_for(
    client: Client, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    jobs: list[recorder.Job] = []
    monkeypatch.setattr(recorder, "put", jobs.append)
    monkeypatch.setattr(recorder, "LOOKED_FOR_S", 20)
    client.force_login(person("looker", "view_answer"))
    place = path.format(ask(None))

    def other() -> None:
        recorder.write(jobs)
        connection.close()

    def meanwhile(seconds: float) -> None:
        assert not connection.in_atomic_block
        thread = Thread(target=other)
        thread.start()
        thread.join()

    monkeypatch.setattr("time.sleep", meanwhile)
    assert client.get(place).status_code == 200


def test_what_is_no_answer_of_any_process_is_not_found_and_who_may_not_look_waits_for_nothing(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(person("looker", "view_answer"))
    monkeypatch.setattr(recorder, "LOOKED_FOR_S", 0.1)
    nobody = "00000000-0000-4000-8000-000000000000"
    assert client.get(f"/api/v1/answers/{nobody}").status_code == 404
    page = reverse("admin:sizing_answer_change", args=[nobody])
    assert client.get(page).status_code == 302
    monkeypatch.setattr(recorder, "LOOKED_FOR_S", float("inf"))
    assert client.get("/api/v1/answers/x").status_code == 404
    client.force_login(person("stranger"))
    assert client.get(f"/api/v1/answers/{nobody}").status_code == 403
    assert client.get(page).status_code == 403


def test_what_is_removed_meanwhile_keeps_no_answer_from_being_written(ada: User) -> None:
    ask(ada)
    assert answers.flush(20)
    Answer.objects.all().delete()
    KeptInventory.objects.all().delete()  # the base that this process tells differences to
    assert keeping._base is not None
    jobs: list[recorder.Job] = []
    original = recorder.put
    recorder.put = jobs.append  # type: ignore[assignment]
    try:
        ask(ada, "7000")
    finally:
        recorder.put = original
    ada.delete()
    Measurement.objects.all().delete()
    recorder.write(jobs)
    row = Answer.objects.get()
    assert (row.asked_by, row.measurement, row.asked_by_name) == (None, None, "ada")
    assert answers.replay(row).same
