"""The Target page as if something were other than it is, and its answer as a table."""

from __future__ import annotations

import csv
from typing import Any

import pytest
from django.test import Client

from sizing.models import Node, ServedModel
from tests import builders
from tests.admin.test_target_page import ask, page, words


@pytest.fixture
def llama(db: None) -> ServedModel:
    """One of two replicas drains on gpu-a1; gpu-b7 is cordoned, and takes two; one serves 100 tok/s."""
    model = builders.model("llama")
    variant = builders.variant(model, "tp4", 4)
    builders.measurement(variant, builders.profile("chat"), 100)
    first = builders.node("gpu-a1")
    builders.replica("llama-0", variant, first, (0, 1, 2, 3))
    builders.replica("llama-1", variant, first, (4, 5, 6, 7), state="draining")
    builders.node("gpu-b7", schedulable=False)
    return model


def test_what_would_help_asks_again_as_if_it_were_so(llama: ServedModel, viewer: Client) -> None:
    body = ask(viewer, llama, tokens_per_sec="300")
    assert "desk-as-if" not in body
    steps = words(body.partition('class="desk-steps"')[2].partition("</ul>")[0])
    assert "Ask as if: when draining llama-1 ends +1" in steps
    assert "Ask as if: uncordon gpu-b7 +2" in steps
    assert 'href="?tokens_per_sec=300&amp;as_if=uncordon%3Agpu-b7"' in body
    assert 'href="?tokens_per_sec=300&amp;as_if=ended%3Allama-1"' in body
    in_the_way = body.partition('class="desk-blocked"')[2].partition("</ul>")[0]
    assert "uncordon" not in in_the_way
    assert "when draining" not in in_the_way


def test_an_answer_that_supposes_something_says_so_and_leads_back(llama: ServedModel, viewer: Client) -> None:
    body = ask(viewer, llama, tokens_per_sec="300", as_if="uncordon:gpu-b7")
    banner = body.partition('class="desk-as-if"')[2].partition("</section>")[0]
    assert "As if gpu-b7 were uncordoned. Nothing is changed by asking." in words(banner)
    assert "As it is: 3 replicas are needed, 1 runs; of the other 2 none fits." in words(banner)
    assert '<a class="desk-way" href="?tokens_per_sec=300">Back to things as they are</a>' in banner
    assert "the other 2 fit." in words(body)
    assert '<input type="hidden" name="as_if" value="uncordon:gpu-b7">' in body.partition('id="question"')[2]
    assert "--as-if uncordon:gpu-b7" in body
    assert "/target?tokens_per_sec=300&amp;as_if=uncordon%3Agpu-b7" in body
    assert Node.objects.get(name="gpu-b7").schedulable is False


def test_one_of_several_suppositions_can_be_taken_back(llama: ServedModel, viewer: Client) -> None:
    response = viewer.get(
        page(llama), {"tokens_per_sec": "500", "as_if": ["uncordon:gpu-b7", "ended:llama-1"]}
    )
    body = response.content.decode()
    assert "As if gpu-b7 were uncordoned and llama-1 had ended." in words(body)
    assert "5 replicas are needed, 1 runs; of the other 4 only 3 fit." in words(body)
    assert 'href="?tokens_per_sec=500&amp;as_if=ended%3Allama-1"' in body
    assert 'href="?tokens_per_sec=500&amp;as_if=uncordon%3Agpu-b7"' in body


def test_what_cannot_be_supposed_is_named_beside_the_way_back(llama: ServedModel, viewer: Client) -> None:
    body = ask(viewer, llama, tokens_per_sec="300", as_if="uncordon:gone<b>")
    assert "as_if &quot;uncordon:gone&lt;b&gt;&quot;: no node &quot;gone&lt;b&gt;&quot;" in body
    assert '<a class="desk-way" href="?tokens_per_sec=300">Back to things as they are</a>' in body
    body = ask(viewer, llama, tokens_per_sec="300", as_if="")
    assert "as_if &quot;&quot;: there are uncordon:NODE" in body


def table(client: Client, model: ServedModel, **question: Any) -> list[list[str]]:
    response = client.get(page(model), {"format": "csv", **question})
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert response["Content-Disposition"] == 'attachment; filename="target-llama-300.csv"'
    return list(csv.reader(response.content.decode().splitlines()))


def test_the_answer_is_a_table_with_a_line_for_each_node(llama: ServedModel, viewer: Client) -> None:
    low = builders.variant(builders.model("=cmd|' /C calc'!A0", priority=-1), "tp8", 8)
    builders.replica("=1+1", low, builders.node("@gpu-c"), tuple(range(8)))
    head, *rows = table(viewer, llama, tokens_per_sec="300", as_if="uncordon:gpu-b7")
    assert head[:5] == ["node", "code", "reason", "takes", "new replicas"]
    full = ["too_few_free_gpus", "0 of 8 GPUs are free, 4 are needed on one node"]
    full += ["0", "0", "free GPUs", "0", "4"]
    assert rows == [
        ["'@gpu-c", *full, "'=1+1", "", "", ""],
        ["gpu-a1", *full, "llama-0, llama-1", "", "", ""],
        ["gpu-b7", "open", "takes 2 more", "2", "2", "free GPUs", "8", "4", "", "", "", ""],
    ]
    assert table(viewer, llama, tokens_per_sec="300")[1][9:] == ["'=1+1", "open", "2"]


def test_a_question_without_an_answer_gives_the_page_instead_of_a_table(
    llama: ServedModel, viewer: Client
) -> None:
    response = viewer.get(page(llama), {"format": "csv", "tokens_per_sec": "many"})
    assert "tokens_per_sec must be a positive number" in response.content.decode()
