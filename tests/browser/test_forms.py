"""Forms and error pages on a phone, and what axe says of forms with lines."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from sizing.models import Node
from tests import builders
from tests.browser.conftest import Desk

pytestmark = pytest.mark.looks

# Names of the elements that end to the right of their card, but for what a part with its own scrolling holds.
STICKING_OUT = """() => [...document.querySelectorAll("fieldset.module, .submit-row")].flatMap(card => {
  const scrolls = element => /auto|scroll/.test(getComputedStyle(element).overflowX);
  const held = element => {
    for (let at = element.parentElement; at && at !== card.parentElement; at = at.parentElement)
      if (scrolls(at)) return true;
    return false;
  };
  const edge = card.getBoundingClientRect().right + 0.5;
  return [...card.querySelectorAll("*")]
    .filter(element => element.getBoundingClientRect().right > edge && !held(element))
    .map(element => `${element.tagName} ${element.id} ${element.className}`);
})"""


def test_nothing_sticks_out_of_a_forms_cards_on_a_phone(desk: Desk) -> None:
    variant = builders.variant(builders.model("meta-llama/Llama-3.1-70B-Instruct"), "h100-tp4", 4)
    measurement = builders.measurement(variant, builders.profile("chat"), "1180.5")
    replica = builders.replica("llama-70b-0", variant, builders.node("gpu-a1"), (0, 1, 2, 3))
    page = desk.page
    page.set_viewport_size({"width": 360, "height": 800})
    for path in (
        f"sizing/node/{Node.objects.get().pk}/change",
        f"sizing/measurement/{measurement.pk}/change",
        f"sizing/replica/{replica.pk}/change",
        f"sizing/variant/{variant.pk}/change",
        f"auth/user/{User.objects.get(username='boss').pk}/change",
        "sizing/benchprofile/add",
        "sizing/target/add",
        "auth/user/add",
    ):
        page.goto(f"{desk.address}/admin/{path}/")
        assert page.evaluate(STICKING_OUT) == [], path


def test_a_page_that_is_not_there_fits_a_phone(desk: Desk) -> None:
    desk.page.set_viewport_size({"width": 360, "height": 800})
    desk.page.goto(f"{desk.address}/nothing/")
    assert desk.page.get_by_role("heading", name="Not found").is_visible()
    assert desk.sideways() == 0
    desk.complaints.clear()  # of the 404 that was asked for


def test_lines_of_a_form_have_heads_that_say_something(desk: Desk) -> None:
    variant = builders.variant(builders.model("llama"), "tp4", 4)
    for path in (f"node/{builders.node('gpu-a1').pk}", f"servedmodel/{variant.model_id}"):
        desk.page.goto(f"{desk.address}/admin/sizing/{path}/change/")
        assert desk.axe("empty-table-header", "td-has-header") == []


def test_lists_show_all_their_columns_on_a_laptop(desk: Desk) -> None:
    variant = builders.variant(builders.model("meta-llama/Llama-3.1-70B-Instruct"), "h100-tp4", 4)
    builders.measurement(
        variant, builders.profile("long-context-fast"), "23079.9", source="MLPerf Inference v5.1, closed"
    )
    taints = [{"key": "dedicated", "value": "research", "effect": "NoSchedule"}]
    builders.node("h200nvl-01", taints=taints, cpu_millis=222_000, memory_mib=2_031_000, cost_per_hour="39.8")
    desk.page.set_viewport_size({"width": 1280, "height": 800})
    for name in ("node", "measurement"):
        desk.page.goto(f"{desk.address}/admin/sizing/{name}/")
        hidden = desk.page.locator(".results").evaluate("list => list.scrollWidth - list.clientWidth")
        assert hidden == 0, name


def test_the_nodes_of_an_answer_stand_one_below_the_other_on_a_phone(desk: Desk) -> None:
    variant = builders.variant(builders.model("llama"), "tp4", 4)
    builders.measurement(variant, builders.profile("chat"), "1180.5")
    builders.replica("llama-70b-0", variant, builders.node("gpu-a1"), (0, 1, 2, 3))
    desk.page.set_viewport_size({"width": 360, "height": 800})
    desk.page.goto(f"{desk.address}/admin/sizing/servedmodel/{variant.model_id}/target/?tokens_per_sec=9000")
    table = "document.querySelector('.desk-nodes')"
    hidden = f"{table}.parentElement.scrollWidth - {table}.parentElement.clientWidth"
    assert desk.page.evaluate(hidden) == 0
    label = f"getComputedStyle({table}.querySelector('td:nth-child(5)'), '::before').content"
    assert desk.page.evaluate(label) == '"held by"'
