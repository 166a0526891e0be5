"""From the sign-in to an answer, in a real browser, on a desk and on a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests import builders
from tests.browser.conftest import Desk

both_widths = pytest.mark.parametrize("width", [1280, 360])


@both_widths
def test_an_operator_signs_in_asks_and_reads_the_answer(desk: Desk, width: int) -> None:
    model = builders.model("meta-llama/Llama-3.1-70B-Instruct")
    variant = builders.variant(model, "h100-tp4", 4)
    builders.measurement(variant, builders.profile("chat"), "1180.5")
    builders.replica("llama-70b-0", variant, builders.node("gpu-a1"), (0, 1, 2, 3))
    page = desk.page
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{desk.address}/admin/")
    assert desk.sideways() == 0
    page.get_by_role("link", name="meta-llama/Llama-3.1-70B-Instruct").click()
    page.get_by_label("tokens per second").fill("5000")
    page.keyboard.press("Enter")
    expect(page.locator("#answer")).to_have_text("5 replicas are needed, 1 runs; of the other 4 only 1 fits.")
    expect(page.get_by_role("heading", name="In the way")).to_be_visible()
    assert page.url.endswith("?tokens_per_sec=5000&profile=&variant=&utilization=")
    assert desk.sideways() == 0
    page.get_by_label("tokens per second").fill("much")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("alert")).to_have_text("tokens_per_sec must be a positive number")
    page.go_back()
    expect(page.locator("#answer")).to_contain_text("5 replicas are needed")


@both_widths
def test_lists_and_forms_do_not_scroll_sideways(desk: Desk, width: int) -> None:
    variant = builders.variant(builders.model("meta-llama/Llama-3.1-70B-Instruct"), "h100-tp4", 4)
    builders.measurement(variant, builders.profile("chat"), "1180.5")
    builders.replica("llama-70b-0", variant, builders.node("gpu-a1", 16), (0, 1, 2, 3))
    page = desk.page
    page.set_viewport_size({"width": width, "height": 800})
    for name in ("node", "gpu", "replica", "servedmodel", "variant", "measurement"):
        page.goto(f"{desk.address}/admin/sizing/{name}/")
        assert desk.sideways() == 0, f"list of {name}"
        page.locator("#result_list tbody th a").first.click()
        expect(page.locator(".submit-row")).to_be_visible()
        assert desk.sideways() == 0, f"form of {name}"
