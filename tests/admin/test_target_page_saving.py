"""Saving a question as a target, for those who may."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from sizing.models import ServedModel, Target
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
        "Saved as a target: llama: 2500.5 tok/s. The board shows from now on whether it is met."
        " What was supposed is no part of it." in words(body)
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
    assert "The target is changed: llama: 2000 tok/s, before 1,000" in words(body)
    target.refresh_from_db()
    assert (Target.objects.get(), target.tokens_per_sec) == (target, Decimal(2000))
    assert LogEntry.objects.get().get_change_message() == "Changed tokens/s."
    assert "This is saved as a target already" in save(boss, llama, tokens_per_sec="2000")
    assert LogEntry.objects.count() == 1


def test_what_is_not_measured_yet_can_be_wished_already(boss: Client) -> None:
    model = builders.model("new", default_profile=builders.profile("chat"))
    builders.variant(model)
    assert SAVE in ask(boss, model, tokens_per_sec="10")
    assert "Saved as a target: new: 10 tok/s." in save(boss, model, tokens_per_sec="10")


def test_what_is_no_question_is_not_saved(llama: ServedModel, boss: Client) -> None:
    for question, refusal in (
        ({"tokens_per_sec": "many"}, "tokens_per_sec must be a positive number"),
        ({"tokens_per_sec": "1", "profile": "nope"}, 'profile: no profile "nope"'),
        ({"tokens_per_sec": "0.0000001"}, "tokens_per_sec: "),
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
