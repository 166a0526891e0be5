"""Writing on a thread: no answer waits for it, or fails with it."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from pytest_django import Settings

from sizing.models import Answer, KeptInventory, Measurement
from sizing.services import answers
from sizing.services.answers import keeping, recorder
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
