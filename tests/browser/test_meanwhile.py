"""A form whose object was changed meanwhile, as people see it."""

from __future__ import annotations

import pytest

from sizing.models import Node
from sizing.models.history import API, By
from sizing.services import editing
from tests import builders
from tests.browser.conftest import Desk

LONG = "a-node-with-a-rather-long-name-and-no-space-in-it.example.internal"


@pytest.mark.looks
@pytest.mark.parametrize("scripts", [True, False])
def test_a_conflict_is_read_and_saved_over(desk: Desk, scripts: bool) -> None:
    node = builders.node(LONG, gpus=2)
    with desk.another(scripts=scripts) as other:
        page = other.page
        page.goto(f"{desk.address}/admin/sizing/node/{node.pk}/change/")
        page.locator("summary", has_text="Change this node").click()
        page.get_by_label("Cost per hour").fill("2.5")
        given = {"schedulable": False, "labels": {"topology.kubernetes.io/zone": "eu-1a"}}
        editing.save(Node, given, node.pk, by=By(API))
        page.get_by_role("button", name="Save", exact=True).click()
        alert = page.get_by_role("alert")
        alert.get_by_text("Not saved: this node was changed since you opened it").wait_for()
        assert page.get_by_label("Cost per hour").input_value() == "2.5"
        if scripts:
            other.check("the conflict")
        alert.get_by_role("button", name="Save over it").click()
        page.get_by_text("was changed successfully").wait_for()
    node.refresh_from_db()
    assert (node.schedulable, node.labels, node.cost_per_hour) == (True, {}, 2.5)
