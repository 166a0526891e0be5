"""The llm-d Benchmark Report, written and read, and the table."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sizing.domain.levels import CONCURRENCY, POISSON, Level, Spread
from sizing.measuring.files import DEFAULT_SLO, Meta, levels_csv, report_json, reports
from tests.files.builders import only, read

META = Meta(
    "m-7",
    "sim-8b",
    tool="builtin",
    tool_version="1",
    input_tokens=64,
    output_tokens=32,
    started_at="2026-11-30T10:00:00Z",
    ended_at="2026-11-30T10:05:00Z",
)

OPEN = Level(
    arrival=POISSON,
    load=7.5,
    tok_per_sec=240.5,
    duration_s=12.25,
    sent=90,
    completed=89,
    failed=1,
    cut=3,
    conform=88,
    requests_per_sec=7.4,
    sent_per_sec=7.45,
    delay_p95_s=-0.001,
    input_tokens=64.5,
    output_tokens=32.0,
    ttft=Spread(40.0, {50.0: 39.0, 95.0: 60.0, 99.0: 70.0}),
    tpot=Spread(28.0, {50.0: 28.0, 95.0: 29.0, 99.0: 30.0}),
    e2e=Spread(908.0, {50.0: 900.0, 95.0: 959.0, 99.0: 1000.0}),
    all_tokens=3100.0,
    streamed=True,
    counted=True,
    failures={"HTTP 503": 1},
    warnings=("foreign traffic",),
)

CLOSED = Level(
    arrival=CONCURRENCY,
    load=8.0,
    tok_per_sec=256.0,
    completed=80,
    ttft=Spread(None, {50.0: 39.0, 99.0: 70.0}),
    streamed=True,
    cancelled=True,
)


def test_what_is_written_reads_back_to_the_same_levels():
    result = read(report_json([OPEN, CLOSED], META))
    assert result.tool == "llm-d Benchmark Report"
    assert [point.level for point in result.points] == [OPEN, CLOSED]
    assert [point.place for point in result.points] == ["[0]", "[1]"]
    assert {point.model for point in result.points} == {"sim-8b"}


def test_a_report_is_one_level_of_the_measurement_that_is_its_experiment():
    first, second = reports([OPEN, CLOSED], META)
    assert (first["version"], first["run"]["uid"], first["run"]["eid"]) == ("0.2", "m-7-0", "m-7")
    assert second["scenario"]["load"]["standardized"]["stage"] == 1
    assert first["scenario"]["load"]["standardized"]["rate_qps"] == 7.5
    assert second["scenario"]["load"]["standardized"]["concurrency"] == 8
    aggregate = first["results"]["request_performance"]["aggregate"]
    assert (aggregate["requests"]["total"], aggregate["requests"]["failures"]) == (93, 1)
    assert aggregate["latency"]["time_per_output_token"] == {
        "units": "ms/token",
        "mean": 28.0,
        "p50": 28.0,
        "p95": 29.0,
        "p99": 30.0,
    }
    assert aggregate["throughput"]["output_token_rate"] == {"units": "tokens/s", "mean": 240.5}


def foreign(**changes: Any) -> dict[str, Any]:
    statistics = {"units": "s", "mean": 0.04, "p50": 0.04, "p95": 0.06, "p99p9": 0.09}
    return {
        "version": "0.2.1",
        "run": {"uid": "x", "time": {"duration": "PT49.5S"}},
        "scenario": {
            "stack": [{"standardized": {"kind": "x"}}, {"standardized": {"model": {"name": "org/model"}}}],
            "load": {"standardized": {"rate_qps": 10.0, "concurrency": None}},
        },
        "results": {
            "request_performance": {
                "aggregate": {
                    "requests": {"total": 500, "failures": 2, "incomplete": 1},
                    "latency": {
                        "time_to_first_token": statistics,
                        "time_per_output_token": {"units": "s/token", "mean": 0.028},
                    },
                    "throughput": {"output_token_rate": {"units": "tokens/s", "mean": 320.0}},
                }
            }
        },
        **changes,
    }


def test_a_report_of_another_desk_is_read_by_the_schema_alone():
    point = only(foreign())
    level = point.level
    assert (point.model, point.output_tok_s) == ("org/model", 320.0)
    assert (level.arrival, level.load, level.duration_s) == (POISSON, 10.0, 49.5)
    assert (level.completed, level.failed, level.cut, level.sent) == (497, 2, 1, 499)
    assert level.ttft == Spread(40.0, {50.0: 40.0, 95.0: 60.0, 99.9: 90.0})
    assert level.tpot == Spread(28.0, {})


def test_another_version_or_unit_is_refused():
    assert read(foreign(version="0.3")).error == (
        'result.json: version: version 0.2 or 0.2.1 of the Benchmark Report was expected, "0.3" found'
    )
    text = json.dumps(foreign()).replace("s/token", "min/token")
    assert read(text).error == (
        "result.json: results.request_performance.aggregate.latency.time_per_output_token.units: "
        's, ms, s/token or ms/token was expected, "min/token" found'
    )


YAML = """\
version: '0.2'
run:
  uid: abc
  time: {start: 2026-11-30T10:00:00Z}
scenario:
  load:
    standardized: {concurrency: .inf, rate_qps: 1.0e+1}
results:
  request_performance:
    aggregate:
      requests: {total: 80, failures: 0}
      latency:
        time_to_first_token: {units: ms, mean: 40.0, p95: 60}
      throughput:
        output_token_rate: {units: tokens/s, mean: 256}
"""


def test_a_report_in_yaml_is_read():
    point = only(YAML)
    assert (point.level.arrival, point.level.load, point.concurrency) == (POISSON, 10.0, None)
    assert point.level.ttft == Spread(40.0, {95.0: 60.0})
    assert (point.output_tok_s, point.level.sent) == (256.0, 80)
    two = read(f"{YAML}---\n{YAML}")
    assert [point.place for point in two.points] == ["line 1", "line 17"]


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        ("PT12.25S", 12.25),
        ("PT10M", 600.0),
        ("PT1H2M3S", 3723.0),
        ("P1DT1S", 86_401.0),
        ("PT", None),
        ("P", None),
        ("ten", None),
    ],
)
def test_a_runs_duration_may_be_in_any_unit_up_to_days(duration, seconds):
    text = YAML.replace("time: {", f"time: {{duration: {duration}, ")
    assert only(text).level.duration_s == seconds


def test_a_version_that_yaml_takes_for_a_number_is_that_version():
    assert only(YAML.replace("'0.2'", "0.2")).tool == "llm-d Benchmark Report"
    assert read(YAML.replace("'0.2'", "0.3")).error == (
        "result.json: version: version 0.2 or 0.2.1 of the Benchmark Report was expected, 0.3 found"
    )


def test_a_rate_beside_streams_that_was_not_reached_is_a_closed_loop():
    asked = YAML.replace("concurrency: .inf", "concurrency: 8")
    achieved = "request_rate: {units: queries/s, mean: 5.0}"
    level = only(f"{asked}        {achieved}\n").level
    assert (level.arrival, level.load, level.requests_per_sec) == (CONCURRENCY, 8.0, 5.0)
    assert only(f"{asked}        {achieved.replace('5.0', '9.5')}\n").level.arrival == POISSON


def test_yaml_of_more_than_256_kib_is_not_read():
    assert read(f"{YAML}# {'x' * 256 * 1024}").error == (
        "result.json: larger than 256 KiB, the most that is read as YAML"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (YAML + "a: &x [1]\nb: *x\n", "line 17: an alias, which is not read"),
        (YAML + "a: " + "[" * 65 + "]" * 65, "line 16: nested more than 64 deep"),
        (YAML + "run: 5\n", 'line 16: "run" stands twice in one object'),
        (YAML + "a: [1\n", "line 17: YAML was expected (did not find expected ',' or ']')"),
        (YAML + "a: !!python/object:os.system x\n", None),
    ],
)
def test_yaml_stands_for_plain_values_only(text, why):
    assert read(text).error == (None if why is None else f"result.json: {why}")


def test_the_table_has_a_line_for_each_level_with_its_verdict():
    lines = levels_csv([OPEN, CLOSED], META, DEFAULT_SLO).splitlines()
    assert lines[0].startswith("model,arrival,load,tok_per_sec,requests_per_sec,duration_s,sent,completed")
    assert lines[1].startswith("sim-8b,poisson,7.5,240.5,7.4,12.25,90,89,1,88,64.5,32.0,40.0,39.0,60.0,70.0")
    assert lines[2].endswith(",invalid,the run was cancelled")
    assert len({line.count(",") for line in lines[:1] + lines[2:]}) == 1
