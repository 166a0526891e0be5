"""Result files given in a real browser: chosen, looked at, stored; with and without scripts."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import FilePayload, Page, expect

from sizing.measuring.importing import life
from sizing.models import BenchImport, BenchProfile, Measurement, ServedModel, Variant
from sizing.services import imports
from tests import builders
from tests.admin import sweeps
from tests.admin.given import BROKEN, FAILS, OTHER_SHAPE, PASSES, Given
from tests.browser.conftest import Desk

LONG = "meta-llama/Llama-3.1-70B-Instruct"
GIVE = "/admin/sizing/benchimport/add/"


def llama() -> tuple[Variant, BenchProfile]:
    profile = sweeps.profile(input_tokens=64, output_tokens=32)
    variant = builders.variant(builders.model(LONG), "h100-tp4", 4)
    for i in range(30):
        builders.variant(builders.model(f"other-{i}"))
    ServedModel.objects.update(default_profile=profile)
    return variant, profile


def payloads(*given: Given) -> list[FilePayload]:
    def payload(name: str, document: object) -> FilePayload:
        text = document if isinstance(document, str) else json.dumps(document)
        return {"name": name, "mimeType": "application/json", "buffer": text.encode()}

    return [payload(name, document) for name, document in given]


def choose_variant(page: Page) -> None:
    """As people do: open the search, type a part of the name, take the one found."""
    page.locator("#id_variant + .select2").click()
    page.locator(".select2-search__field").fill("Llama-3.1")
    page.get_by_role("option", name=f"{LONG} · h100-tp4").or_(
        page.locator(".select2-results__option", has_text="h100-tp4")
    ).first.click()


def give(desk: Desk, *given: Given) -> BenchImport:
    page = desk.page
    page.goto(f"{desk.address}{GIVE}")
    choose_variant(page)
    page.get_by_label("Result files").set_input_files(payloads(*given))
    page.get_by_role("button", name="Read the files").click()
    expect(page.get_by_role("heading", name="What is to be stored")).to_be_visible()
    return BenchImport.objects.latest("pk")


def test_two_files_are_looked_at_and_stored(desk: Desk) -> None:
    llama()
    page = desk.page
    page.goto(f"{desk.address}/admin/sizing/measurement/")
    page.get_by_role("link", name="Import result files").first.click()
    assert page.url == f"{desk.address}{GIVE}"
    row = give(desk, PASSES, FAILS)
    assert page.url == f"{desk.address}/admin/sizing/benchimport/{row.pk}/change/"
    expect(page.locator("#sentence")).to_contain_text("One replica serves 256 tok/s on chat.")
    expect(page.get_by_role("img")).to_have_count(2)
    assert not Measurement.objects.exists()
    page.get_by_role("button", name="Store", exact=True).click()
    expect(page.get_by_text("The measurement is stored, with its files beside it.")).to_be_visible()
    measurement = Measurement.objects.get()
    assert page.url == f"{desk.address}/admin/sizing/measurement/{measurement.pk}/change/"
    with page.expect_download() as download:
        page.get_by_role("link", name="c16.json").click()
    assert download.value.suggested_filename == "c16.json"
    assert json.loads(download.value.path().read_text()) == FAILS[1]
    with page.expect_download() as download:
        page.get_by_role("link", name="Table of levels").click()
    assert download.value.suggested_filename == f"measurement-{measurement.pk}.csv"


def test_a_large_upload_is_followed_until_it_can_be_stored(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "LARGE_BYTES", 10)
    llama()
    row = give(desk, PASSES, FAILS)
    page = desk.page
    expect(page.locator("#sentence")).to_contain_text("a worker reads the files as soon as one is free")
    BenchImport.objects.update(state="running", progress=40)
    expect(page.locator("progress")).to_have_attribute("value", "40")
    expect(page.get_by_role("button", name="Discard")).to_have_count(0)
    BenchImport.objects.update(state="queued")
    assert life.run(row.pk)
    expect(page.locator("#sentence")).to_contain_text("One replica serves 256 tok/s on chat.")
    expect(page.get_by_role("img")).to_have_count(2)
    page.get_by_role("button", name="Store", exact=True).click()
    expect(page.get_by_text("The measurement is stored, with its files beside it.")).to_be_visible()


@pytest.mark.looks
def test_each_step_of_importing_is_accessible_and_fits(desk: Desk) -> None:
    llama()
    page = desk.page
    page.goto(f"{desk.address}{GIVE}")
    page.get_by_role("button", name="Read the files").click()
    expect(page.get_by_text("Choose at least one file.")).to_be_visible()
    desk.check("the form with errors")
    long = ("a-rather-long-name-of-a-result-file-without-any-space-in-it-" * 2 + ".json", PASSES[1])
    give(desk, long, FAILS, OTHER_SHAPE, BROKEN)
    desk.check("what is refused")
    page.get_by_role("button", name="Leave out the refused and store").click()
    expect(page.get_by_text("The measurement is stored, with its files beside it.")).to_be_visible()
    desk.check("the measurement")
    page.get_by_role("link", name="import", exact=False).filter(has_text="import ").click()
    expect(page.get_by_text("Stored as")).to_be_visible()
    desk.check("what was stored")


def test_it_works_without_scripts(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "LARGE_BYTES", 10)
    llama()
    with desk.another(scripts=False) as other:
        page = other.page
        page.goto(f"{desk.address}{GIVE}")
        page.get_by_label("Model’s name").fill(LONG)
        page.get_by_label("Result files").set_input_files(payloads(PASSES, FAILS))
        page.get_by_role("button", name="Read the files").click()
        expect(page.locator("#sentence")).to_contain_text("a worker reads the files")
        life.run(BenchImport.objects.get().pk)
        expect(page.locator("#sentence")).to_contain_text("One replica serves 256 tok/s", timeout=15_000)
        page.get_by_role("button", name="Store", exact=True).click()
        expect(page.get_by_text("The measurement is stored, with its files beside it.")).to_be_visible()
