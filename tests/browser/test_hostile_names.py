"""In a real browser, on every page: what stands in the database runs nothing."""

from __future__ import annotations

import pytest
from playwright.sync_api import Dialog

from tests.admin.hostile import EVIL, plant
from tests.browser.conftest import Desk
from tests.browser.test_every_page import addresses, fill, more_addresses

CAME_IN = """() => window.owned || document.querySelectorAll(
    '[onerror], [onfocus], script:not([src]):not([type="application/json"])').length"""


@pytest.mark.looks
def test_no_name_runs_anything_on_any_page(desk: Desk) -> None:
    shown = fill()
    before = list(more_addresses())
    assert plant() > 60
    for row in shown.values():
        row.refresh_from_db()
    dialogs: list[str] = []

    def refuse(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    desk.page.on("dialog", refuse)
    wrong, met = {}, 0
    for name, url in [*addresses(shown), *before]:
        answer = desk.page.goto(f"{desk.address}{url}")
        assert answer is not None
        desk.page.wait_for_load_state()
        found = [answer.status, desk.page.evaluate(CAME_IN), *desk.complaints]
        if found != [200, 0]:
            wrong[name] = found
        desk.complaints.clear()
        met += EVIL in desk.page.inner_text("body")
    assert (wrong, dialogs) == ({}, [])
    assert met > 20  # it was there, as text


@pytest.mark.looks
def test_the_page_of_the_api_works_without_inline_style_or_script(desk: Desk) -> None:
    desk.page.goto(f"{desk.address}/api/v1/docs")
    desk.page.get_by_text("/api/v1/models/{name}/target", exact=False).first.wait_for()
    assert desk.page.locator(".opblock").count() > 20
    desk.page.locator(".opblock-get button").first.click()
    desk.page.get_by_role("button", name="Try it out").first.click()
    desk.page.get_by_role("button", name="Execute").first.click()
    desk.page.locator(".live-responses-table").first.wait_for()
    assert desk.complaints == []
