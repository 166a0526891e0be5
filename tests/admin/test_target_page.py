"""The Target page: one question about one model, for those who may view models."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from sizing.models import Node, ServedModel, Target
from tests import builders
from tests.admin.cluster import person
from tests.admin.test_every_page import HOSTILE


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
    assert "4 replicas are needed, 2 run; the other 2 fit." in body
    assert "desk-badge-fits" in body
    assert "1,180.5" in body
    assert "edge: a higher load failed the SLO" in body
    assert "lab bench" in body
    assert "In the way" not in body


def test_an_answer_that_is_served_already_says_so(llama: ServedModel, viewer: Client) -> None:
    body = ask(viewer, llama, tokens_per_sec="1000")
    assert "1 replica is needed, 2 run: already served, with 1 to spare." in body
    assert "desk-badge-served" in body


def test_an_answer_that_does_not_fit_says_what_is_in_the_way(llama: ServedModel, viewer: Client) -> None:
    body = ask(viewer, llama, tokens_per_sec="6000")
    assert "6 replicas are needed, 2 run; of the other 4 only 2 fit." in body
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
    assert "page 2 of 26" in body
    assert "<strong>2,500</strong> has no GPUs" in body
    assert len(body.encode()) < 300_000


def test_a_wrong_number_is_one_clear_line_at_the_form(llama: ServedModel, viewer: Client) -> None:
    body = ask(viewer, llama, tokens_per_sec="many")
    assert "tokens_per_sec must be a positive number" in body
    assert 'value="many"' in body


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
    assert "new has not been measured; run `manage.py bench new --save` first" in body
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


def test_the_page_takes_as_many_queries_for_many_replicas_as_for_few(
    llama: ServedModel, viewer: Client, django_assert_max_num_queries
) -> None:
    ask(viewer, llama, tokens_per_sec="6000")
    with django_assert_max_num_queries(15):
        ask(viewer, llama, tokens_per_sec="6001")
