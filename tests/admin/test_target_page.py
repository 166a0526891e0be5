"""The Target page: one question about one model, for those who may view models."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sizing.models import Node, ServedModel, Target
from tests import builders
from tests.admin import sweeps
from tests.admin.cluster import person
from tests.admin.test_every_page import HOSTILE

TO_KEEP_IT = 7
"""Queries that keep the answer; outside of tests all but one are another thread's."""


def page(model: ServedModel) -> str:
    return reverse("admin:sizing_servedmodel_target", args=[model.pk])


@pytest.fixture
def llama(db: None) -> ServedModel:
    """Two replicas run on gpu-a1, gpu-a2 has room for two more; one serves 1,180.5 tok/s on chat."""
    model = builders.model("meta-llama/Llama-3.1:70B")
    variant = builders.variant(model, "tp4", 4)
    builders.measurement(variant, builders.profile("chat"), "1180.5", bound="edge", source="lab bench")
    first = builders.node("gpu-a1")
    builders.replica("llama-0", variant, first, (0, 1, 2, 3))
    builders.replica("llama-1", variant, first, (4, 5, 6, 7))
    builders.node("gpu-a2")
    return model


def ask(client: Client, model: ServedModel, **question: str) -> str:
    response = client.get(page(model), question)
    assert response.status_code == 200
    return response.content.decode()


def words(body: str) -> str:
    """The page's text without its elements."""
    return " ".join(re.sub(r"<[^>]+>", "", body).split())


def test_anonymous_visitors_are_sent_to_the_sign_in(llama: ServedModel) -> None:
    response = Client().get(page(llama), {"tokens_per_sec": "1"})
    assert response.status_code == 302
    assert response["Location"].startswith(reverse("admin:login") + "?next=")


def test_staff_without_permission_is_refused(llama: ServedModel, outsider: Client) -> None:
    assert outsider.get(page(llama)).status_code == 403


def test_the_form_opens_without_a_question(llama: ServedModel, viewer: Client) -> None:
    body = ask(viewer, llama)
    assert 'name="tokens_per_sec"' in body
    assert 'id="answer"' not in body


def test_an_answer_that_fits_is_one_sentence(llama: ServedModel, viewer: Client) -> None:
    body = ask(viewer, llama, tokens_per_sec="4000")
    assert "4 replicas are needed, 2 run; the other 2 fit." in words(body)
    assert '<strong class="desk-say-fits">fit</strong>' in body
    assert "desk-badge-fits" in body
    assert "1,180.5" in body
    assert "edge: a higher load failed the SLO" in body
    assert "lab bench" in body
    assert "In the way" not in body


def test_an_answer_that_is_served_already_says_so(llama: ServedModel, viewer: Client) -> None:
    body = ask(viewer, llama, tokens_per_sec="1000")
    assert "1 replica is needed, 2 run: already served, with 1 to spare." in words(body)
    assert "desk-badge-served" in body


def test_an_answer_that_does_not_fit_says_what_is_in_the_way(llama: ServedModel, viewer: Client) -> None:
    body = ask(viewer, llama, tokens_per_sec="6000")
    assert "6 replicas are needed, 2 run; of the other 4 only 2 fit." in words(body)
    assert "desk-badge-blocked" in body
    assert "In the way" in body
    assert "2 of 4 more replicas fit" in body


def test_the_nodes_stand_with_their_code_and_holders(llama: ServedModel, viewer: Client) -> None:
    body = ask(viewer, llama, tokens_per_sec="4000")
    assert '<code class="desk-quiet">too_few_free_gpus</code>' in body
    assert "llama-0, llama-1" in body


def test_the_nodes_of_one_code_can_be_picked(llama: ServedModel, viewer: Client) -> None:
    body = ask(viewer, llama, tokens_per_sec="4000", code="open")
    rows = body[body.index('class="desk-table desk-nodes"') :]
    assert "gpu-a2" in rows
    assert "gpu-a1" not in rows


def test_thousands_of_nodes_are_paged_on_a_small_page(llama: ServedModel, viewer: Client) -> None:
    Node.objects.bulk_create(Node(name=f"bare-{i:04}") for i in range(2500))
    body = ask(viewer, llama, tokens_per_sec="6000", page="2")
    assert "page 2 of 84" in body
    assert "<strong>2,500</strong> has no GPUs" in body
    assert len(body.encode()) < 300_000


def test_a_wrong_number_is_one_clear_line_at_the_form(llama: ServedModel, viewer: Client) -> None:
    body = ask(viewer, llama, tokens_per_sec="many")
    assert "tokens_per_sec must be a positive number" in body
    assert 'value="many"' in body
    assert "Write tokens per second as 5000 or 1180.5" in body
    assert "Write utilization as 0.8" in ask(viewer, llama, tokens_per_sec="6000", utilization="80%")


def test_a_number_is_taken_as_the_pages_write_it(llama: ServedModel, viewer: Client) -> None:
    for pasted in ("6,000", "6\u202f000", "6 000.0"):
        body = ask(viewer, llama, tokens_per_sec=pasted)
        assert "must be a positive number" not in body
        assert 'value="6000' in body
    assert "must be a positive number" in ask(viewer, llama, tokens_per_sec="6,00")


def test_an_unknown_profile_leaves_the_choices(llama: ServedModel, viewer: Client) -> None:
    body = ask(viewer, llama, tokens_per_sec="1", profile="nope")
    assert 'role="alert"' in body
    assert "Choose one of the profiles above." in body
    assert '<option value="chat">chat</option>' in body


def test_what_was_asked_stays_chosen_where_there_is_no_such_thing(llama: ServedModel, viewer: Client) -> None:
    body = ask(viewer, llama, tokens_per_sec="1", profile="nope", variant="tp9")
    assert '<option value="nope" selected>nope (not among them)</option>' in body
    assert '<option value="tp9" selected>tp9 (not among them)</option>' in body
    assert "not among them" not in ask(viewer, llama, tokens_per_sec="1", profile="chat", variant="tp4")


def test_a_model_that_is_not_measured_says_how_to_go_on(boss: Client) -> None:
    model = builders.model("new")
    builders.variant(model)
    builders.profile("chat")
    model.default_profile = builders.profile("rag")
    model.save()
    body = ask(boss, model, tokens_per_sec="1")
    assert "new has not been measured; run <code>manage.py bench new --save</code> first" in body
    assert "not measured</span>" in body
    assert "Enter a measurement by hand" in body


def test_who_may_not_add_measurements_is_offered_none(viewer: Client) -> None:
    model = builders.model("new")
    builders.variant(model)
    assert "Enter a measurement by hand" not in ask(viewer, model, tokens_per_sec="1")


def test_the_same_answer_is_given_as_link_curl_and_command(llama: ServedModel, viewer: Client) -> None:
    body = ask(viewer, llama, tokens_per_sec="4000", profile="chat", variant="", utilization="0.9")
    query = "tokens_per_sec=4000&amp;profile=chat&amp;utilization=0.9"
    path = f"/api/v1/models/meta-llama/Llama-3.1:70B/target?{query}"
    assert f'href="{path}"' in body
    assert f"http://testserver{path}" in body
    assert f'<code id="link-line">http://testserver{page(llama)}?{query}</code>' in body
    assert f'href="?{query}&amp;format=csv"' in body
    assert "python manage.py target meta-llama/Llama-3.1:70B 4000 --profile chat --utilization 0.9" in body


def test_the_command_line_cannot_be_broken_out_of(viewer: Client) -> None:
    model = builders.model("a'; rm -rf x")
    builders.measurement(builders.variant(model), builders.profile())
    body = ask(viewer, model, tokens_per_sec="1")
    assert "target &#x27;a&#x27;&quot;&#x27;&quot;&#x27;; rm -rf x&#x27; 1" in body


def test_names_with_markup_are_escaped(viewer: Client) -> None:
    model = builders.model(f"m{HOSTILE}")
    variant = builders.variant(model, f"v{HOSTILE}", 8)
    profile = builders.profile(f"p{HOSTILE}")
    builders.measurement(variant, profile, 10, source=HOSTILE)
    builders.replica(f"r{HOSTILE}", variant, builders.node(f"n{HOSTILE}"), tuple(range(8)))
    for question in (
        {},
        {"tokens_per_sec": "50"},
        {"tokens_per_sec": HOSTILE},
        {"tokens_per_sec": "1", "profile": HOSTILE},
    ):
        body = ask(viewer, model, **question)
        assert "alert(1)" in body
        assert HOSTILE not in body


def test_an_unknown_model_leads_back_to_the_index(viewer: Client) -> None:
    response = viewer.get(reverse("admin:sizing_servedmodel_target", args=[999]))
    assert response.status_code == 302


def test_models_and_targets_link_to_the_page(llama: ServedModel, boss: Client) -> None:
    target = Target.objects.create(model=llama, variant=llama.variants.get(), tokens_per_sec=5000)
    plain, filled = page(llama), f"{page(llama)}?tokens_per_sec=5000&amp;variant=tp4"
    for url, link in (
        (reverse("admin:index"), plain),
        (reverse("admin:sizing_servedmodel_changelist"), plain),
        (reverse("admin:sizing_servedmodel_change", args=[llama.pk]), plain),
        (reverse("admin:sizing_target_changelist"), filled),
        (reverse("admin:sizing_target_change", args=[target.pk]), filled),
    ):
        assert f'href="{link}"' in boss.get(url).content.decode(), url


def test_targets_link_nowhere_for_those_who_may_not_view_models(llama: ServedModel) -> None:
    target = Target.objects.create(model=llama, tokens_per_sec=5000)
    client = Client()
    client.force_login(person("wisher", "view_target"))
    for url in (
        reverse("admin:sizing_target_changelist"),
        reverse("admin:sizing_target_change", args=[target.pk]),
    ):
        body = client.get(url)
        assert body.status_code == 200
        assert page(llama) not in body.content.decode()


def test_what_a_replica_serves_is_drawn_for_those_who_may_see_measurements(
    llama: ServedModel, viewer: Client, boss: Client
) -> None:
    row = sweeps.measured(llama.variants.get(), sweeps.profile("rag"))
    seen = ask(boss, llama, tokens_per_sec="300", profile="rag")
    assert 'aria-labelledby="levels-throughput-title"' in seen
    assert "the limit is in here" in seen
    assert f'href="{reverse("admin:sizing_measurement_change", args=[row.pk])}"' in seen
    hidden = ask(viewer, llama, tokens_per_sec="300", profile="rag")
    assert "levels-throughput" not in hidden
    assert "/sizing/measurement/" not in hidden
    assert "edge: a higher load failed the SLO" in hidden


def test_nodes_lead_to_their_pages_for_those_who_may_see_them(llama: ServedModel, viewer: Client) -> None:
    link = f'href="{reverse("admin:sizing_node_change", args=[Node.objects.get(name="gpu-a2").pk])}"'
    table = ask(viewer, llama, tokens_per_sec="4000").partition('id="nodes"')[2]
    assert table.count(link) == 1
    client = Client()
    client.force_login(person("modeler", "view_servedmodel"))
    assert link not in ask(client, llama, tokens_per_sec="4000")


def test_typing_replaces_one_part_of_the_page_which_is_all_of_the_answer(
    llama: ServedModel, viewer: Client
) -> None:
    body = ask(viewer, llama, tokens_per_sec="6000")
    form, part = body.split('<div id="answer-part">')
    assert 'id="answer-status" role="status"' in form
    assert "target.js" in form
    for name in ('id="answer"', 'id="link-line"', 'id="nodes"'):
        assert (name in form, name in part) == (False, True), name


def test_the_page_takes_as_many_queries_for_many_rows_as_for_few(llama: ServedModel) -> None:
    operator = Client()
    names = ("servedmodel", "node", "measurement", "target", "refresh", "replica", "variant")
    operator.force_login(person("operator", "add_target", "add_refresh", *(f"view_{name}" for name in names)))
    variant = llama.variants.get()
    sweeps.measured(variant, sweeps.profile("rag"), bound="floor")
    builders.replica("drain-0", variant, builders.node("gpu-a3"), (0, 1, 2, 3), state="draining")

    def queries(tokens_per_sec: int) -> int:
        ask(operator, llama, tokens_per_sec="1", profile="rag")  # reads the inventory
        with CaptureQueriesContext(connection) as taken:
            ask(operator, llama, tokens_per_sec=str(tokens_per_sec), profile="rag", as_if="ended:drain-0")
        return len(taken)

    few = queries(6000)
    for i in range(20):
        node = builders.node(f"gpu-b{i:02}")
        builders.replica(f"llama-b{i}", variant, node, (0, 1, 2, 3))
        Target.objects.create(
            model=llama, variant=variant, profile=builders.profile(f"p{i}"), tokens_per_sec=1
        )
    assert (few, queries(60000)) == (12 + TO_KEEP_IT, 12 + TO_KEEP_IT)


def test_of_many_who_would_stop_the_first_stand_in_the_table_and_all_count(viewer: Client) -> None:
    variant = builders.variant(builders.model("llama", priority=1), "tp1", 1)
    builders.measurement(variant, builders.profile("chat"), 1)
    batch, node = builders.variant(builders.model("batch"), "tp1", 1), builders.node("gpu-a1", gpus=52)
    for i in range(52):
        builders.replica(f"batch-{i:02}", batch, node, (i,))
    page = ask(viewer, variant.model, tokens_per_sec="52")
    assert "&lt;" not in page
    body = words(page)
    assert "52 replicas are needed, none runs; the 52 fit by stopping 52 replicas of batch." in body
    assert "fits by stopping 52" in body
    table = body.partition("Who would stop")[2]
    assert "batch-49batch0gpu-a1unknown and 2 more; all of them are in the JSON" in table
    assert "batch: 52 stopped, 0 left, at least 0 kept" in table
    assert "0 →and afterwards 52" in table
