"""The levels of a measurement as llm-d Benchmark Reports and as a table."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from sizing.measuring.files import read_results
from sizing.models import BenchLevel, BenchProfile, Measurement, ServedModel
from sizing.services import imports
from sizing.services.imports import Wish
from tests.api.conftest import LLAMA, Caller
from tests.imports.files import rate, slow
from tests.imports.test_storing import upload


@pytest.fixture
def measured(fleet: dict[str, Any]) -> Measurement:
    """A measurement of two levels from files."""
    BenchProfile.objects.update(input_tokens=64, output_tokens=32, ttft_ms=500, itl_ms=50)
    wish = Wish(fleet["variants"], BenchProfile.objects.get())
    files = [
        upload("a.json", rate(2, 60, date="20250630-100000")),
        upload("b.json", slow(rate(4, 80, date=None))),
    ]
    stored = imports.take(files, wish, trigger="api", to_store=True).measurement
    assert stored is not None
    return stored


def path(row: Measurement, query: str = "") -> str:
    return f"/api/v1/measurements/{row.pk}/report{query}"


@pytest.mark.parametrize("query", ["", "?as=llm-d", "/", "/?as=llm-d"])
def test_it_is_benchmark_reports_that_are_read_back_as_they_were(
    admin: APIClient, measured: Measurement, query: str
) -> None:
    answer = admin.get(path(measured, query))
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="measurement-{measured.pk}.json"'
    first, second = json.loads(answer.content)
    assert first["version"] == "0.2"
    assert (first["run"]["uid"], second["run"]["uid"]) == (
        f"measurement-{measured.pk}-0",
        f"measurement-{measured.pk}-1",
    )
    assert first["run"]["time"]["end"] == "2025-06-30T10:00:00Z"
    standard = first["scenario"]["load"]["standardized"]
    assert (standard["tool"], standard["rate_qps"]) == ("vllm bench serve", 2.0)
    again = read_results("report.json", answer.content)
    assert again.error is None
    assert [point.level for point in again.points] == [row.judged.level for row in measured.levels.all()]
    assert {point.model for point in again.points} == {LLAMA}


def test_it_is_a_table_too(admin: APIClient, measured: Measurement) -> None:
    answer = admin.get(path(measured, "?as=csv"))
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/csv; charset=utf-8")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="measurement-{measured.pk}.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [(row["model"], row["load"], row["tok_per_sec"], row["verdict"]) for row in rows] == [
        (LLAMA, "2.0", "60.0", "pass"),
        (LLAMA, "4.0", "80.0", "fail"),
    ]
    assert (rows[0]["ttft_p95_ms"], rows[0]["e2e_p95_ms"]) == ("60.0", "")


@pytest.mark.parametrize("name", ["=cmd()", "+1", "-1", "@sum"])
def test_a_name_that_a_sheet_would_take_for_a_formula_is_text(
    admin: APIClient, measured: Measurement, name: str
) -> None:
    ServedModel.objects.update(name=name)
    rows = list(csv.DictReader(io.StringIO(admin.get(path(measured, "?as=csv")).content.decode())))
    assert {row["model"] for row in rows} == {f"'{name}"}
    first = json.loads(admin.get(path(measured)).content)[0]
    assert first["scenario"]["load"]["native"]["config"]["llmgw-admin"]["model"] == name


def test_a_measurement_by_hand_has_no_levels_to_report(admin: APIClient, fleet: dict[str, Any]) -> None:
    row = fleet["measurements"]
    answer = admin.get(path(row))
    assert (answer.status_code, answer.json()) == (
        404,
        {
            "error": f"measurement {row.pk} has no levels to report: it was entered by hand",
            "code": "not_found",
        },
    )
    assert admin.get("/api/v1/measurements/999/report").json()["error"] == 'no measurement "999"'


@pytest.mark.parametrize("query", ["?as=xml", "?as=csv&as=csv", "?as=", "?format=csv"])
def test_another_form_is_a_400(admin: APIClient, measured: Measurement, query: str) -> None:
    answer = admin.get(path(measured, query))
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


def test_it_needs_leave_to_view_measurements(measured: Measurement, caller: Caller) -> None:
    assert caller("view_benchlevel", "add_measurement").get(path(measured)).status_code == 403
    assert caller("view_measurement").get(path(measured)).status_code == 200


def test_a_measurement_of_the_desk_s_own_says_what_was_asked(
    admin: APIClient, fleet: dict[str, Any], measured: Measurement
) -> None:
    own = fleet["measurements"]
    BenchLevel.objects.update(measurement=own)
    Measurement.objects.filter(pk=own.pk).update(
        generator="builtin 1.2", workload={"input_tokens": 64, "output_tokens": 32}
    )
    standard = json.loads(admin.get(path(own)).content)[0]["scenario"]["load"]["standardized"]
    assert (standard["tool"], standard["tool_version"]) == ("builtin", "1.2")
    assert standard["input_seq_len"] == {"distribution": "fixed", "value": 64}
    assert standard["output_seq_len"] == {"distribution": "fixed", "value": 32}
