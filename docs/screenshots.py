"""Takes the README's pictures: `script/screenshots`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).resolve().parent / "images"
QUESTION = "tokens_per_sec=180000&profile=chat-fast"
MODEL = "meta-llama/Llama-2-70b-chat-hf"
NODE = "a100-02"
MEASURED = "simulated/tiny-8b"


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("Chromium is needed and was not found")
    with tempfile.TemporaryDirectory() as folder:
        desk = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--demo", "--port", "0"],
            env={**os.environ, "DATA_DIR": folder},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            address, password = started(desk)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                page = browser.new_page()
                sign_in(page, address, password)
                look(page, address)
                measure(page, address)
                browser.close()
        finally:
            desk.terminate()
            desk.wait()


def started(desk: subprocess.Popen[str]) -> tuple[str, str]:
    """The desk's address and first password, read from what it prints."""
    password = ""
    assert desk.stdout is not None
    for line in desk.stdout:
        if found := re.search(r"password: (\S+)", line):
            password = found[1]
        if found := re.search(r"is up: (\S+)", line):
            return found[1], password
    raise SystemExit("the desk did not start")


def sign_in(page: Page, address: str, password: str) -> None:
    page.goto(f"{address}admin/")
    page.fill("#id_username", "admin")
    page.fill("#id_password", password)
    page.click("[type=submit]")


def keep(page: Page, name: str, height: int = 840) -> None:
    page.set_viewport_size({"width": 1280, "height": height})
    page.screenshot(path=IMAGES / f"{name}.png")


def look(page: Page, address: str) -> None:
    """The pages that need no measurement of ours."""
    page.goto(f"{address}admin/")
    keep(page, "board", 1000)
    page.emulate_media(color_scheme="dark")
    page.reload()  # so that no color is on its way from one theme to the other
    keep(page, "board-dark", 1000)
    page.emulate_media(color_scheme="light")
    page.goto(f"{address}admin/sizing/node/?q={NODE}")
    page.get_by_role("link", name=NODE, exact=True).click()
    keep(page, "node", 1000)
    page.goto(f"{address}admin/")
    page.get_by_role("list", name="Models").get_by_role("link", name=MODEL).click()
    page.goto(f"{page.url.split('?')[0]}?{QUESTION}")
    keep(page, "target", 1340)


def measure(page: Page, address: str) -> None:
    """Has a simulated replica of the demo measured twice, and looks at what came of it."""
    model = f"{address}admin/sizing/servedmodel/?q={MEASURED}"
    for _ in range(2):
        page.goto(model)
        page.get_by_role("link", name=MEASURED).first.click()
        page.get_by_role("button", name="Refresh").first.click()
        page.get_by_role("link", name=" tok/s").first.click(timeout=300_000)
    keep(page, "measurement")
    page.get_by_role("link", name="Compare with the one before").click()
    keep(page, "compare", 1320)
    page.goto(model)
    page.get_by_role("link", name=MEASURED).first.click()
    keep(page, "model")


if __name__ == "__main__":
    main()
