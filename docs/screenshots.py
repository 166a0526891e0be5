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
                page = browser.new_page(viewport={"width": 1280, "height": 840})
                take(page, address, password)
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


def take(page: Page, address: str, password: str) -> None:
    page.goto(f"{address}admin/")
    page.fill("#id_username", "admin")
    page.fill("#id_password", password)
    page.click("[type=submit]")
    page.get_by_role("link", name=MODEL).first.click()
    page.goto(f"{page.url.split('?')[0]}?{QUESTION}")
    page.screenshot(path=IMAGES / "target.png")
    measure(page, address)


def measure(page: Page, address: str) -> None:
    """Has a simulated replica of the demo measured, and looks at what came of it."""
    page.goto(f"{address}admin/sizing/servedmodel/?q=tiny-8b")
    page.get_by_role("link", name="simulated/tiny-8b").first.click()
    page.get_by_role("button", name="Refresh").first.click()
    page.get_by_role("link", name=" tok/s").first.click(timeout=300_000)
    page.screenshot(path=IMAGES / "measurement.png")


if __name__ == "__main__":
    main()
