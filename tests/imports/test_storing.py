"""From files to a stored measurement: by the service, in one go or by a worker."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, BinaryIO

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sizing import tasks
from sizing.measuring.importing import life, read_file
from sizing.models import BenchFile, BenchImport, BenchLevel, BenchProfile, Measurement, Variant
from sizing.services import imports, targets
from sizing.services.errors import DeskError
from sizing.services.imports import Upload, Wish
from tests import builders
from tests.imports.files import rate, slow, streams

pytestmark = pytest.mark.django_db

DATE = "20250630-100000"


def upload(name: str, document: Any) -> Upload:
    raw = document if isinstance(document, bytes) else json.dumps(document).encode()

    def opened() -> AbstractContextManager[BinaryIO]:
        return io.BytesIO(raw)

    return Upload(name, len(raw), opened)


@pytest.fixture
def wish() -> Wish:
    profile = builders.profile(input_tokens=64, output_tokens=32, ttft_ms=500, itl_ms=50)
    return Wish(builders.variant(builders.model(default_profile=profile)), profile)


def right() -> list[Upload]:
    documents = {"a.json": rate(2, 60, date=DATE), "b.json": rate(4, 120, date=DATE)}
    return [upload(name, document) for name, document in documents.items()] + [
        upload("c.json", slow(rate(8, 200, date=DATE)))
    ]


def large(document: dict[str, Any]) -> Upload:
    """The same level in a file that only a worker reads."""
    return upload("large.json", json.dumps(document).encode() + b" " * (imports.LARGE_BYTES + 1))


def counts() -> tuple[int, int, int, int]:
    tables = (Measurement, BenchLevel, BenchImport, BenchFile)
    return tuple(table.objects.count() for table in tables)  # type: ignore[return-value]


def test_right_files_become_a_measurement_with_its_levels_and_the_whole_files(wish: Wish) -> None:
    row = imports.take(right(), wish, trigger="api", to_store=True)
    measured = Measurement.objects.get()
    assert (row.state, row.measurement, row.finding) == ("stored", measured, None)
    assert (measured.variant, measured.profile) == (wish.variant, wish.profile)
    assert (measured.tok_per_sec, measured.bound, measured.slo_met) == (Decimal(120), "edge", True)
    assert measured.measured_at == datetime(2025, 6, 30, 10, tzinfo=UTC)
    assert (measured.source, measured.generator) == ("vllm", "vllm bench serve")
    assert measured.bracket == "120 tok/s; the next level tried, 200, failed"
    assert (measured.variant_shape, measured.engine, measured.replica_name) == ("", "", "")
    assert measured.slo == wish.profile.slo  # type: ignore[union-attr]
    levels = [(row.position, row.verdict, row.judged.level.load) for row in measured.levels.all()]
    assert levels == [(1, "pass", 2.0), (2, "pass", 4.0), (3, "fail", 8.0)]
    kept = list(measured.files.all())
    assert [file.name for file in kept] == ["a.json", "b.json", "c.json"]
    for file, given in zip(kept, right(), strict=True):
        with given.open() as opened:
            raw = opened.read()
        assert (file.read(), file.size, file.sha256) == (raw, len(raw), hashlib.sha256(raw).hexdigest())
        assert len(file.parts.get().content) < len(raw)
        assert file.bench_import is None


def test_the_figure_answers_a_target_at_once(wish: Wish) -> None:
    imports.take(right(), wish, trigger="api", to_store=True)
    answer = targets.ask(targets.parse_question("llama", {"tokens_per_sec": ["240"]}))
    assert (answer["per_replica_tok_per_sec"], answer["needed"]) == (120.0, 2)
    assert answer["measurement"]["source"] == "vllm"


def test_an_slo_that_is_not_met_is_stored_as_such_and_never_counts(wish: Wish) -> None:
    imports.take([upload("a.json", slow(rate(2, 60)))], wish, trigger="api", to_store=True)
    measured = Measurement.objects.get()
    assert (measured.slo_met, measured.tok_per_sec, measured.bound) == (False, Decimal(0), None)
    assert measured.bracket == "not met at the lowest load tried: TTFT of 800 ms is beyond 500 ms"
    with pytest.raises(DeskError, match="has not been measured"):
        targets.ask(targets.parse_question("llama", {"tokens_per_sec": ["240"]}))


def test_a_broken_file_beside_right_ones_changes_nothing(wish: Wish) -> None:
    with pytest.raises(DeskError) as refused:
        imports.take([*right(), upload("d.json", b"{")], wish, trigger="api", to_store=True)
    line = "d.json: line 1: the JSON that begins here is cut off; its end was expected"
    assert refused.value.message == f"{line}; nothing was stored"
    assert (refused.value.status, refused.value.fields) == (400, {"d.json": [line]})
    assert counts() == (0, 0, 0, 0)


def test_what_is_left_out_on_purpose_is_kept_and_told(wish: Wish) -> None:
    on_purpose = Wish(wish.variant, wish.profile, leave_out_broken=True)
    imports.take([*right(), upload("d.json", b"{")], on_purpose, trigger="api", to_store=True)
    measured = Measurement.objects.get()
    assert measured.warnings == [
        "left out: d.json: line 1: the JSON that begins here is cut off; its end was expected"
    ]
    assert measured.files.count() == 4


def test_files_of_one_name_are_told_apart(wish: Wish) -> None:
    files = [upload("r.json", rate(2, 60)), upload("r.json", b"{"), upload("r.json", b"[")]
    with pytest.raises(DeskError) as refused:
        imports.take(files, wish, trigger="api", to_store=True)
    assert list(refused.value.fields) == ["r.json (2)", "r.json (3)"]
    assert refused.value.message == "2 things are not right; nothing was stored"


def test_names_are_labels_that_are_shown_on_one_line(wish: Wish) -> None:
    name = "../../etc/passwd\n\x1b[31m\0" + "x" * 300
    imports.take([upload(name, rate(2, 60))], wish, trigger="api", to_store=True)
    kept = BenchFile.objects.get().name
    assert kept.startswith("../../etc/passwd\\n\\x1b[31m\\x00xxx")
    assert len(kept) == 160


def test_looked_at_first_and_stored_then(wish: Wish) -> None:
    row = imports.take(right(), wish, trigger="admin")
    assert (row.state, row.progress, row.measurement) == ("done", 100, None)
    assert row.preview["storable"] is True
    assert row.files.count() == 3
    assert not Measurement.objects.exists()
    measured = imports.store(row.pk)
    row.refresh_from_db()
    assert (row.state, row.measurement, measured.tok_per_sec) == ("stored", measured, Decimal(120))
    assert (row.files.count(), measured.files.count()) == (0, 3)


def test_it_is_stored_once_only(wish: Wish) -> None:
    row = imports.take(right(), wish, trigger="admin", to_store=True)
    with pytest.raises(DeskError) as refused:
        imports.store(row.pk)
    assert (refused.value.message, refused.value.status) == (f"import {row.pk} is stored already", 409)
    assert Measurement.objects.count() == 1


def test_what_is_refused_can_be_looked_at_but_not_stored(wish: Wish) -> None:
    row = imports.take([upload("a.json", b"{")], wish, trigger="admin")
    assert (row.state, row.preview["storable"]) == ("done", False)
    with pytest.raises(DeskError) as refused:
        imports.store(row.pk)
    assert refused.value.message == (
        f"import {row.pk} cannot be stored: a.json: line 1: the JSON that begins here is cut off;"
        " its end was expected"
    )
    assert counts() == (0, 0, 1, 1)


def test_without_a_model_it_is_to_be_looked_at_only() -> None:
    row = imports.take(right(), Wish(), trigger="admin")
    with pytest.raises(DeskError, match="it was given no model and profile to be stored for"):
        imports.store(row.pk)
    assert not Measurement.objects.exists()


@pytest.mark.parametrize("change", [{"ttft_ms": 100}, {"input_tokens": 65}, {"arrival": "concurrency"}])
def test_a_profile_that_changed_meanwhile_is_a_conflict(wish: Wish, change: dict[str, Any]) -> None:
    row = imports.take(right(), wish, trigger="admin")
    BenchProfile.objects.update(**change)
    with pytest.raises(DeskError) as refused:
        imports.store(row.pk)
    assert refused.value.status == 409
    assert refused.value.message == "the profile chat changed since the files were read; give them again"
    row.refresh_from_db()
    assert (row.state, Measurement.objects.count()) == ("done", 0)


def test_it_can_be_read_again_on_other_terms(wish: Wish) -> None:
    row = imports.take([*right(), upload("d.json", b"{")], wish, trigger="admin")
    assert row.preview["storable"] is False
    imports.read_again(row.pk, force=False, leave_out_broken=True)
    tasks.read_import(row.pk)
    assert imports.store(row.pk).tok_per_sec == Decimal(120)
    with pytest.raises(DeskError, match="is not there to be read again"):
        imports.read_again(row.pk, force=True, leave_out_broken=True)


def test_an_import_can_be_discarded_until_it_is_stored(wish: Wish) -> None:
    row = imports.take(right(), wish, trigger="admin")
    imports.discard(row.pk)
    assert counts() == (0, 0, 0, 0)
    row = imports.take(right(), wish, trigger="admin", to_store=True)
    with pytest.raises(DeskError, match="is stored, being read, or gone"):
        imports.discard(row.pk)


def test_the_files_go_with_their_measurement(wish: Wish) -> None:
    imports.take(right(), wish, trigger="api", to_store=True)
    Measurement.objects.get().delete()
    assert counts() == (0, 0, 1, 0)
    assert BenchImport.objects.get().state == "stored"


def test_a_file_has_exactly_one_owner(wish: Wish) -> None:
    row = imports.take(right(), wish, trigger="api", to_store=True)
    for owners in ({}, {"bench_import": row, "measurement": row.measurement}):
        with pytest.raises(IntegrityError), transaction.atomic():
            BenchFile.objects.create(position=1, name="x", size=1, sha256="", **owners)


def test_more_levels_take_no_more_queries(wish: Wish) -> None:
    def queries(levels: int) -> int:
        text = "\n".join(json.dumps(rate(1 + i, 10 + i)) for i in range(levels))
        with CaptureQueriesContext(connection) as captured:
            imports.take([upload("a.json", text.encode())], wish, trigger="api", to_store=True)
        assert Measurement.objects.first() is not None
        return len(captured)

    queries(1)
    assert queries(3) == queries(60)


# Large ones -------------------------------------------------------------------------------------------


def test_a_large_upload_is_read_by_a_worker_and_stored_when_right(
    wish: Wish, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks() as callbacks:
        row = imports.take([large(rate(2, 60, date=DATE))], wish, trigger="api", to_store=True)
    assert (row.state, row.progress, row.preview, len(callbacks)) == ("queued", 0, {}, 1)
    assert not Measurement.objects.exists()
    tasks.read_import(row.pk)
    row.refresh_from_db()
    assert (row.state, row.progress, row.attempts) == ("stored", 100, 1)
    assert row.measurement is not None
    assert row.measurement.tok_per_sec == Decimal(60)
    assert row.measurement.files.get().read() == b"".join(parts(large(rate(2, 60, date=DATE))))


def parts(given: Upload) -> Iterator[bytes]:
    with given.open() as opened:
        yield from opened


def test_a_large_dry_run_is_only_looked_at(wish: Wish) -> None:
    row = imports.take([large(rate(2, 60))], wish, trigger="api")
    tasks.read_import(row.pk)
    row.refresh_from_db()
    assert (row.state, row.preview["storable"], row.measurement) == ("done", True, None)
    assert imports.store(row.pk).tok_per_sec == Decimal(60)


def test_what_is_wrong_in_a_large_upload_stands_in_its_row(wish: Wish) -> None:
    files = [large(rate(2, 60)), upload("b.json", b"{")]
    row = imports.take(files, wish, trigger="api", to_store=True)
    tasks.read_import(row.pk)
    row.refresh_from_db()
    assert (row.state, row.error) == ("done", "")
    assert row.preview["refused"] == [
        "b.json: line 1: the JSON that begins here is cut off; its end was expected"
    ]
    assert not Measurement.objects.exists()


def test_two_workers_read_it_once(wish: Wish) -> None:
    row = imports.take([large(rate(2, 60))], wish, trigger="api", to_store=True)
    assert life.run(row.pk) is True
    assert life.run(row.pk) is False
    assert Measurement.objects.count() == 1


def test_too_many_points_fail_the_import(wish: Wish) -> None:
    lines = "\n".join(['{"model_id": "m", "num_prompts": 1, "median_ttft_ms": 1}'] * 1001).encode()
    row = imports.take([large(rate(2, 60)), upload("b.json", lines)], wish, trigger="api", to_store=True)
    tasks.read_import(row.pk)
    row.refresh_from_db()
    error = "the files have 1,002 load points; at most 1,000 are read together"
    assert (row.state, row.error, row.preview) == ("failed", error, {})


def test_an_import_that_is_deleted_while_it_is_read_leaves_nothing(
    wish: Wish, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = imports.take([large(rate(2, 60))], wish, trigger="api", to_store=True)

    def deleting(name: str, data: bytes) -> Any:
        BenchImport.objects.all().delete()
        return read_file(name, data)

    monkeypatch.setattr("sizing.measuring.importing.life.read_file", deleting)
    assert life.run(row.pk) is True
    assert counts() == (0, 0, 0, 0)


def test_a_reading_that_breaks_off_fails_the_row(wish: Wish, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str, data: bytes) -> Any:
        raise MemoryError

    row = imports.take([large(rate(2, 60))], wish, trigger="api")
    monkeypatch.setattr("sizing.measuring.importing.life.read_file", broken)
    with pytest.raises(MemoryError):
        life.run(row.pk)
    row.refresh_from_db()
    assert (row.state, row.error) == ("failed", life.BROKE_OFF)


# The sweep --------------------------------------------------------------------------------------------


def test_a_lost_worker_s_import_is_read_by_another_and_fails_in_the_end(wish: Wish) -> None:
    row = imports.take([large(rate(2, 60))], wish, trigger="api")
    for attempt in (1, 2, 3):
        long_ago = timezone.now() - life.LEASE - timedelta(seconds=1)
        BenchImport.objects.update(state="running", attempts=attempt, heartbeat_at=long_ago)
        assert life.sweep() == 1
        row.refresh_from_db()
        assert row.state == ("queued" if attempt < 3 else "failed")
        assert life.waiting() == ([row.pk] if attempt < 3 else [])
    assert row.error == "the worker was lost 3 times"


def test_one_that_lives_is_left_alone(wish: Wish) -> None:
    imports.take([large(rate(2, 60))], wish, trigger="api")
    BenchImport.objects.update(state="running", heartbeat_at=timezone.now() - life.LEASE / 2)
    assert life.sweep() == 0


def test_what_nobody_stored_is_deleted_after_seven_days(wish: Wish) -> None:
    rows = [imports.take(right(), wish, trigger="api", to_store=stored) for stored in (True, False, False)]
    old = timezone.now() - life.KEPT
    BenchImport.objects.filter(pk__in=[row.pk for row in rows[:2]]).update(
        queued_at=old - timedelta(minutes=1)
    )
    BenchImport.objects.filter(pk=rows[2].pk).update(queued_at=old + timedelta(minutes=1))
    tasks.sweep_refreshes()
    assert set(BenchImport.objects.values_list("pk", flat=True)) == {rows[0].pk, rows[2].pk}
    assert Measurement.objects.get().files.count() == 3
    assert BenchFile.objects.filter(bench_import=rows[2]).count() == 3
    assert BenchFile.objects.count() == 6


# What is taken ----------------------------------------------------------------------------------------


def _never() -> AbstractContextManager[BinaryIO]:
    raise AssertionError("it was opened")


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([1] * 101, "101 files were given; at most 100 are taken at once"),
        ([50 * 1024 * 1024 + 1], "f0.json: at most 50 MiB were expected"),
        ([50 * 1024 * 1024] * 4 + [1], "the files have more than 200 MiB in all"),
    ],
)
def test_too_many_or_too_large_files_are_refused_before_they_are_opened(
    wish: Wish, sizes: list[int], message: str
) -> None:
    files = [Upload(f"f{i}.json", size, _never) for i, size in enumerate(sizes)]
    with pytest.raises(DeskError) as refused:
        imports.take(files, wish, trigger="api", to_store=True)
    assert (refused.value.message, refused.value.status, refused.value.code) == (message, 413, "too_large")
    assert counts() == (0, 0, 0, 0)


def test_no_file_at_all_is_refused(wish: Wish) -> None:
    with pytest.raises(DeskError, match="no file was given"):
        imports.take([], wish, trigger="api")


# What names mean --------------------------------------------------------------------------------------


def test_a_model_with_one_variant_and_a_default_profile_is_enough(wish: Wish) -> None:
    assert imports.wish("llama") == wish
    assert imports.wish("llama", "tp4", "chat", force=True) == Wish(wish.variant, wish.profile, force=True)


@pytest.mark.parametrize(
    ("names", "code", "status", "message"),
    [
        (("x",), "not_found", 404, 'no model "x"'),
        (("llama", "x"), "unknown_variant", 400, 'llama has no variant "x"; there are tp4'),
        (("llama", None, "x"), "unknown_profile", 400, 'no profile "x"; there are chat'),
        ((None, "tp4"), "invalid", 400, "a variant is one of a model: name the model too"),
        (
            (None, None, "chat"),
            "invalid",
            400,
            "name the model that was measured, its variant, and the bench profile",
        ),
    ],
)
def test_a_name_that_there_is_not_is_refused_with_those_there_are(
    wish: Wish, names: tuple[str | None, ...], code: str, status: int, message: str
) -> None:
    with pytest.raises(DeskError) as refused:
        imports.wish(*names)
    assert (refused.value.code, refused.value.status, refused.value.message) == (code, status, message)


def test_what_is_not_clear_has_to_be_named(wish: Wish) -> None:
    builders.variant(Variant.objects.get().model, "tp8")
    with pytest.raises(DeskError, match=r"name the variant of llama that was measured; there are tp4, tp8"):
        imports.wish("llama")
    other = builders.model("other")
    builders.variant(other)
    with pytest.raises(DeskError, match="other has no default profile; name one of chat"):
        imports.wish("other")


def test_an_older_measurement_does_not_hide_a_newer_one(wish: Wish) -> None:
    assert wish.variant is not None
    assert wish.profile is not None
    newer = builders.measurement(wish.variant, wish.profile, at=datetime(2025, 12, 1, tzinfo=UTC))
    stored = imports.take(right(), wish, trigger="api", to_store=True).measurement
    assert stored is not None
    assert imports.newer_than(stored) == newer
    assert imports.newer_than(newer) is None


def test_a_closed_loop_is_stored_with_its_label(wish: Wish) -> None:
    imports.take([upload("a.json", streams(8, 256, date=DATE))], wish, trigger="api", to_store=True)
    assert Measurement.objects.get().warnings == ["closed loop: chat says poisson; closed loop flatters"]


def test_a_small_file_that_unpacks_to_a_large_one_is_for_a_worker(wish: Wish) -> None:
    raw = json.dumps(rate(2, 60, date=DATE)).encode() + b" " * imports.LARGE_BYTES
    packed = gzip.compress(raw)
    assert len(packed) < 20_000
    row = imports.take([upload("a.json.gz", packed)], wish, trigger="api")
    assert (row.state, row.preview) == ("queued", {})
    life.run(row.pk)
    again = imports.read_again(row.pk, force=True, leave_out_broken=False)
    assert again.state == "queued"


def test_a_declared_time_is_kept_for_the_worker_and_for_another_look(wish: Wish) -> None:
    at = datetime(2025, 7, 1, tzinfo=UTC)
    row = imports.take([large(rate(2, 60, date=None))], replace(wish, measured_at=at), trigger="api")
    life.run(row.pk)
    imports.read_again(row.pk, force=True, leave_out_broken=False)
    life.run(row.pk)
    assert imports.store(row.pk).measured_at == at


def test_what_was_stored_before_is_told_with_its_measurement(wish: Wish) -> None:
    first = imports.take(right(), wish, trigger="api", to_store=True).measurement
    assert first is not None
    assert first.warnings == []
    line = f"a.json and 2 more: stored before, in measurement {first.pk} of 2025-06-30 10:00 UTC"
    again = imports.take(right(), wish, trigger="api")
    assert again.preview["warnings"] == [line]
    BenchImport.objects.filter(pk=again.pk).update(state="queued")
    life.run(again.pk)
    assert imports.store(again.pk).warnings == [line]
    other = builders.profile("other", input_tokens=64, output_tokens=32, ttft_ms=500, itl_ms=50)
    assert imports.take(right(), replace(wish, profile=other), trigger="api").preview["warnings"] == []
