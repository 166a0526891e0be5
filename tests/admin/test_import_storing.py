"""What was looked at is stored, once, or discarded; broken files are left out only on purpose."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from sizing.admin.imports.form import uploads_of
from sizing.measuring.importing import life
from sizing.models import BenchFile, BenchFilePart, BenchImport, BenchProfile, Measurement, Variant
from sizing.services import imports
from tests import builders
from tests.admin.given import (
    ACTS,
    BROKEN,
    FAILS,
    OTHER_SHAPE,
    PASSES,
    do,
    files,
    given,
    page,
    url,
)
from tests.admin.test_measurement_page import words
from tests.files.builders import vllm


def test_storing_leads_to_the_measurement_with_its_levels_and_files(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    row = given(boss, llama, chat, PASSES, FAILS)
    response = boss.post(url(row, "store"))
    measurement = Measurement.objects.get()
    assert response["Location"] == f"/admin/sizing/measurement/{measurement.pk}/change/"
    assert (measurement.variant, measurement.profile, str(measurement.tok_per_sec), measurement.bound) == (
        llama,
        chat,
        "256.000000",
        "edge",
    )
    assert [level.verdict for level in measurement.levels.all()] == ["pass", "fail"]
    assert [file.name for file in measurement.files.all()] == ["c8.json", "c16.json"]
    body = words(boss.get(response["Location"]).content.decode())
    assert "The measurement is stored, with its files beside it." in body
    assert f"by import {row.pk} of result files" in body
    assert [str(entry.object_repr) for entry in LogEntry.objects.order_by("pk")] == [
        f"import {row.pk}",
        "llama · tp4 on chat: 256 tok/s, 2026-11-30",
    ]


def test_an_import_is_stored_once_and_says_so(llama: Variant, chat: BenchProfile, boss: Client) -> None:
    row = given(boss, llama, chat, PASSES)
    do(boss, row, "store")
    measurement = Measurement.objects.get()
    for act in ("store", "leave-out", "force", "discard"):
        assert "stored" in do(boss, row, act)
    assert Measurement.objects.get() == measurement
    body = page(boss, row)
    assert f'Stored as <a href="/admin/sizing/measurement/{measurement.pk}/change/">' in body
    assert f'action="{url(row, "store")}"' not in body
    assert f'action="{url(row, "discard")}"' not in body
    measurement.delete()
    assert "It was stored, and its measurement was deleted since" in words(page(boss, row))


def test_an_older_one_than_the_last_is_stored_with_the_word_that_it_does_not_count(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    row = given(boss, llama, chat, ("old.json", vllm(date="20251130-120000")))
    builders.measurement(llama, chat, "300")
    said = do(boss, row, "store")
    assert "The one of 2026-01-01 00:00 UTC is newer, so it counts in place of this one." in said


def test_a_profile_that_changed_since_refuses_the_store(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    row = given(boss, llama, chat, PASSES)
    BenchProfile.objects.update(itl_ms=20)
    assert "The profile chat changed since the files were read; give them again." in do(boss, row, "store")
    assert not Measurement.objects.exists()


def test_a_discarded_import_is_gone_with_its_files_and_its_page_says_so(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    row = given(boss, llama, chat, PASSES)
    assert f"Import {row.pk} is discarded; nothing was stored." in do(boss, row, "discard")
    assert not BenchImport.objects.exists()
    assert not BenchFile.objects.exists()
    gone = f"There is no import {row.pk} any more: it was discarded, or too old."
    for act in ACTS:
        assert gone in do(boss, row, act)
    assert gone in words(boss.get(url(row), follow=True).content.decode())
    assert not Measurement.objects.exists()


def test_a_broken_file_is_one_line_and_the_others_are_shown_all_the_same(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    row = given(boss, llama, chat, PASSES, BROKEN)
    body = page(boss, row)
    said = words(body)
    assert (
        "Why it cannot be stored as it is cut.json: line 1: the JSON that begins here is cut off;"
        " its end was expected" in said
    )
    assert "Without what is refused, one replica serves at least 256 tok/s on chat." in said
    assert (
        '<p class="desk-problem">line 1: the JSON that begins here is cut off; its end was expected</p>'
        in body
    )
    assert f'action="{url(row, "store")}"' not in body
    assert f'action="{url(row, "force")}"' not in body
    assert "cut.json: line 1" in do(boss, row, "store")
    assert not Measurement.objects.exists()


def test_broken_files_are_left_out_on_purpose(llama: Variant, chat: BenchProfile, boss: Client) -> None:
    row = given(boss, llama, chat, PASSES, BROKEN)
    assert "The measurement is stored" in do(boss, row, "leave-out")
    measurement = Measurement.objects.get()
    assert str(measurement.tok_per_sec) == "256.000000"
    assert (
        "left out: cut.json: line 1: the JSON that begins here is cut off; its end was expected"
        in measurement.warnings
    )


def test_where_nothing_is_left_there_is_nothing_to_store(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    row = given(boss, llama, chat, BROKEN)
    body = page(boss, row)
    assert "No load point is left." in body
    assert f'action="{url(row, "leave-out")}"' not in body
    assert f'action="{url(row, "discard")}"' in body
    said = do(boss, row, "leave-out")
    assert f"Import {row.pk} cannot be stored: no load point is left that could be stored." in said
    assert not Measurement.objects.exists()


def test_points_of_another_shape_are_taken_on_purpose_and_labeled(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    row = given(boss, llama, chat, PASSES, OTHER_SHAPE)
    said = words(page(boss, row))
    assert "long.json: other shape: 100 input tokens a request where chat has 64" in said
    assert "Take the other shapes too" in said
    do(boss, row, "force")
    said = words(page(boss, row))
    assert "Take the other shapes too" not in said
    assert "force points of another shape are taken" in said
    do(boss, row, "store")
    measurement = Measurement.objects.get()
    assert measurement.levels.count() == 2
    assert "other shape: 100 input tokens a request where chat has 64" in measurement.warnings


def test_force_may_be_said_at_once(llama: Variant, chat: BenchProfile, boss: Client) -> None:
    row = given(boss, llama, chat, OTHER_SHAPE, force="on")
    assert row.force
    do(boss, row, "store")
    assert Measurement.objects.exists()


def test_a_large_upload_waits_for_a_worker_and_its_page_is_followed(
    llama: Variant, chat: BenchProfile, boss: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "LARGE_BYTES", 10)
    row = given(boss, llama, chat, PASSES, FAILS)
    assert row.state == "queued"
    body = page(boss, row)
    assert f'data-live="{url(row, "live")}"' in body
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in body
    assert "a worker reads the files as soon as one is free" in body
    assert "c16.json" in body
    BenchImport.objects.update(state="running", progress=40)
    body = boss.get(url(row, "live")).content.decode()
    assert 'data-active="yes"' in body
    assert '<progress class="desk-progress" max="100" value="40"' in body
    assert f'action="{url(row, "discard")}"' not in body
    BenchImport.objects.update(state="queued")
    assert life.run(row.pk)
    body = boss.get(url(row, "live")).content.decode()
    assert 'data-active="no"' in body
    assert "One replica serves 256 tok/s on chat." in words(body)
    assert f'action="{url(row, "store")}"' in body


def test_a_large_one_with_a_broken_file_is_stored_by_the_worker_that_reads_it_again(
    llama: Variant, chat: BenchProfile, boss: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "LARGE_BYTES", 10)
    row = given(boss, llama, chat, PASSES, BROKEN)
    life.run(row.pk)
    assert "a worker reads the files" in do(boss, row, "leave-out")
    assert not Measurement.objects.exists()
    life.run(row.pk)
    assert Measurement.objects.get().bench_import == row


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("queued", "a worker reads the files as soon as one is free"),
        ("running", "A worker reads the files."),
        ("done", "No load point is left."),
        ("failed", "The files were not read."),
        ("stored", "It was stored, and its measurement was deleted since"),
    ],
)
def test_an_import_opens_in_every_state(
    state: str, says: str, llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    row = BenchImport.objects.create(
        variant=llama, profile=chat, state=state, trigger="api", error="the worker was lost 3 times"
    )
    body = words(page(boss, row))
    assert says in body
    assert "the worker was lost 3 times" in body
    assert boss.get(url(row, "live")).status_code == 200


def test_one_that_was_given_no_model_is_only_looked_at(boss: Client) -> None:
    row = imports.take(uploads_of(files(PASSES, FAILS)), imports.Wish(), trigger="api")
    body = page(boss, row)
    assert "It was given no model, so it is only looked at." in body
    assert body.count('role="img"') == 2
    assert f'action="{url(row, "store")}"' not in body


def test_deleting_a_measurement_names_its_files_but_not_their_pieces_and_reads_none_of_them(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    do(boss, given(boss, llama, chat, PASSES), "store")
    path = f"/admin/sizing/measurement/{Measurement.objects.get().pk}/delete/"
    with CaptureQueriesContext(connection) as queries:
        body = boss.get(path).content.decode()
    assert "Bench file: " in body
    assert "Bench file part: " not in body
    assert not [q["sql"] for q in queries if '"content"' in q["sql"]]
    assert boss.post(path, {"post": "yes"}).status_code == 302
    assert not BenchFilePart.objects.exists()
