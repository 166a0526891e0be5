from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import BrowserContext, ConsoleMessage, Page

from tests.admin.cluster import person

Scheme = Literal["light", "dark"]

# Each width and each theme once: layout does not depend on the theme, nor contrast on the width.
LOOKS: tuple[tuple[int, Scheme], ...] = ((1280, "light"), (360, "dark"))

FINISH_COLORS = "for (const one of document.getAnimations()) if (one.transitionProperty) one.finish()"


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
        """As people do: by the form."""
        self.page.goto(f"{self.address}/admin/")
        self.page.get_by_label("Username").fill(name)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Log in").click()

    @contextmanager
    def another(self, *, scripts: bool = True) -> Iterator[Desk]:
        """A window of its own for the same person."""
        browser = self.page.context.browser
        assert browser is not None
        context = browser.new_context(
            java_script_enabled=scripts, storage_state=self.page.context.storage_state()
        )
        other = Desk(context.new_page(), self.address)
        yield other
        assert other.complaints == []
        context.close()

    def sideways(self) -> int:
        """By how many pixels the page is wider than its window."""
        width: int = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return width

    def axe(self, *rules: str) -> list[str]:
        """What axe says of the page as it is shown now: by these rules, else by all that it has on."""
        said = len(self.complaints)
        # Colors on their way from one theme to the other are not what people read.
        self.page.evaluate(FINISH_COLORS)
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE_SCRIPT)
        asked = {"resultTypes": ["violations"], "preload": False} | ({"runOnly": rules} if rules else {})
        found = self.page.evaluate(f"axe.run({json.dumps(asked)})")
        del self.complaints[said:]  # axe puts styles into the page, which the policy forbids
        return [
            f"{broken['id']}: {node['target']}: {node['failureSummary']}"
            for broken in found["violations"]
            for node in broken["nodes"]
        ]

    def faults(self) -> list[str]:
        """What is wrong with the page that is open, on a desk and on a phone, by day and by night."""
        self.page.wait_for_load_state()
        faults = [*self.complaints]
        for width, scheme in LOOKS:
            self.page.emulate_media(color_scheme=scheme)
            self.page.set_viewport_size({"width": width, "height": 800})
            if wider := self.sideways():
                faults.append(f"at {width} px it is {wider} px wider than the window")
            faults += [f"{scheme}, {width} px: {fault}" for fault in self.axe()]
        self.complaints.clear()
        return faults

    def check(self, where: str) -> None:
        """The page that is open fits, is accessible, and its console is quiet."""
        assert self.faults() == [], where


def sign_in(context: BrowserContext, user: User, address: str) -> None:
    """The session that the form would begin, without the time that the form takes."""
    client = Client()
    client.force_login(user)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": address}])


@pytest.fixture
def desk(page: Page, live_server: Any) -> Iterator[Desk]:
    boss = person("boss", superuser=True)
    desk = Desk(page, live_server.url)
    sign_in(page.context, boss, live_server.url)
    yield desk
    assert desk.complaints == []
