"""When files say that they were measured."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from sizing.measuring.files import Meta, reports
from sizing.measuring.importing import consider, declared_time, read_file
from sizing.measuring.importing.finding import UNDATED, finding
from tests.files import builders
from tests.imports.files import CHAT, LOOPED, rate, read, streams

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


def told(document: Any) -> datetime | None:
    raw = document if isinstance(document, bytes) else json.dumps(document).encode()
    found = read_file("a.json", raw)
    assert found.result.error is None
    return found.ended_at


@pytest.mark.parametrize(
    ("document", "moment"),
    [
        (builders.vllm(date="20261130-114610"), datetime(2026, 11, 30, 11, 46, 10, tzinfo=UTC)),
        (builders.inferencex(date="20260213-075258"), datetime(2026, 2, 13, 7, 52, 58, tzinfo=UTC)),
        (
            builders.aiperf(start_time="2026-11-30T11:11:29.613755", end_time="2026-11-30T11:11:36.5"),
            datetime(2026, 11, 30, 11, 11, 36, 500000, tzinfo=UTC),
        ),
        (
            builders.guidellm(
                builders.guidellm_benchmark(start_time=1796039013.75, end_time=1796039021.5),
                builders.guidellm_benchmark(start_time=1796039030.75, end_time=1796039040.5),
            ),
            datetime.fromtimestamp(1796039040.5, UTC),
        ),
        (builders.llmperf(timestamp=1704851704), datetime.fromtimestamp(1704851704, UTC)),
        (builders.vllm(date="99999999-999999"), None),
        (builders.vllm(date="19700101-000000"), None),
        (builders.inference_perf(), None),
        (builders.vllm(date=None, note='a "date": "20261130-114610" in a text'), None),
        (builders.VLLM_CONSOLE.encode(), None),
    ],
)
def test_the_latest_moment_of_a_file_is_found(document: Any, moment: datetime | None) -> None:
    assert told(document) == moment


def test_a_packed_file_tells_it_too() -> None:
    packed = gzip.compress(json.dumps(builders.vllm(date="20261130-114610")).encode())
    assert told(packed) == datetime(2026, 11, 30, 11, 46, 10, tzinfo=UTC)


def found(**documents: Any) -> dict[str, Any]:
    form = finding(consider(read(**documents), CHAT), NOW)
    assert form is not None
    return form


def test_a_measurement_is_as_old_as_the_latest_of_its_files() -> None:
    form = found(a=rate(2, 60, date="20261129-100000"), b=rate(4, 120, date="20261130-100000"))
    assert form["measured_at"] == "2026-11-30T10:00:00+00:00"
    assert form["warnings"] == []


def test_a_file_that_does_not_count_does_not_date_it() -> None:
    form = found(a=rate(2, 60, date="20261129-100000"), b=streams(8, 256, date="20261130-100000"))
    assert form["measured_at"] == "2026-11-29T10:00:00+00:00"


def test_a_clock_that_is_ahead_counts_as_now_and_is_said() -> None:
    form = found(a=rate(2, 60, date="20261201-210000"))
    assert form["measured_at"] == NOW.isoformat()
    assert form["warnings"] == [
        "a.json says 2026-12-01 21:00 UTC, which is in the future; the time of the import counts"
    ]


def test_without_any_moment_it_is_now_and_said() -> None:
    form = found(a=rate(2, 60, date=None))
    assert (form["measured_at"], form["warnings"]) == (NOW.isoformat(), [UNDATED])


def test_what_is_stored_says_where_it_is_from() -> None:
    files = read(a=streams(8, 256, date="20261130-100000"), b=streams(16, 400, date="20261130-101000"))
    form = finding(consider(files, LOOPED), NOW)
    assert form is not None
    levels = form.pop("levels")
    assert form == {
        "asked": LOOPED.as_dict(),
        "tok_per_sec": 400.0,
        "bound": "floor",
        "bracket": "at least 400 tok/s; no higher level was tried",
        "source": "vllm",
        "generator": "vllm bench serve",
        "measured_at": "2026-11-30T10:10:00+00:00",
        "warnings": [],
        "workload": {
            "input_tokens": 64,
            "output_tokens": 32,
            "arrival": "concurrency",
            "files": ["a.json", "b.json"],
            "slo": {"ttft_ms": 500.0, "itl_ms": 50.0, "e2e_ms": None, "percentile": 95.0},
        },
    }
    assert [(level["verdict"], level["observed"]["load"]) for level in levels] == [
        ("pass", 8.0),
        ("pass", 16.0),
    ]


def test_nothing_that_a_database_refuses_is_kept() -> None:
    document = builders.vllm(model_id="a\0b\ud800")
    form = finding(consider(read(a=document), LOOPED), NOW)
    assert "\\u0000" not in json.dumps(form)
    assert "\\ud800" not in json.dumps(form)


def report_yaml(end: str) -> bytes:
    level = replace(builders.only(streams(8, 256)).level, warnings=())
    (report,) = reports([level], Meta("sim", NOW.isoformat(), NOW.isoformat()))
    report["run"]["time"] = {"start": "2026-11-30T09:00:00Z"}
    plain = json.loads(json.dumps(report))  # no object twice, so no aliases
    return yaml.safe_dump(plain).replace("start: '2026-11-30T09:00:00Z'", end).encode()


@pytest.mark.parametrize(
    "end",
    ["end: 2026-11-30T10:00:00Z", "end: '2026-11-30 10:00:00'", '"end": "2026-11-30T11:00:00+01:00"  # done'],
)
def test_a_report_in_yaml_tells_it_too(end: str) -> None:
    assert told(report_yaml(end)) == datetime(2026, 11, 30, 10, tzinfo=UTC)


DECLARED = datetime(2026, 11, 1, tzinfo=UTC)


def declared(date: str | None) -> tuple[str, list[str]]:
    form = finding(consider(read(a=rate(2, 60, date=date)), CHAT, declared=DECLARED), NOW)
    assert form is not None
    return form["measured_at"], form["warnings"]


def test_a_declared_time_counts_only_where_the_files_say_none_that_can_be() -> None:
    assert declared(None) == ("2026-11-01T00:00:00+00:00", [])
    assert declared("20261130-100000") == ("2026-11-30T10:00:00+00:00", [])
    assert declared("20270101-000000") == (
        "2026-11-01T00:00:00+00:00",
        ["a.json says 2027-01-01 00:00 UTC, which is in the future; the declared time counts"],
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("yesterday", "the time of a measurement was expected in ISO 8601, like 2026-11-30T14:05Z"),
        (
            "0001-01-01T00:00+14:00",
            "the time of a measurement was expected in ISO 8601, like 2026-11-30T14:05Z",
        ),
        ("2026-12-01T12:01Z", "a time of measurement that has passed was expected, not 2026-12-01 12:01 UTC"),
        ("2019-12-31", "a time of measurement from 2020 on was expected"),
    ],
)
def test_what_cannot_be_the_time_of_a_measurement_is_refused(text: str, line: str) -> None:
    with pytest.raises(ValueError, match=f"^{line}$"):
        declared_time(text, NOW)


def test_a_declared_time_without_a_zone_is_in_utc() -> None:
    assert declared_time("2026-11-30 14:05", NOW) == datetime(2026, 11, 30, 14, 5, tzinfo=UTC)
    assert declared_time("2026-11-30T14:05+02:00", NOW) == datetime(2026, 11, 30, 12, 5, tzinfo=UTC)
