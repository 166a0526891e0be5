from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import ConsoleMessage, Page

from tests.admin.cluster import person


class Desk:
    """A signed-in browser page that keeps what its console complained about."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.complaints: list[str] = []
        page.on("console", self._listen)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def sign_in(self, name: str, password: str) -> None:
        self.page.goto(f"{self.address}/admin/")
        self.page.get_by_label("Username").fill(name)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Log in").click()

    def sideways(self) -> int:
        """By how many pixels the page is wider than its window."""
        width: int = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return width


@pytest.fixture
def desk(page: Page, live_server: Any) -> Iterator[Desk]:
    person("boss", superuser=True)
    desk = Desk(page, live_server.url)
    desk.sign_in("boss", "pass-word-1")
    yield desk
    assert desk.complaints == []
