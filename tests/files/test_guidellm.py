"""GuideLLM's reports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sizing.domain.levels import CONCURRENCY, POISSON, Spread, Verdict, judge
from sizing.measuring.files import DEFAULT_SLO, FileRefused, all_warnings, points_form, read_guidellm
from tests.files.builders import (
    by_outcome,
    distribution,
    guidellm,
    guidellm_0_2,
    guidellm_benchmark,
    only,
    read,
)


def changed(**metrics: Any) -> dict[str, Any]:
    benchmark = guidellm_benchmark()
    return guidellm({**benchmark, "metrics": {**benchmark["metrics"], **metrics}})


def strategy(**values: Any) -> dict[str, Any]:
    benchmark = guidellm_benchmark()
    return guidellm({**benchmark, "config": {**benchmark["config"], "strategy": values}})


def test_tokens_of_unfinished_requests_count_and_tpot_is_without_the_first_token():
    point = only(guidellm())
    assert point.tool == "guidellm 0.8.1"
    assert (point.level.arrival, point.level.load) == (CONCURRENCY, 8.0)
    assert (point.level.tok_per_sec, point.output_tok_s) == (256.0, 256.0)
    assert point.said["output_tok_s_successful_only"] == 250.0
    assert point.level.tpot == Spread(28.0, {50.0: 28.0, 90.0: 29.0, 95.0: 29.0, 99.0: 30.0})


def test_request_latency_is_in_seconds_and_the_others_in_milliseconds():
    level = only(guidellm()).level
    assert level.e2e.at[95.0] == 959.0
    assert level.ttft.at[95.0] == 60.0


def test_requests_are_counted_in_the_measured_part_of_the_run():
    level = only(guidellm()).level
    assert (level.sent, level.completed, level.failed, level.cut) == (80, 80, 0, 2)


def test_a_report_without_metadata_has_the_median_beside_its_percentiles():
    point = only(guidellm_0_2())
    assert (point.tool, point.model, point.said["strategy"]) == ("guidellm", "sim-8b", "constant")
    assert (point.level.arrival, point.level.load, point.concurrency) == (POISSON, 8.0, None)
    assert point.level.ttft.at[50.0] == 40.0
    assert point.level.cut == 2


def test_reports_of_version_1_read_as_those_of_version_2():
    assert only(guidellm(version=1)).level == only(guidellm(version=2)).level


def test_an_unknown_schema_is_refused_by_its_place():
    assert read(guidellm(version=3)).error == (
        "result.json: metadata.version: schema 1 or 2 of GuideLLM was expected, 3 found"
    )


def test_each_benchmark_is_a_point_in_the_order_of_the_file():
    result = read(guidellm(guidellm_benchmark(), guidellm_benchmark(duration=20.0)))
    assert [point.place for point in result.points] == ["benchmarks[0]", "benchmarks[1]"]
    assert [point.level.duration_s for point in result.points] == [10.0, 20.0]


@pytest.mark.parametrize(
    ("values", "arrival", "load"),
    [
        ({"type_": "synchronous"}, CONCURRENCY, 1.0),
        ({"type_": "throughput", "max_concurrency": None}, CONCURRENCY, None),
        ({"type_": "throughput", "max_concurrency": 64}, CONCURRENCY, 64.0),
        ({"type_": "poisson", "rate": 2.5, "max_concurrency": 10240}, POISSON, 2.5),
        ({"type_": "constant", "rate": 2.5}, POISSON, 2.5),
    ],
)
def test_the_strategy_tells_the_arrival_and_the_load(values, arrival, load):
    level = only(strategy(**values)).level
    assert (level.arrival, level.load) == (arrival, load)


def test_a_cap_that_was_reached_is_a_warning_and_one_that_was_not_is_none():
    reached = only(strategy(type_="poisson", rate=8.5, max_concurrency=8))
    assert any("held requests back" in warning for warning in reached.level.warnings)
    assert (reached.level.arrival, reached.level.load) == (POISSON, 8.5)
    held = only(strategy(type_="poisson", rate=80.0, max_concurrency=8)).level
    assert (held.arrival, held.load) == (CONCURRENCY, 8.0)
    assert only(strategy(type_="poisson", rate=9.0, max_concurrency=9)).level.warnings == ()


def test_more_than_one_percent_of_failures_fails_the_level():
    totals = {"successful": 50, "errored": 14, "incomplete": 0}
    (form,) = points_form([only(changed(request_totals=totals))])
    assert (form["completed"], form["failed"], form["verdict"]) == (50, 14, "fail")
    assert form["why"] == "21.9 % of the requests failed, at most 1 % may"


def test_zeros_without_a_completed_request_are_no_latencies():
    nothing = by_outcome(distribution(0.0, 0.0, 0.0, count=0))
    totals = {"successful": 0, "errored": 80, "incomplete": 0}
    point = only(changed(request_totals=totals, time_to_first_token_ms=nothing))
    assert point.level.ttft == Spread()
    assert judge(point.level, DEFAULT_SLO).verdict is Verdict.INVALID


def test_ttft_of_answers_that_did_not_stream_is_not_known():
    benchmark = guidellm_benchmark()
    config = {**benchmark["config"], "backend": {"model": "sim-8b", "stream": False}}
    (form,) = points_form([only(guidellm({**benchmark, "config": config}))])
    assert (form["streaming"], form["verdict"]) == (False, "unknown")


def test_the_share_that_met_guidellms_own_slo_is_kept():
    goodput = {"total": {"mean": 7.5}}
    point = only(changed(slo_attainment=0.9375, slo_determined_requests=80, request_goodput=goodput))
    assert point.said["slo_attainment"] == 0.9375
    assert point.said["slo_determined_requests"] == 80
    assert point.said["request_goodput"] == 7.5


def test_few_requests_are_a_warning():
    totals = {"successful": 72, "errored": 0, "incomplete": 0}
    warnings = all_warnings(read(changed(request_totals=totals)))
    assert warnings == ["benchmarks[0]: few_requests: 72 requests, 73 are needed to prove 95 %"]


def test_single_requests_are_not_even_parsed():
    text = json.dumps(guidellm()).replace(
        '"many words"', '"x", "output": "two of a key are refused elsewhere"'
    )
    assert only(text).level == only(guidellm()).level


MEASURED = """\
import re, sys
from sizing.measuring.files import read_results
with open(sys.argv[1], "rb") as opened:
    result = read_results("big.json", opened)
peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())
print(len(result.points), result.error, int(peak[1]) // 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is told by Linux alone")
def test_a_file_of_50_mb_is_read_within_300_mb(tmp_path: Path):
    answer = json.dumps({"output": '生成 "😀" ' * 500}, ensure_ascii=False)
    text = json.dumps(guidellm()).replace('{"output": "many words"}', ",".join([answer] * 6_300))
    path = tmp_path / "big.json"
    path.write_text(text, encoding="utf-8")
    assert path.stat().st_size > 50_000_000
    command = [sys.executable, "-c", MEASURED, str(path)]
    root = Path(__file__).parents[2]
    said = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True, timeout=120)
    points, error, mebibytes = said.stdout.split()
    assert (points, error) == ("1", "None")
    assert int(mebibytes) < 300


def test_requests_with_their_texts_are_cut_out_and_what_follows_them_is_read():
    text = json.dumps(guidellm())
    assert '"requests": {' in text
    broken = text.replace("many words", 'many \\"words]}\\\\')
    assert only(broken).level == only(guidellm()).level


def test_the_place_of_a_fault_behind_what_was_cut_out_is_that_in_the_file():
    text = json.dumps(guidellm(), indent=1).replace('"duration": 10.0', '"duration": ten')
    line = 1 + text[: text.index(": ten")].count("\n")
    assert read(text).error == f"result.json: line {line}: JSON was expected (expecting value)"


def test_the_maker_reads_the_levels_of_a_report_on_disk(tmp_path: Path):
    path = tmp_path / "point.json"
    path.write_text(json.dumps(guidellm()))
    assert read_guidellm(path) == [only(guidellm()).level]
    path.write_text("{")
    with pytest.raises(FileRefused, match="line 1: the JSON that begins here is cut off"):
        read_guidellm(path)
