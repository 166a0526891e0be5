"""Saving a question as a target, for those who may."""

from __future__ import annotations

from contextlib import nullcontext
from decimal import Decimal

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client, RequestFactory
from django.urls import reverse

from sizing.admin.target.saving import saved_as
from sizing.models import BenchProfile, ServedModel, Target
from sizing.services.errors import DeskError
from sizing.services.targets import parse_question
from tests import builders
from tests.admin.cluster import person
from tests.admin.test_target_page import ask, page, words

SAVE = '<button type="submit" class="button">Save as target</button>'


@pytest.fixture
def llama(db: None) -> ServedModel:
    model = builders.model("llama")
    builders.measurement(builders.variant(model), builders.profile("chat"), 100)
    return model


def save(client: Client, model: ServedModel, **question: str) -> str:
    """The page after saving."""
    response = client.post(page(model), question, follow=True)
    assert response.redirect_chain, "nothing was saved, so there is no way back to the page"
    return response.content.decode()


def test_a_question_is_saved_as_it_was_asked(llama: ServedModel, boss: Client) -> None:
    question = {"tokens_per_sec": "2500.5", "profile": "chat", "utilization": "0.8"}
    assert SAVE in ask(boss, llama, **question)
    body = save(boss, llama, **question, as_if="max_replicas:3")
    target = Target.objects.get()
    assert (target.model, str(target.profile), target.variant) == (llama, "chat", None)
    assert (target.tokens_per_sec, target.utilization) == (Decimal("2500.5"), Decimal("0.8"))
    assert (
        "Saved as a target: llama: 2,500.5 tok/s at a utilization of 0.8."
        " The board shows from now on whether it is met. What was supposed is no part of it." in words(body)
    )
    assert "As if max_replicas were 3." in body
    assert f'This is saved as a <a href="{reverse("admin:sizing_target_change", args=[target.pk])}">' in body
    assert SAVE not in body
    assert LogEntry.objects.get().get_change_message() == "Added."


def test_a_target_that_there_is_can_be_changed_to_what_was_asked(llama: ServedModel, boss: Client) -> None:
    target = builders.target(llama, 1000)
    body = ask(boss, llama, tokens_per_sec="2000")
    assert "Change the target to 2,000\N{NARROW NO-BREAK SPACE}tok/s" in body
    assert "The saved target asks 1,000 tok/s." in words(body)
    assert SAVE in ask(boss, llama, tokens_per_sec="2000", profile="chat")
    body = save(boss, llama, tokens_per_sec="2000")
    assert "The target is changed: llama: 2,000 tok/s, before 1,000 tok/s." in words(body)
    target.refresh_from_db()
    assert (Target.objects.get(), target.tokens_per_sec) == (target, Decimal(2000))
    assert LogEntry.objects.get().get_change_message() == "Changed tokens/s."
    assert "This is saved as a target already" in save(boss, llama, tokens_per_sec="2000")
    assert LogEntry.objects.count() == 1


def test_a_target_that_was_changed_since_the_page_offered_it_is_not_changed_unseen(
    llama: ServedModel, boss: Client
) -> None:
    target = builders.target(llama, 1000)
    page_before = ask(boss, llama, tokens_per_sec="2000")
    assert '<input type="hidden" name="before" value="1000.000000 1.000000">' in page_before
    Target.objects.update(tokens_per_sec=1500)
    before = "1000.000000 1.000000"
    body = words(save(boss, llama, tokens_per_sec="2000", before=before))
    assert "Not saved: the target was changed meanwhile: it asks 1,500 tok/s; look again." in body
    target.refresh_from_db()
    assert target.tokens_per_sec == 1500
    Target.objects.all().delete()
    body = words(save(boss, llama, tokens_per_sec="2000", before=before))
    assert "it asks nothing any more; look again." in body
    assert not Target.objects.exists()


def test_a_change_of_the_utilization_alone_is_said(llama: ServedModel, boss: Client) -> None:
    target = builders.target(llama, 1000)
    body = words(ask(boss, llama, tokens_per_sec="1000", utilization="0.8"))
    assert "Change the target to 1,000 tok/s at a utilization of 0.8" in body
    assert "The saved target asks 1,000 tok/s at a utilization of 1." in body
    said = "llama: 1,000 tok/s at a utilization of 0.8, before 1,000 tok/s at a utilization of 1."
    assert f"The target is changed: {said}" in words(
        save(boss, llama, tokens_per_sec="1000", utilization="0.8")
    )
    target.refresh_from_db()
    assert target.utilization == Decimal("0.8")


def test_six_places_are_kept_and_that_is_said(llama: ServedModel, boss: Client) -> None:
    question = {"tokens_per_sec": "1234.1234565", "utilization": "0.12345678"}
    body = save(boss, llama, **question)
    assert "Kept with six places: tokens_per_sec 1234.1234565 as 1234.123456." in body
    assert "Kept with six places: utilization 0.12345678 as 0.123457." in body
    target = Target.objects.get()
    assert (target.tokens_per_sec, target.utilization) == (Decimal("1234.123456"), Decimal("0.123457"))
    body = ask(boss, llama, **question)
    assert "This is saved as a " in body
    assert "Change the target" not in body


def test_a_target_is_known_whether_the_default_profile_is_named_or_not(
    llama: ServedModel, boss: Client
) -> None:
    chat = BenchProfile.objects.get(name="chat")
    ServedModel.objects.update(default_profile=chat)
    for kept, asked in ((chat, {}), (None, {"profile": "chat"})):
        target = builders.target(llama, 1000, profile=kept)
        assert SAVE not in ask(boss, llama, tokens_per_sec="1000", **asked)
        save(boss, llama, tokens_per_sec="2000", **asked)
        changed = Target.objects.get()
        assert (changed.pk, changed.profile, changed.tokens_per_sec) == (target.pk, kept, Decimal(2000))
        target.delete()


def test_who_saves_the_same_at_the_same_moment_finds_it_saved(
    llama: ServedModel, boss: Client, rf: RequestFactory
) -> None:
    builders.target(llama, 1000)
    request = rf.post("/")
    for rate, said in (("1000", "This is saved as a target already: llama: 1,000\u202ftok/s."), ("2000", "")):
        question = parse_question("llama", {"tokens_per_sec": [rate]})
        with nullcontext() if said else pytest.raises(DeskError, match="there is a target"):
            # None was there when this one looked.
            assert saved_as(None, request, question, None) == said


def test_what_is_not_measured_yet_can_be_wished_already(boss: Client) -> None:
    model = builders.model("new", default_profile=builders.profile("chat"))
    builders.variant(model)
    assert SAVE in ask(boss, model, tokens_per_sec="10")
    assert "Saved as a target: new: 10 tok/s." in words(save(boss, model, tokens_per_sec="10"))


def test_what_is_no_question_is_not_saved(llama: ServedModel, boss: Client) -> None:
    for question, refusal in (
        ({"tokens_per_sec": "many"}, "tokens_per_sec must be a positive number"),
        ({"tokens_per_sec": "1", "profile": "nope"}, 'profile: no profile "nope"'),
        ({"tokens_per_sec": "0.0000001"}, "tokens_per_sec must be at least 0.000001 to be saved.<"),
    ):
        body = save(boss, llama, **question)
        assert f"Not saved: {refusal}" in body.replace("&quot;", '"'), question
        assert not Target.objects.exists()


def test_only_those_who_may_are_offered_to_save(llama: ServedModel) -> None:
    question = {"tokens_per_sec": "2000"}
    clients = {}
    for name, permissions in (
        ("viewer", ["view_target"]),
        ("adder", ["add_target"]),
        ("changer", ["change_target"]),
    ):
        clients[name] = Client()
        clients[name].force_login(person(name, "view_servedmodel", *permissions))
    offered = {
        name: 'class="desk-act desk-saving"' in ask(c, llama, **question) for name, c in clients.items()
    }
    assert offered == {"viewer": False, "adder": True, "changer": False}
    for name in ("viewer", "changer"):
        assert clients[name].post(page(llama), question).status_code == 403
    assert "/sizing/target/" not in save(clients["adder"], llama, **question).partition("<main")[2]
    offered = {
        name: "Change the target to" in ask(c, llama, tokens_per_sec="1") for name, c in clients.items()
    }
    assert offered == {"viewer": False, "adder": False, "changer": True}
    assert clients["adder"].post(page(llama), {"tokens_per_sec": "1"}).status_code == 403
    assert Target.objects.get().tokens_per_sec == 2000
