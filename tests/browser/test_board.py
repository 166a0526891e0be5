"""The board in a real browser: read at every size, filtered, left open, and without scripts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import expect

from sizing.admin.board import page as board_page
from sizing.domain.picture import ZONE_LABEL
from sizing.models import Gpu, Node, Target, Variant
from tests import builders
from tests.admin import sweeps
from tests.browser.conftest import Desk

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
L40S = "NVIDIA-L40S"


def in_zone(zone: str) -> dict[str, Any]:
    return {"labels": {ZONE_LABEL: zone}}


@pytest.fixture
def llama(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Variant:
    """Two zones with a node of each state, a replica, and two targets; the board looks each half second."""
    monkeypatch.setattr(board_page, "EVERY_MS", 500)
    variant = builders.variant(builders.model(LLAMA), "h100-tp4", 4)
    profile = builders.profile("chat")
    builders.measurement(variant, profile, "1180.5")
    builders.replica("llama-0", variant, builders.node("gpu-a1", **in_zone("eu-a")), (0, 1, 2, 3))
    builders.node("gpu-a2", schedulable=False, **in_zone("eu-a"))
    builders.node("l40s-b1", 4, L40S, ready=False, **in_zone("eu-b"))
    builders.node("l40s-b2", 4, L40S, **in_zone("eu-b"))
    Gpu.objects.filter(node__name="l40s-b2", index=3).update(healthy=False)
    Gpu.objects.filter(node__name="l40s-b2", index=2).update(used_outside_mib=20_000)
    builders.target(variant.model, 2000, profile=profile, variant=variant)
    builders.target(builders.model("bge-m3"), 100, profile=profile)
    return variant


@pytest.mark.looks
def test_the_board_fits_every_size_and_is_accessible_in_both_themes(desk: Desk, llama: Variant) -> None:
    page = desk.page
    page.goto(f"{desk.address}/admin/")
    expect(page.get_by_role("region", name="Table of targets")).to_contain_text("not measured")
    desk.check("the board")
    page.set_viewport_size({"width": 2560, "height": 1440})
    assert desk.sideways() == 0
    assert page.locator(".board-fleet").bounding_box() is not None
    fleet, targets = (page.locator(one).bounding_box() for one in ("#fleet", "#targets"))
    assert fleet
    assert targets
    assert targets["x"] >= fleet["x"] + fleet["width"], "the halves stand beside each other"
    assert desk.axe() == []


def test_filters_make_links_that_can_be_shared_and_gone_back_from(desk: Desk, llama: Variant) -> None:
    page = desk.page
    page.goto(f"{desk.address}/admin/")
    fleet = page.locator("#fleet")
    expect(fleet).to_contain_text("gpu-a1")
    page.get_by_label("zone").select_option("eu-b")
    page.get_by_role("button", name="Show").click()
    expect(fleet).to_contain_text("l40s-b1")
    expect(fleet).not_to_contain_text("gpu-a1")
    shared = page.url
    assert "zone=eu-b" in shared
    page.go_back()
    expect(fleet).to_contain_text("gpu-a1")
    page.goto(shared)
    expect(fleet).not_to_contain_text("gpu-a1")
    page.get_by_role("link", name="Show all").first.click()
    fleet.get_by_role("link", name="gpu-a2").click()
    expect(page).to_have_url(f"{desk.address}/admin/sizing/node/{Node.objects.get(name='gpu-a2').pk}/change/")
    page.go_back()
    page.locator("#targets").get_by_role("link", name=LLAMA).click()
    expect(page.locator("#answer")).to_have_text("2 replicas are needed, 1 runs; the other 1 fits.")


def test_the_slash_key_leads_to_the_question_unless_somebody_writes(desk: Desk, llama: Variant) -> None:
    page = desk.page
    page.goto(f"{desk.address}/admin/")
    question = page.get_by_label("model or a part of its name")
    page.keyboard.press("/")
    expect(question).to_be_focused()
    expect(question).to_have_value("")
    page.keyboard.type("meta-llama/Llama")
    expect(question).to_have_value("meta-llama/Llama")
    page.keyboard.press("Tab")
    page.keyboard.type("2000")
    page.keyboard.press("Enter")
    expect(page.locator("#answer")).to_contain_text("2 replicas are needed")


def test_a_board_left_open_stays_current_and_keeps_its_focus(desk: Desk, llama: Variant) -> None:
    page = desk.page
    page.goto(f"{desk.address}/admin/")
    page.evaluate("window.never = 'reloaded'")
    row = page.locator(".desk-wishes-table tbody tr", has_text=LLAMA)
    expect(row).to_contain_text("fits")
    link = row.get_by_role("link", name=LLAMA)
    link.focus()
    Target.objects.filter(model=llama.model).update(tokens_per_sec=Decimal(9000))
    expect(row).to_contain_text("9,000")
    expect(row).to_contain_text("does not fit")
    expect(link).to_be_focused()
    Node.objects.filter(name="gpu-a2").update(schedulable=True)
    expect(page.locator("#fleet .board-group", has_text="eu-a")).not_to_contain_text("cordoned")
    run = sweeps.refresh(llama, sweeps.profile("rag"), "running", progress=40)
    Target.objects.filter(model=llama.model).update(profile=run.profile)
    expect(page.locator("#targets progress")).to_have_attribute("value", "40")
    assert page.evaluate("window.never") == "reloaded"


def test_a_node_cordoned_in_one_window_changes_the_answer_in_another(desk: Desk, llama: Variant) -> None:
    builders.node("gpu-a3")
    target = f"{desk.address}/admin/sizing/servedmodel/{llama.model_id}/target/?tokens_per_sec=4000"
    page = desk.page
    page.goto(target)
    expect(page.locator("#answer")).to_have_text("4 replicas are needed, 1 runs; the other 3 fit.")
    with desk.another() as other:
        other.page.goto(f"{desk.address}/admin/sizing/node/?q=gpu-a3")
        other.page.get_by_role("checkbox", name="gpu-a3").check()
        other.page.locator("select[name=action]").select_option("cordon")
        other.page.get_by_role("button", name="Go").click()
        expect(other.page.get_by_role("heading", level=1)).to_contain_text("Cordon")
        other.check("what an action would do")
        assert Node.objects.get(name="gpu-a3").schedulable
        other.page.locator("#content").get_by_role("button", name="Cordon").click()
        expect(other.page.locator(".messagelist")).to_contain_text("cordoned")
    page.get_by_role("button", name="Ask").click()
    expect(page.locator("#answer")).to_have_text("4 replicas are needed, 1 runs; of the other 3 only 1 fits.")
    expect(page.get_by_role("link", name="uncordon gpu-a3")).to_be_visible()


def test_the_board_works_without_scripts(desk: Desk, llama: Variant) -> None:
    with desk.another(scripts=False) as other:
        page = other.page
        page.goto(f"{desk.address}/admin/")
        expect(page.get_by_text("to come here")).to_be_hidden()
        page.get_by_label("held by model").fill(LLAMA)
        page.get_by_role("button", name="Show").click()
        expect(page.locator("#fleet")).to_contain_text("gpu-a1")
        expect(page.locator("#fleet")).not_to_contain_text("l40s-b1")
        page.get_by_label("model or a part of its name").fill("llama")
        page.get_by_label("tokens per second").fill("2000")
        page.get_by_role("button", name="Ask").click()
        expect(page.locator("#answer")).to_contain_text("2 replicas are needed")
