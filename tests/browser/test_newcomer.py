"""From the first sign-in on an empty desk to the first answer: with the mouse, and by the keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Page, expect

from sizing.models import Node
from tests.admin.cluster import person
from tests.browser.conftest import Desk

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
INVENTORY = f"""
version: 1
nodes:
  - name: gpu-a1
    gpus: [{{type: NVIDIA-H100-80GB-HBM3, memory_mib: 81559, count: 8}}]
profiles:
  - {{name: chat, input_tokens: 1024, output_tokens: 256, slo: {{ttft_ms: 500}}}}
models:
  - {{name: {LLAMA}, default_profile: chat, variants: [{{name: h100-tp4, gpus: 4}}]}}
measurements:
  - {{model: {LLAMA}, variant: h100-tp4, profile: chat, tok_per_sec: 1180.5,
      measured_at: 2026-11-02T09:00:00Z, source: manual}}
replicas:
  - {{name: llama-70b-0, model: {LLAMA}, variant: h100-tp4, state: ready,
      placement: [{{node: gpu-a1, gpus: [0, 1, 2, 3]}}]}}
"""
FILE: FilePayload = {"name": "fleet.yaml", "mimeType": "application/yaml", "buffer": INVENTORY.encode()}
ANSWER = "5 replicas are needed, 1 runs; of the other 4 only 1 fits."


@pytest.fixture
def newcomer(page: Page, live_server: Any) -> Iterator[Desk]:
    """Somebody in front of the form to sign in."""
    person("boss", superuser=True)
    desk = Desk(page, live_server.url)
    page.goto(f"{desk.address}/admin/")
    yield desk
    assert desk.complaints == []


def at(page: Page) -> str:
    """What the keyboard is at: its label, its words or its address."""
    found: str = page.evaluate(
        """() => {
          const at = document.activeElement;
          const words = at.labels?.[0]?.textContent || at.value || at.textContent || "";
          return words.trim().replace(/\\s+/g, " ");
        }"""
    )
    return found


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the keyboard is at something of this name, which must then be seen to be there."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if at(page).startswith(name):
            outline = "getComputedStyle(document.activeElement).outlineStyle !== 'none'"
            ring = "getComputedStyle(document.activeElement).boxShadow !== 'none'"
            assert page.evaluate(f"{outline} || {ring}"), f"{name} has the keyboard and does not show it"
            return
    raise AssertionError(f"Tab does not lead to {name}")


def test_a_newcomer_comes_from_the_empty_desk_to_the_first_answer(newcomer: Desk) -> None:
    page = newcomer.page
    newcomer.check("the form to sign in")
    newcomer.sign_in("boss", "pass-word-1")
    expect(page.get_by_text("No node is known yet. Load an inventory file:")).to_be_visible()
    expect(page.get_by_text("No model is known yet.")).to_be_visible()
    expect(page.get_by_text("No target is saved yet.")).to_be_visible()
    newcomer.check("the empty board")
    page.get_by_role("link", name="Nodes", exact=True).first.click()
    empty = page.locator(".desk-empty")
    expect(empty).to_contain_text("No node is known yet.")
    newcomer.check("an empty list")
    empty.get_by_role("link", name="Load an inventory file").click()
    page.get_by_role("button", name="Look at the file").click()
    expect(page.get_by_text("Choose a file.")).to_be_visible()
    page.get_by_label("Inventory file").set_input_files({**FILE, "buffer": b"version: 1\nnodes: [{gpus: 8}]"})
    page.get_by_role("button", name="Look at the file").click()
    expect(page.get_by_role("heading", name="What is wrong with the file")).to_be_visible()
    expect(page.locator("code", has_text="nodes[0]").first).to_be_visible()
    newcomer.check("a file that is refused")
    page.get_by_role("link", name="bring it again").click()
    page.get_by_label("Inventory file").set_input_files(FILE)
    page.get_by_role("button", name="Look at the file").click()
    expect(page.get_by_role("heading", name="What it changes")).to_be_visible()
    expect(page.get_by_text("gpu-a1").first).to_be_visible()
    assert not Node.objects.exists()
    newcomer.check("what a file would change")
    page.get_by_role("button", name="Load", exact=True).click()
    expect(page.get_by_role("heading", name="What it changed")).to_be_visible()
    assert Node.objects.get().name == "gpu-a1"
    page.get_by_role("link", name="Board").first.click()
    page.get_by_label("model or a part of its name").fill("llama")
    page.get_by_label("tokens per second").fill("5000")
    page.get_by_role("button", name="Ask").click()
    expect(page.locator("#answer")).to_have_text(ANSWER)


def test_the_keyboard_alone_leads_there_too(newcomer: Desk) -> None:
    page = newcomer.page
    expect(page.get_by_label("Username")).to_be_focused()
    for text, key in (("boss", "Tab"), ("pass-word-1", "Enter")):
        page.keyboard.type(text)
        page.keyboard.press(key)
    expect(page.get_by_text("No node is known yet.")).to_be_visible()
    tab_to(page, "load it here")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Look at the file")).to_be_visible()
    with page.expect_file_chooser() as chooser:
        tab_to(page, "Inventory file")
        page.keyboard.press("Enter")
    chooser.value.set_files(FILE)
    tab_to(page, "Look at the file")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="What it changes")).to_be_visible()
    tab_to(page, "Load")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="What it changed")).to_be_visible()
    tab_to(page, "Board")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Fleet").first).to_be_visible()
    page.wait_for_load_state()
    page.keyboard.press("/")
    expect(page.get_by_label("model or a part of its name")).to_be_focused()
    page.keyboard.type("llama")
    page.keyboard.press("Tab")
    page.keyboard.type("5000")
    page.keyboard.press("Enter")
    expect(page.locator("#answer")).to_have_text(ANSWER)
