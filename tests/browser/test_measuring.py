"""A run followed in a real browser: the page changes as the worker writes, and fits a phone."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from playwright.sync_api import Page, expect

from sizing.models import BenchLevel, Refresh, Variant
from tests import builders
from tests.admin import sweeps
from tests.admin.test_refresh_page import LIVE
from tests.browser.conftest import Desk

LONG = "meta-llama/Llama-3.1-70B-Instruct"


def llama() -> Variant:
    variant = builders.variant(builders.model(LONG), "h100-tp4", 4)
    builders.replica("llama-70b-0", variant, benchable=True, state="ready", endpoint="http://10.0.0.7/v1")
    return variant


def write(run: Refresh, **fields: Any) -> None:
    """As the worker does it: one statement on the row."""
    Refresh.objects.filter(pk=run.pk).update(**fields)


def sentence(page: Page, words: str) -> None:
    expect(page.locator("#sentence")).to_contain_text(words)


def test_the_page_follows_a_run_from_the_button_to_its_measurement(desk: Desk) -> None:
    variant = llama()
    builders.measurement(variant, sweeps.profile(), "180")
    page = desk.page
    page.goto(f"{desk.address}/admin/sizing/servedmodel/{variant.model_id}/change/")
    page.get_by_role("button", name="Refresh h100-tp4 on chat").click()
    run = Refresh.objects.get()
    assert page.url == f"{desk.address}/admin/sizing/refresh/{run.pk}/change/"
    sentence(page, "a worker takes it up as soon as one is free")
    write(run, message="waits: refresh 7 measures on gpu-a1")
    sentence(page, "refresh 7 measures on gpu-a1")

    write(run, state="running", started_at=timezone.now(), message="", progress=25, live=LIVE)
    sentence(page, "Level 3 of about 9: 8 streams, narrowing.")
    expect(page.locator("progress")).to_have_attribute("value", "25")
    expect(page.locator("[role=status]").first).to_contain_text("tok/s so far 123.4")
    expect(page.get_by_role("img")).to_have_count(0)
    sweeps.keep(run, sweeps.sweep())
    expect(page.get_by_role("img")).to_have_count(2)
    write(run, live=LIVE | {"tok_per_sec": 150.5}, progress=60)
    expect(page.get_by_text("150.5", exact=True)).to_be_visible()

    row = builders.measurement(
        variant, run.profile, "200", at=timezone.now(), refresh=run, generator="builtin 0.1.0", bound="edge"
    )
    BenchLevel.objects.filter(refresh=run).update(refresh=None, measurement=row)
    write(run, state="done", progress=100, live={}, finished_at=timezone.now(), message="200 tok/s")
    sentence(page, "Done in")
    expect(page.get_by_text("gives the figure")).to_be_visible()
    page.get_by_role("link", name="200 tok/s").click()
    expect(page.locator(".desk-say")).to_contain_text("One replica serves 200 tok/s on chat.")


def test_a_run_that_is_over_is_no_longer_asked_about(desk: Desk) -> None:
    run = sweeps.refresh(llama(), sweeps.profile(), "running", started_at=timezone.now(), live=LIVE)
    page = desk.page
    page.goto(f"{desk.address}/admin/sizing/refresh/{run.pk}/change/")
    with page.expect_response("**/live/"):
        write(run, state="failed", error="the replica went away", finished_at=timezone.now())
    sentence(page, "Failed after")
    expect(page.get_by_text("the replica went away")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(2500)
    assert asked == []


def test_cancel_is_pressed_while_the_page_changes_and_seen_by_the_worker(desk: Desk) -> None:
    run = sweeps.refresh(llama(), sweeps.profile(), "running", started_at=timezone.now(), live=LIVE)
    page = desk.page
    page.goto(f"{desk.address}/admin/sizing/refresh/{run.pk}/change/")
    button = page.get_by_role("button", name="Cancel")
    button.focus()
    write(run, live=LIVE | {"tok_per_sec": 150.5})
    expect(page.get_by_text("150.5", exact=True)).to_be_visible()
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    sentence(page, "Stopping")
    run.refresh_from_db()
    assert run.cancel_requested
    write(run, state="cancelled", live={}, finished_at=timezone.now())
    sentence(page, "Cancelled after")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()


def test_the_list_and_the_models_page_follow_too(desk: Desk) -> None:
    variant = llama()
    run = sweeps.refresh(variant, sweeps.profile(), "queued")
    page = desk.page
    for path in ("refresh", f"servedmodel/{variant.model_id}/change"):
        write(run, state="queued", progress=0, message="")
        page.goto(f"{desk.address}/admin/sizing/{path}/")
        state = page.locator(f'[data-part="refresh-{run.pk}-state"]')
        expect(state).to_contain_text("queued")
        write(run, state="running", progress=40, message="level 3, 8 streams")
        expect(state).to_contain_text("running")
        expect(page.locator(f'[data-part="refresh-{run.pk}-outcome"]')).to_have_text("level 3, 8 streams")


def test_a_desk_that_is_away_is_said_and_the_page_goes_on_when_it_is_back(desk: Desk) -> None:
    run = sweeps.refresh(llama(), sweeps.profile(), "running", started_at=timezone.now(), live=LIVE)
    page = desk.page
    page.route("**/live/", lambda route: route.abort())
    page.goto(f"{desk.address}/admin/sizing/refresh/{run.pk}/change/")
    expect(page.get_by_text("The desk does not answer")).to_be_visible()
    page.unroute("**/live/")
    write(run, live=LIVE | {"tok_per_sec": 150.5})
    expect(page.get_by_text("150.5", exact=True)).to_be_visible(timeout=15_000)
    expect(page.get_by_text("The desk does not answer")).to_be_hidden()
    desk.complaints.clear()  # of the requests that were cut


def test_lists_of_runs_show_all_their_columns_on_a_laptop(desk: Desk) -> None:
    run = sweeps.refresh(
        llama(), sweeps.profile("long-context-fast"), "running", progress=42, message="level 3"
    )
    write(run, finished_at=timezone.now())
    desk.page.set_viewport_size({"width": 1280, "height": 800})
    desk.page.goto(f"{desk.address}/admin/sizing/refresh/")
    assert desk.page.locator(".results").evaluate("list => list.scrollWidth - list.clientWidth") == 0


def test_without_scripts_the_page_reloads_itself(desk: Desk) -> None:
    run = sweeps.refresh(llama(), sweeps.profile(), "running", started_at=timezone.now(), live=LIVE)
    with desk.another(scripts=False) as other:
        other.page.goto(f"{desk.address}/admin/sizing/refresh/{run.pk}/change/")
        sentence(other.page, "Level 3 of about 9")
        write(run, live=LIVE | {"level": 4})
        expect(other.page.locator("#sentence")).to_contain_text("Level 4 of about 9", timeout=15_000)
