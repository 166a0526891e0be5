"""What is kept of an answer, and what is a poll of one that is kept."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from sizing.models import Answer, BenchProfile, KeptInventory, Measurement, Node, Replica, ServedModel
from sizing.services import answers, targets
from sizing.services.answers import Asker
from tests import builders
from tests.answers.conftest import API, ask


def test_an_answer_is_kept_with_the_question_what_it_rests_on_and_the_result(
    llama: ServedModel, ada: User
) -> None:
    pk = ask(ada, "5000.0", utilization="0.9", as_if="uncordon:gpu-a1")
    row = Answer.objects.get()
    assert (str(row.pk), row.channel, row.asked_by, row.asked_by_name) == (pk, "api", ada, "ada")
    assert (row.model, row.profile, row.variant) == ("llama", "", "")
    assert (row.tokens_per_sec, row.utilization, row.as_if) == ("5000.0", "0.9", ["uncordon:gpu-a1"])
    assert (row.fits, row.result["needed"], row.result["room"]) == (False, 6, 2)
    assert row.measurement == Measurement.objects.get()
    assert row.measured == {
        "model": "llama",
        "variant": "tp4",
        "profile": "chat",
        "tok_per_sec": "1000.000000",
        "measured_at": "2026-01-01T00:00:00+00:00",
        "source": "lab",
        "bound": "edge",
        "engine": "",
    }
    assert "age_s" not in row.result["measurement"]
    assert row.inventory is not None
    assert (row.inventory.revision, row.inventory.nonce) == (row.revision, row.nonce)


def test_who_polls_gets_the_answer_that_is_kept(llama: ServedModel, ada: User) -> None:
    first = ask(ada)
    with CaptureQueriesContext(connection) as taken:
        assert ask(ada) == first
    assert len(taken) == 2, "the revision alone is read, for the question and for the answer"


def test_a_change_that_the_answer_does_not_show_makes_no_new_one(llama: ServedModel, ada: User) -> None:
    first = ask(ada, "3000")
    builders.profile("rag")
    assert ask(ada, "3000") == first
    answers.forget()  # as another process, which knows of it by the database alone
    assert ask(ada, "3000") == first
    Node.objects.filter(name="gpu-a2").update(schedulable=False)
    second = ask(ada, "3000")
    assert second != first
    assert [str(row.pk) for row in Answer.objects.order_by("asked_at")] == [first, second]
    assert KeptInventory.objects.count() == 2, "none for the revision that gave nothing new"


def test_another_spelling_of_a_number_is_no_other_question(llama: ServedModel, ada: User) -> None:
    first = ask(ada, "3000")
    builders.profile("rag")  # else this process knows the answer by the question's value
    answers.forget()
    assert ask(ada, "3000.000000", utilization="1.0") == first
    builders.profile("code")
    answers.forget()
    assert ask(ada, "3e3", utilization="1") == first
    long = "0." + "3" * 61
    assert ask(ada, f"{long}2") != ask(ada, f"{long}1"), "with every figure"


def test_who_asks_by_which_way_and_what_is_told_apart(llama: ServedModel, ada: User) -> None:
    bob = User.objects.create_user("bob")
    asked = {ask(ada), ask(bob), ask(ada, channel=Answer.Channel.PAGE), ask(ada, "5001"), ask(None)}
    assert len(asked) == 5
    assert KeptInventory.objects.count() == 1, "all of one revision"


def test_after_a_day_the_same_answer_is_kept_anew(llama: ServedModel, ada: User) -> None:
    first = ask(ada)
    Answer.objects.update(asked_at=timezone.now() - timedelta(days=1))
    answers.forget()
    assert ask(ada) != first


def test_an_answer_outlives_who_asked_the_model_and_the_measurement(llama: ServedModel, ada: User) -> None:
    pk = ask(ada)
    ada.delete()
    Replica.objects.all().delete()
    llama.delete()
    BenchProfile.objects.all().delete()
    row = Answer.objects.get(pk=pk)
    assert (row.asked_by, row.asked_by_name, row.measurement, row.model) == (None, "ada", None, "llama")
    assert answers.replay(row).same


def test_replacing_the_inventory_leaves_answers_alone(llama: ServedModel, ada: User, tmp_path: Path) -> None:
    pk = ask(ada)
    (tmp_path / "empty.yaml").write_text("version: 1\n")
    call_command("load_inventory", tmp_path / "empty.yaml", replace=True, stdout=StringIO())
    assert not ServedModel.objects.exists()
    row = Answer.objects.get(pk=pk)
    assert (row.measurement, answers.replay(row).same) == (None, True)


def test_nothing_is_kept_where_the_setting_says_so(llama: ServedModel, ada: User, settings: Settings) -> None:
    settings.ANSWERS_KEPT_DAYS = 0
    assert ask(ada) is None
    assert not Answer.objects.exists()


@pytest.mark.parametrize("rate", ["1e-30", "0." + "3" * 62, "1e12"])
def test_a_number_is_kept_just_as_it_was_asked(llama: ServedModel, ada: User, rate: str) -> None:
    ask(ada, rate, channel=API, utilization="0.000001")
    assert answers.replay(Answer.objects.get()).same


def test_once_the_measurement_is_stale_it_is_another_answer_though_nothing_was_written(
    llama: ServedModel, ada: User
) -> None:
    BenchProfile.objects.update(refresh_every_h=2)
    Measurement.objects.update(measured_at=timezone.now())
    found, current = targets.find(targets.parse_question("llama", {"tokens_per_sec": ["1"]}))
    fresh, later, stale = (
        answers.note(found, current, Asker(API, ada), timezone.now() + timedelta(hours=hours))
        for hours in (0, 1, 3)
    )
    assert fresh == later != stale
    assert [row.result["measurement"]["stale"] for row in Answer.objects.order_by("asked_at")] == [
        False,
        True,
    ]
