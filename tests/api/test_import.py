"""Result files sent by form: looked at, stored, refused, or read by a worker."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from sizing import tasks
from sizing.api import parsers
from sizing.models import BenchFile, BenchImport, BenchProfile, InventoryChange, Measurement, Refresh
from sizing.models.history import way_of
from tests.api.conftest import LLAMA, Caller, send
from tests.imports.files import rate, slow

PATH = "/api/v1/measurements/import"
DATE = "20250630-100000"
SHOWN = (
    "files",
    "sweeps",
    "storable",
    "refused",
    "warnings",
    "levels",
    "slo",
    "measured_at",
    "declared_at",
)
CUT_OFF = "line 1: the JSON that begins here is cut off; its end was expected"
FOR_LLAMA = {"model": LLAMA, "variant": "h100-tp2", "profile": "chat"}


def file(name: str, document: Any, padding: int = 0) -> SimpleUploadedFile:
    raw = document if isinstance(document, bytes) else json.dumps(document).encode()
    return SimpleUploadedFile(name, raw + b" " * padding)


def right() -> list[SimpleUploadedFile]:
    return [file("a.json", rate(2, 60, date=DATE)), file("b.json", slow(rate(4, 80, date=DATE)))]


def post(client: APIClient, files: list[SimpleUploadedFile], slash: str = "", **fields: Any) -> Any:
    return client.post(PATH + slash, {"file": files, **fields}, format="multipart")


def written() -> Any:
    tables = (Measurement, BenchImport, BenchFile, InventoryChange)
    return [table.objects.count() for table in tables]


@pytest.fixture
def chat(fleet: dict[str, Any]) -> dict[str, Any]:
    """The fleet with a profile of the shape of the files, and nothing measured or imported."""
    BenchProfile.objects.update(input_tokens=64, output_tokens=32, ttft_ms=500, itl_ms=50)
    Measurement.objects.all().delete()
    BenchImport.objects.all().delete()
    return fleet


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_dry_run_shows_what_the_files_say_and_stores_nothing(
    admin: APIClient, chat: dict[str, Any], slash: str
) -> None:
    before = written()
    answer = post(admin, [*right(), file("c.json", b"{")], slash, dry_run="true")
    assert answer.status_code == 200
    body = answer.json()
    assert list(body) == list(SHOWN)
    assert [(f["file"], f["tool"], f["error"]) for f in body["files"]] == [
        ("a.json", "vllm bench serve", None),
        ("b.json", "vllm bench serve", None),
        ("c.json", None, f"c.json: {CUT_OFF}"),
    ]
    assert [f["points"][0]["verdict"] for f in body["files"][:2]] == ["pass", "fail"]
    assert body["sweeps"] == [
        {
            "arrival": "poisson",
            "levels": 2,
            "tok_per_sec": 60.0,
            "bound": "edge",
            "load": 2.0,
            "bracket": "60 tok/s; the next level tried, 80, failed",
            "warnings": [],
            "counts": False,
        }
    ]
    assert (body["storable"], body["refused"]) == (False, [f"c.json: {CUT_OFF}"])
    assert written() == before


@pytest.mark.parametrize("slash", ["", "/"])
def test_right_files_are_stored_at_once(admin: APIClient, chat: dict[str, Any], slash: str) -> None:
    answer = post(admin, right(), slash, **FOR_LLAMA)
    measured = Measurement.objects.get()
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"/api/v1/measurements/{measured.pk}"
    assert answer.json()["measurement"] == admin.get(answer.headers["Location"]).json()
    shown = answer.json()["measurement"]
    assert {key: shown[key] for key in ("model", "variant", "profile")} == FOR_LLAMA
    assert (shown["tok_per_sec"], shown["bound"], shown["slo_met"]) == (60.0, "edge", True)
    assert (shown["source"], shown["generator"]) == ("vllm", "vllm bench serve")
    assert shown["measured_at"] == "2025-06-30T10:00:00Z"
    assert [level["verdict"] for level in shown["levels"]] == ["pass", "fail"]
    assert answer.json()["preview"]["sweeps"][0]["counts"] is True
    row = BenchImport.objects.get()
    ada = get_user_model().objects.get(username="ada")
    assert (row.state, row.trigger, row.requested_by) == ("stored", "api", ada)
    told = LogEntry.objects.get(user=ada)
    assert (told.get_edited_object(), way_of(told)) == (measured, "API")
    assert [kept.name for kept in measured.files.all()] == ["a.json", "b.json"]


def test_no_body_at_all_is_told_what_is_missing(admin: APIClient) -> None:
    answer = send(admin, "POST", "/api/v1/measurements/import", b"", "")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert "file" in answer.json()["fields"]


def test_a_broken_file_refuses_all_by_its_name(admin: APIClient, chat: dict[str, Any]) -> None:
    before = written()
    files = [*right(), file("c.json", b"{"), file("c.json", b"<html>")]
    answer = post(admin, files, **FOR_LLAMA)
    assert (answer.status_code, answer.json()) == (
        400,
        {
            "error": "2 things are not right; nothing was stored",
            "code": "invalid",
            "fields": {
                "c.json": [f"c.json: {CUT_OFF}"],
                "c.json (2)": ["c.json (2): line 1: JSON or a printed result was expected"],
            },
        },
    )
    assert written() == before
    answer = post(admin, [*right(), file("c.json", b"{")], **FOR_LLAMA, leave_out_broken="true")
    assert answer.status_code == 201
    assert answer.json()["measurement"]["warnings"] == [f"left out: c.json: {CUT_OFF}"]


def test_another_shape_is_refused_unless_forced(admin: APIClient, chat: dict[str, Any]) -> None:
    BenchProfile.objects.update(input_tokens=1024)
    answer = post(admin, right()[:1], **FOR_LLAMA)
    line = "other shape: 64 input tokens a request where chat has 1,024"
    assert (answer.status_code, answer.json()["fields"]) == (400, {"a.json": [f"a.json: {line}"]})
    assert not Measurement.objects.exists()
    answer = post(admin, right()[:1], **FOR_LLAMA, force="true")
    assert (answer.status_code, answer.json()["measurement"]["warnings"]) == (201, [line])


@pytest.mark.parametrize(
    ("fields", "status", "code", "error"),
    [
        ({"model": "no"}, 404, "not_found", 'no model "no"'),
        (
            {"model": LLAMA},
            400,
            "unknown_variant",
            f"name the variant of {LLAMA} that was measured; there are h100-tp2, h100-x1",
        ),
        (
            {"model": LLAMA, "variant": "no"},
            400,
            "unknown_variant",
            f'{LLAMA} has no variant "no"; there are h100-tp2, h100-x1',
        ),
        (
            {"model": LLAMA, "variant": "h100-tp2", "profile": "no"},
            400,
            "unknown_profile",
            'no profile "no"; there are chat',
        ),
        ({}, 400, "invalid", "name the model that was measured, its variant, and the bench profile"),
    ],
)
def test_names_that_there_are_not_are_told(
    admin: APIClient, chat: dict[str, Any], fields: dict[str, str], status: int, code: str, error: str
) -> None:
    answer = post(admin, right(), **fields)
    assert (answer.status_code, answer.json()["code"], answer.json()["error"]) == (status, code, error)
    assert not BenchImport.objects.exists()


@pytest.mark.parametrize(
    ("fields", "problems"),
    [
        ({"modell": "x"}, {"modell": ["there is no such key"]}),
        ({"dry_run": "yes"}, {"dry_run": ["must be true or false"]}),
        ({"force": "1", "dry_run": "true"}, {"force": ["must be true or false"]}),
        ({"model": ["a", "b"]}, {"model": ["is given more than once"]}),
        ({"model": "a\nb"}, {"model": ["must not have control characters"]}),
    ],
)
def test_a_wrong_field_is_a_400_that_names_it(
    admin: APIClient, chat: dict[str, Any], fields: dict[str, Any], problems: dict[str, list[str]]
) -> None:
    answer = post(admin, right(), **fields)
    assert (answer.status_code, answer.json()["code"], answer.json()["fields"]) == (400, "invalid", problems)
    assert not BenchImport.objects.exists()


def test_a_form_without_a_file_is_a_400(admin: APIClient, chat: dict[str, Any]) -> None:
    for form in ({"model": LLAMA}, {"file": "text"}):
        answer = admin.post(PATH, form, format="multipart")
        assert answer.status_code == 400
        assert [path.partition("[")[0] for path in answer.json()["fields"]] == ["file"]


def test_an_empty_file_is_told_to_be_empty(admin: APIClient, chat: dict[str, Any]) -> None:
    answer = post(admin, [file("a.json", b"")], **FOR_LLAMA)
    assert answer.json()["fields"] == {
        "a.json": ["a.json: the file is empty; a load generator's result was expected"]
    }


def test_a_parameter_of_the_query_is_refused(admin: APIClient, chat: dict[str, Any]) -> None:
    answer = admin.post(f"{PATH}?dry_run=true", {"file": right()}, format="multipart")
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["dry_run"])
    assert not Measurement.objects.exists()


def test_only_a_form_is_taken(admin: APIClient, chat: dict[str, Any]) -> None:
    for media_type in ("application/json", "application/x-www-form-urlencoded", "text/plain"):
        assert send(admin, "POST", PATH, b"{}", media_type).status_code == 415
    broken = send(admin, "POST", PATH, b"--x\r\nnothing", "multipart/form-data; boundary=x")
    assert (broken.status_code, list(broken.json()["fields"])) == (400, ["file"])
    assert send(admin, "POST", PATH, b"x", "multipart/form-data").status_code == 400
    chunked: Any = {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}
    answer = send(admin, "POST", PATH, b"", "multipart/form-data; boundary=x", **chunked)
    assert answer.json()["error"] == "send the body with its Content-Length"


def test_names_of_files_are_labels(admin: APIClient, chat: dict[str, Any]) -> None:
    head = b"--x\r\nContent-Disposition: form-data; name="
    name = "../../etc/p\u202eq".encode()
    body = (
        head + b'"file"; filename="' + name + b'"\r\n\r\n{\r\n' + head + b'"dry_run"\r\n\r\ntrue\r\n--x--\r\n'
    )
    answer = send(admin, "POST", PATH, body, "multipart/form-data; boundary=x")
    assert answer.json()["files"][0]["error"] == f"pq: {CUT_OFF}"


# Large ones -------------------------------------------------------------------------------------------


def test_a_large_upload_is_queued_and_followed_until_it_is_stored(
    admin: APIClient, chat: dict[str, Any], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks() as callbacks:
        answer = post(admin, [file("a.json", rate(2, 60, date=DATE), 6_000_000)], **FOR_LLAMA)
    row = BenchImport.objects.get()
    assert (answer.status_code, answer.headers["Location"]) == (202, f"/api/v1/imports/{row.pk}")
    assert len(callbacks) == 1
    assert admin.get(answer.headers["Location"]).json() == answer.json()
    body = answer.json()
    kept = BenchFile.objects.get()
    assert body == {
        "id": row.pk,
        **FOR_LLAMA,
        "force": False,
        "leave_out_broken": False,
        "store_when_right": True,
        "state": "queued",
        "trigger": "api",
        "requested_by": "ada",
        "progress": 0,
        "files": [{"name": "a.json", "size": kept.size, "sha256": kept.sha256}],
        "measurement": None,
        "queued_at": body["queued_at"],
        "finished_at": None,
        "error": "",
        "preview": None,
    }
    tasks.read_import(row.pk)
    body = admin.get(answer.headers["Location"]).json()
    assert (body["state"], body["progress"]) == ("stored", 100)
    assert body["measurement"] == Measurement.objects.get().pk
    assert body["preview"]["sweeps"][0]["tok_per_sec"] == 60.0
    assert body["files"] == [{"name": "a.json", "size": kept.size, "sha256": kept.sha256}]


def test_a_large_dry_run_is_looked_at_and_can_then_be_stored(admin: APIClient, chat: dict[str, Any]) -> None:
    answer = post(admin, [file("a.json", rate(2, 60), 6_000_000)], **FOR_LLAMA, dry_run="true")
    location = answer.headers["Location"]
    assert answer.status_code == 202
    early = admin.post(f"{location}/store")
    assert (early.status_code, early.json()["code"]) == (409, "conflict")
    tasks.read_import(answer.json()["id"])
    body = admin.get(location).json()
    assert (body["state"], body["measurement"], body["preview"]["storable"]) == ("done", None, True)
    for slash in ("/", ""):
        stored = admin.post(f"{location}/store{slash}")
        if slash:
            assert stored.status_code == 201
            assert stored.headers["Location"] == f"/api/v1/measurements/{Measurement.objects.get().pk}"
            assert stored.json()["measurement"]["tok_per_sec"] == 60.0
        else:
            assert (stored.status_code, stored.json()) == (
                409,
                {"error": f"import {answer.json()['id']} is stored already", "code": "conflict"},
            )
    assert Measurement.objects.count() == 1


def test_an_import_that_there_is_not_is_a_404(admin: APIClient) -> None:
    for method, path in (("get", "imports/7"), ("post", "imports/7/store"), ("get", "imports/x")):
        answer = getattr(admin, method)(f"/api/v1/{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_imports_can_be_filtered(admin: APIClient, chat: dict[str, Any]) -> None:
    post(admin, right(), **FOR_LLAMA)
    for query, count in (
        ("state=stored", 1),
        ("state=queued", 0),
        (f"model={LLAMA}", 1),
        ("trigger=admin", 0),
    ):
        assert admin.get(f"/api/v1/imports?{query}").json()["count"] == count
    (shown,) = admin.get("/api/v1/imports").json()["results"]
    assert "preview" not in shown
    assert [kept["name"] for kept in shown["files"]] == ["a.json", "b.json"]


# Too large --------------------------------------------------------------------------------------------


def test_an_upload_that_is_too_large_is_a_413(
    admin: APIClient, chat: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = written()
    files = [file(f"{i}.json", b"{") for i in range(101)]
    answer = post(admin, files, **FOR_LLAMA)
    assert (answer.status_code, answer.json()) == (
        413,
        {"error": "too many files were given; at most 100 are taken at once", "code": "too_large"},
    )
    monkeypatch.setattr(parsers, "LARGEST_UPLOAD", 2 * 1024 * 1024)
    answer = post(admin, [file("a.json", b"{", 3_000_000)], **FOR_LLAMA)
    assert (answer.status_code, answer.json()) == (
        413,
        {"error": "the upload is larger than 1 MiB", "code": "too_large"},
    )
    assert written() == before


def test_a_file_that_is_too_large_is_named(
    admin: APIClient, chat: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from sizing.services import imports

    monkeypatch.setattr(imports, "MOST_FILE_BYTES", 1024 * 1024)
    answer = post(admin, [*right(), file("big.json", b"{", 1024 * 1024)], **FOR_LLAMA)
    line = "big.json: at most 1 MiB were expected"
    assert (answer.status_code, answer.json()) == (
        413,
        {"error": line, "code": "too_large", "fields": {"big.json": [line]}},
    )
    assert not BenchImport.objects.exists()


# Who may ----------------------------------------------------------------------------------------------


def test_files_are_taken_from_who_may_add_measurements(chat: dict[str, Any], caller: Caller) -> None:
    others = caller("view_measurement", "change_measurement", "delete_measurement", "view_benchimport")
    before = written()
    for fields in ({}, {"dry_run": "true"}):
        answer = post(others, right(), **FOR_LLAMA, **fields)
        assert (answer.status_code, answer.json()) == (
            403,
            {
                "error": "you may not add measurements: the permission sizing.add_measurement is missing",
                "code": "forbidden",
            },
        )
    assert post(APIClient(), right(), **FOR_LLAMA).status_code == 401
    assert written() == before
    assert post(caller("add_measurement"), right(), **FOR_LLAMA).status_code == 201


def test_a_session_without_a_csrf_token_changes_nothing(chat: dict[str, Any]) -> None:
    user = get_user_model().objects.create_superuser("eve", password="x")
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(user)
    before = written()
    assert post(client, right(), **FOR_LLAMA).status_code == 403
    assert written() == before
    client = APIClient()
    client.force_login(user)
    assert post(client, right(), **FOR_LLAMA).status_code == 201


def test_to_store_what_was_found_needs_leave_to_add_measurements(
    chat: dict[str, Any], caller: Caller
) -> None:
    adder = caller("add_measurement", "view_measurement")
    location = post(adder, [file("a.json", rate(2, 60), 6_000_000)], **FOR_LLAMA, dry_run="true").headers[
        "Location"
    ]
    tasks.read_import(BenchImport.objects.get().pk)
    viewer = caller("view_measurement")
    assert viewer.get(location).status_code == 200
    assert viewer.post(f"{location}/store").status_code == 403
    assert BenchImport.objects.get().state == "done"
    assert adder.post(f"{location}/store").status_code == 201


def test_an_import_is_looked_at_by_who_may_view_measurements(fleet: dict[str, Any], caller: Caller) -> None:
    client = caller("view_benchimport", "add_measurement")
    for path in ("imports", f"imports/{fleet['imports'].pk}"):
        assert client.get(f"/api/v1/{path}").status_code == 403


# How much work ----------------------------------------------------------------------------------------


def test_more_levels_take_no_more_queries(admin: APIClient, chat: dict[str, Any]) -> None:
    def queries(levels: int) -> int:
        text = "\n".join(json.dumps(rate(1 + i, 10 + i)) for i in range(levels)).encode()
        with CaptureQueriesContext(connection) as captured:
            assert post(admin, [file("a.json", text)], **FOR_LLAMA).status_code == 201
        return len(captured)

    queries(3)  # the first one also reads what is kept from one request to the next
    assert queries(2) == queries(40) <= 32


def test_a_refresh_and_other_measurements_are_left_alone(admin: APIClient, chat: dict[str, Any]) -> None:
    kept = list(Refresh.objects.values())
    hand = Measurement.objects.create(
        variant=chat["variants"],
        profile=chat["profiles"],
        tok_per_sec=Decimal(5),
        measured_at="2026-01-01T00:00Z",
    )
    before = Measurement.objects.filter(pk=hand.pk).values().get()
    post(admin, right(), **FOR_LLAMA)
    assert list(Refresh.objects.values()) == kept
    assert Measurement.objects.filter(pk=hand.pk).values().get() == before


def test_a_dry_run_and_a_stored_preview_have_the_same_form(admin: APIClient, chat: dict[str, Any]) -> None:
    dry = post(admin, right(), dry_run="true", **FOR_LLAMA).json()
    stored = post(admin, right(), **FOR_LLAMA).json()["preview"]
    assert dry == stored
    assert set(dry) == set(SHOWN)
    assert [(level["file"], level["verdict"]) for level in dry["levels"]] == [
        ("a.json", "pass"),
        ("b.json", "fail"),
    ]
    assert dry["slo"] == {"ttft_ms": 500.0, "itl_ms": 50.0, "e2e_ms": None, "percentile": 95.0}
    assert (dry["measured_at"], dry["declared_at"]) == ("2025-06-30T10:00:00+00:00", None)


def test_the_time_of_files_that_do_not_say_it_may_be_declared(admin: APIClient, chat: dict[str, Any]) -> None:
    undated = [file("a.json", rate(2, 60, date=None))]
    answer = post(admin, undated, **FOR_LLAMA, measured_at="2025-06-30T10:00:00+02:00")
    assert (answer.status_code, answer.json()["measurement"]["measured_at"]) == (201, "2025-06-30T08:00:00Z")
    answer = post(admin, right(), **FOR_LLAMA, measured_at="soon")
    assert (answer.status_code, answer.json()["fields"]) == (
        400,
        {"measured_at": ["the time of a measurement was expected in ISO 8601, like 2026-11-30T14:05Z"]},
    )


def test_nothing_is_shown_of_an_import_with_a_declared_time_before_it_is_read(
    admin: APIClient, chat: dict[str, Any]
) -> None:
    large = [file("a.json", rate(2, 60, date=None), 6_000_000)]
    answer = post(admin, large, **FOR_LLAMA, measured_at="2025-06-30")
    assert (answer.status_code, answer.json()["preview"]) == (202, None)
