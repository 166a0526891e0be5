"""The target page in a real browser: it answers while one types, supposes, saves; and without scripts."""

from __future__ import annotations

import csv
import io

import pytest
from playwright.sync_api import Locator, Page, expect

from sizing.models import Answer, Node, Target, Variant
from tests import builders
from tests.admin import sweeps
from tests.browser.conftest import Desk

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
NOT_ENOUGH = "5 replicas are needed, 1 runs; of the other 4 only 1 fits."


@pytest.fixture
def llama(desk: Desk) -> Variant:
    """One replica of 1180.5 tok/s with room for a second; gpu-b7 is cordoned, and takes two."""
    variant = builders.variant(builders.model(LLAMA), "h100-tp4", 4)
    sweeps.measured(variant, builders.profile("chat"), "1180.5")
    builders.replica("llama-0", variant, builders.node("gpu-a1"), (0, 1, 2, 3))
    builders.node("gpu-b7", schedulable=False)
    return variant


def question(page: Page) -> Locator:
    return page.get_by_role("textbox", name="tokens per second")


def address(desk: Desk, variant: Variant) -> str:
    return f"{desk.address}/admin/sizing/servedmodel/{variant.model_id}/target/"


def test_it_answers_while_one_types_and_leaves_one_in_the_field(desk: Desk, llama: Variant) -> None:
    page = desk.page
    page.goto(f"{desk.address}/admin/")
    page.goto(address(desk, llama))
    field = question(page)
    expect(field).to_be_focused()
    page.evaluate("window.never = 'reloaded'")
    page.keyboard.type("5000", delay=20)
    expect(page.locator("#answer")).to_have_text(NOT_ENOUGH)
    expect(page.locator("#answer-status")).to_have_text(NOT_ENOUGH)
    expect(field).to_be_focused()
    expect(page).to_have_url(f"{address(desk, llama)}?tokens_per_sec=5000")
    expect(page.get_by_role("heading", name="In the way")).to_be_visible()
    desk.check("an answer that was typed")
    page.keyboard.type("x")
    expect(page.locator("#question-error")).to_have_text("tokens_per_sec must be a positive number")
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    page.keyboard.press("Backspace")
    expect(page.locator("#answer")).to_have_text(NOT_ENOUGH)
    assert page.evaluate("window.never") == "reloaded"
    page.reload()
    expect(page.locator("#answer")).to_have_text(NOT_ENOUGH)
    page.go_back()
    expect(page).to_have_url(f"{desk.address}/admin/")
    page.go_forward()
    expect(page.locator("#answer")).to_have_text(NOT_ENOUGH)


def test_what_is_typed_is_kept_once_it_is_meant_and_can_be_computed_again(desk: Desk, llama: Variant) -> None:
    page = desk.page
    page.goto(address(desk, llama))
    expect(question(page)).to_be_focused()
    page.keyboard.type("5000", delay=20)
    expect(page.locator("#answer")).to_have_text(NOT_ENOUGH)
    assert not Answer.objects.exists()
    page.keyboard.press("Tab")
    page.get_by_role("link", name="This answer is kept").click()
    expect(page.locator("#answer")).to_have_text(NOT_ENOUGH)
    page.get_by_role("link", name="Compute it again").click()
    expect(
        page.get_by_text("Computed again on the inventory of then, it is the same answer.")
    ).to_be_visible()
    assert [row.tokens_per_sec for row in Answer.objects.all()] == ["5000"]


def test_what_would_help_is_tried_and_gone_back_from(desk: Desk, llama: Variant) -> None:
    page = desk.page
    page.goto(f"{address(desk, llama)}?tokens_per_sec=4000")
    expect(page.locator("#answer")).to_contain_text("of the other 3 only 1 fits")
    page.get_by_role("link", name="uncordon gpu-b7").click()
    banner = page.get_by_role("region", name="Supposition")
    expect(banner).to_contain_text("As if gpu-b7 were uncordoned. Nothing is changed by asking.")
    expect(page.locator("#answer")).to_contain_text("the other 3 fit")
    expect(page.get_by_role("heading", name="Where they would go")).to_be_visible()
    desk.check("an answer as if")
    field = question(page)
    field.fill("5000")
    expect(page.locator("#answer")).to_contain_text("of the other 4 only 3 fit")
    expect(banner).to_be_visible()
    banner.get_by_role("link", name="Back to things as they are").click()
    expect(banner).to_have_count(0)
    expect(page.locator("#answer")).to_have_text(NOT_ENOUGH)
    assert Node.objects.get(name="gpu-b7").schedulable is False
    page.go_back()
    expect(banner).to_be_visible()


def test_a_question_is_saved_and_stands_on_the_board(desk: Desk, llama: Variant) -> None:
    page = desk.page
    page.goto(address(desk, llama))
    expect(question(page)).to_be_focused()
    page.keyboard.type("5000")
    page.get_by_role("button", name="Save as target").click()
    expect(page.locator(".messagelist")).to_contain_text("Saved as a target:")
    assert Target.objects.get().tokens_per_sec == 5000
    expect(page.get_by_text("This is saved as a target.")).to_be_visible()
    page.get_by_role("link", name="Board").first.click()
    row = page.locator(".desk-wishes-table tbody tr")
    expect(row).to_contain_text("does not fit")
    row.get_by_role("link", name=LLAMA).click()
    expect(page.locator("#answer")).to_have_text(NOT_ENOUGH)
    question(page).fill("6000")
    page.get_by_role("button", name="Change the target to").click()
    expect(page.locator(".messagelist")).to_be_visible()
    assert Target.objects.get().tokens_per_sec == 6000


def test_the_same_answer_is_had_elsewhere(desk: Desk, llama: Variant) -> None:
    page = desk.page
    page.goto(f"{address(desk, llama)}?tokens_per_sec=5000")
    for name, kind in (("JSON", "application/json"), ("CSV", "text/csv")):
        answer = page.request.get(page.locator(".desk-ways a", has_text=name).evaluate("link => link.href"))
        assert answer.ok, name
        assert answer.headers["content-type"].startswith(kind)
        if name == "JSON":
            assert answer.json()["needed"] == 5
        else:
            lines = list(csv.reader(io.StringIO(answer.text())))
            assert {line[0] for line in lines[1:]} == {"gpu-a1", "gpu-b7"}
    link = page.locator("#link-line").inner_text()
    page.goto(link)
    expect(page.locator("#answer")).to_have_text(NOT_ENOUGH)


def test_it_is_a_plain_form_without_scripts(desk: Desk, llama: Variant) -> None:
    with desk.another(scripts=False) as other:
        page = other.page
        page.goto(address(desk, llama))
        question(page).fill("5000")
        page.keyboard.press("Enter")
        expect(page.locator("#answer")).to_have_text(NOT_ENOUGH)
        assert "tokens_per_sec=5000" in page.url
        page.get_by_role("link", name="uncordon gpu-b7").click()
        expect(page.get_by_role("region", name="Supposition")).to_be_visible()
        question(page).fill("much")
        page.get_by_role("button", name="Ask").click()
        expect(page.get_by_role("alert")).to_have_text("tokens_per_sec must be a positive number")
        page.go_back()
        expect(page.locator("#answer")).to_contain_text("of the other 4 only 3 fit")
