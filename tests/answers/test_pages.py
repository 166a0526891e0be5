"""Kept answers as pages: the list, one of them, computed again, and the link of the target page."""

from __future__ import annotations

import re

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sizing.models import Answer, Measurement, Node, ServedModel
from tests.admin.cluster import person
from tests.answers.conftest import ask

LIST = reverse("admin:sizing_answer_changelist")


def client_of(*permissions: str) -> Client:
    client = Client()
    client.force_login(person("looker", *permissions))
    return client


def words(body: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", "", body).replace("\N{NARROW NO-BREAK SPACE}", " ").split())


def target(model: ServedModel) -> str:
    return reverse("admin:sizing_servedmodel_target", args=[model.pk])


def test_the_target_page_leads_to_the_answer_that_it_gave(llama: ServedModel) -> None:
    client = client_of("view_servedmodel", "view_answer")
    body = client.get(target(llama), {"tokens_per_sec": "5,000"}).content.decode()
    row = Answer.objects.get()
    page = reverse("admin:sizing_answer_change", args=[row.pk])
    assert f'href="{page}"' in body
    assert (row.channel, row.asked_by_name, row.tokens_per_sec) == ("page", "looker", "5000")
    shown = words(client.get(page).content.decode())
    assert "Answers › llama at 5,000 tok/s" in shown.replace("&rsaquo;", "›")
    assert "5,000 tok/s of llama" in shown
    assert "5 replicas are needed, 2 run; of the other 3 only 2 fit." in shown
    assert "by looker, on a page" in shown
    assert f"as of revision {row.revision}, kept with the answer" in shown


def test_who_may_not_view_answers_gets_no_link_but_the_answer_is_kept(llama: ServedModel) -> None:
    body = client_of("view_servedmodel").get(target(llama), {"tokens_per_sec": "1"}).content.decode()
    assert "This answer is kept" not in body
    assert Answer.objects.count() == 1


def test_what_is_asked_while_one_types_is_not_kept(llama: ServedModel) -> None:
    client = client_of("view_servedmodel", "view_answer")
    typed = client.get(target(llama), {"tokens_per_sec": "50"}, headers={"X-Typing": "1"})
    assert "1 replica is needed" in words(typed.content.decode())
    client.get(target(llama), {"tokens_per_sec": "much"})
    assert not Answer.objects.exists()


def test_the_page_computes_the_answer_again_and_offers_to_ask_it_now(llama: ServedModel, ada: User) -> None:
    ask(ada, "5000", profile="chat", variant="tp4", utilization="0.9", as_if="uncordon:gpu-a1")
    row = Answer.objects.get()
    client = client_of("view_servedmodel", "view_answer", "view_measurement")
    page = reverse("admin:sizing_answer_change", args=[row.pk])
    body = client.get(page).content.decode()
    assert (
        "5,000 tok/s of llama on chat, by tp4, at a utilization of 0.9, as if gpu-a1 were uncordoned" in body
    )
    again = re.search(r'href="([^"]*)">Ask the same now', body)
    assert again is not None
    query = "?tokens_per_sec=5000&profile=chat&variant=tp4&utilization=0.9&as_if=uncordon%3Agpu-a1"
    assert again[1].replace("&amp;", "&") == target(llama) + query
    assert reverse("admin:sizing_measurement_change", args=[Measurement.objects.get().pk]) in body
    Node.objects.filter(name="gpu-a2").update(ready=False)
    assert "it is the same answer" in words(client.get(page, {"replay": "1"}).content.decode())
    row.result["needed"] = 4
    row.save()
    body = client.get(page, {"replay": "1"}).content.decode()
    assert "not the same" in words(body)
    assert '<code>needed</code></th><td role="cell">4</td><td role="cell">6</td>' in body
    llama.variants.all()[0].replicas.all().delete()
    llama.delete()
    assert "Ask the same now" not in client.get(page).content.decode()


def test_the_list_says_question_and_answer_and_takes_a_constant_number_of_queries(
    llama: ServedModel, ada: User
) -> None:
    client = client_of("view_answer")

    def queries() -> int:
        with CaptureQueriesContext(connection) as taken:
            assert client.get(LIST).status_code == 200
        return len(taken)

    ask(ada, "3000")
    few = queries()
    for rate in range(1, 10):
        ask(None, str(rate), Answer.Channel.COMMAND)
    assert queries() == few
    shown = words(client.get(LIST, {"q": "ada"}).content.decode())
    assert "3,000 tok/s of llama" in shown
    assert "3 replicas are needed, 2 run; the other 1 fits." in shown
    assert "by ada, by the API" in shown
    assert "by a command" not in words(client.get(LIST, {"fits__exact": "1", "q": "ada"}).content.decode())
