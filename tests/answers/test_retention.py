"""Answers go after their time, and with them what only they needed."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from sizing.models import Answer, KeptInventory, Node, ServedModel
from sizing.models.answer_retention import drop_old_answers
from tests.answers.conftest import ask


def days_from_now(days: int) -> int:
    return drop_old_answers(timezone.now() + timedelta(days=days))


def test_old_answers_go_and_the_base_stays_while_a_difference_is_told_to_it(
    llama: ServedModel, ada: User, settings: Settings
) -> None:
    settings.ANSWERS_KEPT_DAYS = 10
    for name in ("gpu-a1", "gpu-a2"):
        old = ask(ada)
        Node.objects.filter(name=name).update(schedulable=False)
    ask(ada)
    base, *others = KeptInventory.objects.order_by("pk")
    assert [other.base for other in others] == [base, base]
    Answer.objects.exclude(pk=old).update(asked_at=timezone.now() - timedelta(days=5))
    assert days_from_now(9) == 2 + 1
    assert list(Answer.objects.values_list("pk", flat=True)) == [Answer.objects.get(pk=old).pk]
    assert list(KeptInventory.objects.order_by("pk")) == [base, others[0]]
    assert days_from_now(11) == 1 + 2
    assert not KeptInventory.objects.exists()


def test_what_was_just_kept_stays_also_without_an_answer(llama: ServedModel, ada: User) -> None:
    ask(ada)
    Answer.objects.update(asked_at=timezone.now() - timedelta(days=91))
    assert drop_old_answers() == 1
    assert KeptInventory.objects.count() == 1
    assert drop_old_answers() == 0


def test_an_inventory_without_answers_goes_a_day_later_though_no_answer_gets_old(
    llama: ServedModel, ada: User
) -> None:
    ask(ada)
    Node.objects.filter(name="gpu-a2").update(schedulable=False)
    needed = ask(ada)
    Answer.objects.exclude(pk=needed).delete()
    base, difference = KeptInventory.objects.order_by("pk")
    assert days_from_now(2) == 0, "a difference that is needed is told to the base"
    Answer.objects.update(inventory=base)
    assert days_from_now(0) == 0
    assert days_from_now(2) == 1
    assert list(KeptInventory.objects.all()) == [base]
    assert difference != base
