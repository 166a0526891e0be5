"""AIPerf, genai-perf, inference-perf, SGLang and LLMPerf."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import pytest

from sizing.domain.levels import CONCURRENCY, POISSON, Spread, Verdict, judge
from sizing.measuring.files import DEFAULT_SLO, points_form
from tests.files.builders import aiperf, genai_perf, inference_perf, llmperf, metric, only, read, sglang


def verdict(document: Any) -> Verdict:
    return judge(only(document).level, DEFAULT_SLO).verdict


def test_aiperfs_tpot_is_its_inter_token_latency_and_chunks_are_apart():
    point = only(aiperf())
    assert (point.tool, point.model) == ("aiperf 0.13.0", "sim-8b")
    assert (point.level.arrival, point.level.load) == (CONCURRENCY, 8.0)
    assert point.level.tpot.at[95.0] == 29.0
    assert point.itl.at[95.0] == 115.0
    assert (point.level.tok_per_sec, point.level.completed, point.level.failed) == (256.0, 80, 0)
    assert verdict(aiperf()) is Verdict.PASS


@pytest.mark.parametrize(("unit", "value"), [("ms", 60.0), ("s", 0.06), ("us", 60_000.0), ("ns", 6e7)])
def test_units_are_those_in_the_file(unit, value):
    assert only(aiperf(time_to_first_token=metric(unit, value, value, value))).level.ttft.at[
        95.0
    ] == pytest.approx(60.0)


def test_an_unknown_unit_is_refused():
    assert read(aiperf(request_latency=metric("h", 1.0, 1.0, 1.0))).error == (
        'result.json: request_latency.unit: a unit of time (ms, s, us, ns) was expected, "h" found'
    )


@pytest.mark.parametrize("changes", [{"was_cancelled": True}, {"is_complete": False}])
def test_a_cancelled_run_is_invalid(changes):
    assert verdict(aiperf(**changes)) is Verdict.INVALID


def test_failed_requests_are_counted_by_what_the_version_has():
    assert only(aiperf(error_request_count=metric("requests", 14.0))).level.failed == 14
    assert only(aiperf(completed_request_count=metric("requests", 94.0))).level.failed == 14
    assert only(aiperf(error_summary=[{"count": 9}, {"count": 5}])).level.failed == 14


def test_the_servers_token_count_is_used_where_the_clients_differs():
    point = only(aiperf(output_token_throughput=metric("tokens/sec", 280.0)))
    assert (point.level.tok_per_sec, point.output_tok_s) == (256.0, 280.0)
    assert point.level.warnings == ("the client's tokenizer counted 280 tok/s, the server 256",)


def test_more_tokens_than_were_asked_are_a_miscount_that_is_not_used():
    document = aiperf(
        output_token_throughput=metric("tokens/sec", 496.0), output_sequence_length=metric("tokens", 62.0)
    )
    del document["total_usage_completion_tokens"]
    point = only(document)
    assert (point.level.tok_per_sec, point.output_tok_s) == (None, 496.0)
    assert "62 tokens an answer where at most 32 were asked" in point.level.warnings[0]


def test_the_older_configuration_is_read():
    config = {
        "endpoint": {"model_names": ["sim-8b"], "streaming": True},
        "loadgen": {"concurrency": 4, "request_rate": None},
    }
    document = aiperf(input_config=config)
    del document["schema_version"], document["aiperf_version"]
    point = only(document)
    assert (point.tool, point.model, point.level.load) == ("aiperf", "sim-8b", 4.0)


def test_the_load_is_that_of_the_profiling_phase():
    phases = [{"kind": "profiling", "concurrency": 8}, {"kind": "warmup", "concurrency": 2}]
    assert only(aiperf(input_config={"phases": phases})).level.load == 8.0


def test_a_rate_is_an_open_loop_and_no_streaming_means_no_ttft():
    config = {"endpoint": {"streaming": False}, "phases": [{"kind": "profiling", "rate": 5.0}]}
    point = only(aiperf(input_config=config))
    assert (point.level.arrival, point.level.load) == (POISSON, 5.0)
    assert verdict(aiperf(input_config=config)) is Verdict.UNKNOWN


def test_a_sweep_has_a_point_for_each_combination():
    metrics = {key: value for key, value in aiperf().items() if isinstance(value, dict) and "unit" in value}
    combinations = [
        {"parameters": {"concurrency": 1}, "metrics": metrics},
        {"parameters": {"phases.profiling.request_rate": 6.0}, "metrics": metrics},
    ]
    document = {"metadata": {"num_trials_per_value": 3}, "per_combination_metrics": combinations}
    result = read(document)
    assert [(p.place, p.level.arrival, p.level.load) for p in result.points] == [
        ("per_combination_metrics[0]", CONCURRENCY, 1.0),
        ("per_combination_metrics[1]", POISSON, 6.0),
    ]
    assert result.points[0].level.warnings == ("figures are means over 3 runs",)


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({"metadata": {"request_start_ns": 1}, "metrics": {}}, "the records of single requests"),
        ({"metadata": {"aggregation_type": "confidence"}, "metrics": {}}, "a mean over runs"),
        ({"config": {}, "iterations": [], "best_trials": None}, "the search's history"),
    ],
)
def test_aiperfs_other_files_are_no_load_points(document, what):
    assert read(document).error == (
        f"result.json: the document: profile_export_aiperf.json or the sweep's file was expected, not {what}"
    )


def test_the_file_of_a_warm_up_is_refused_by_its_folder():
    text = json.dumps(aiperf())
    assert read(text, "run/warmup/profile_export_aiperf.json").error == (
        "run/warmup/profile_export_aiperf.json: a result was expected, this is a warm-up's"
    )


def test_genai_perf_recounts_tokens():
    point = only(genai_perf(output_sequence_length=metric("tokens", 60.7)))
    assert (point.tool, point.model, point.level.load) == ("genai-perf", "sim-8b", 8.0)
    assert (point.level.tok_per_sec, point.output_tok_s) == (None, 256.0)
    point = only(genai_perf())
    assert (point.level.tok_per_sec, point.level.failed) == (256.0, 0)
    assert point.level.warnings == ("tokens were counted by the client's tokenizer, not by the server",)


def test_inference_perf_is_in_seconds_and_one_stage_a_file():
    point = only(inference_perf())
    assert (point.level.arrival, point.level.load, point.level.sent_per_sec) == (POISSON, 8.2, 8.1)
    assert point.level.ttft.at[95.0] == pytest.approx(60.0)
    assert point.level.tpot.at[99.0] == pytest.approx(30.0)
    assert (point.level.tok_per_sec, point.level.requests_per_sec) == (256.0, 8.0)
    assert verdict(inference_perf()) is Verdict.PASS


def test_the_summary_over_all_stages_is_refused():
    summary = inference_perf(load_summary={"count": 80, "schedule_delay": {"p95": 0.0}})
    assert read(summary).error == (
        "result.json: load_summary.requested_rate: one load stage (stage_N_lifecycle_metrics.json) "
        "was expected, nothing found"
    )


def successes(**changes: Any) -> dict[str, Any]:
    return {"successes": {**inference_perf()["successes"], **changes}}


def test_tokens_are_the_servers_and_tpot_by_the_clients_tokenizer_is_not_known():
    throughput = {"output_tokens_per_sec": 528.0, "requests_per_sec": 8.0}
    document = inference_perf(**successes(throughput=throughput))
    point = only(document)
    assert (point.level.tok_per_sec, point.level.tpot) == (256.0, Spread())
    (form,) = points_form([point])
    assert form["tpot_ms"] == {"mean": None, "p50": None, "p90": None, "p95": None, "p99": None}
    assert (form["output_tok_s"], form["output_tok_s_reported"]) == (256.0, 528.0)
    assert form["verdict"] == "unknown"


def test_without_the_servers_counts_nothing_is_known_of_tokens():
    document = inference_perf(**successes(client_fallback_requests={"output": 80}))
    point = only(document)
    assert (point.level.tok_per_sec, point.output_tok_s, point.level.output_tokens) == (None, None, None)
    assert point.level.tpot == Spread()


def test_an_old_file_has_only_the_clients_count_and_says_so():
    document = inference_perf()
    del document["successes"]["output_tokens"], document["successes"]["client_fallback_requests"]
    del document["benchmark_time_seconds"]
    point = only(document)
    assert (point.level.tok_per_sec, point.level.duration_s) == (256.0, None)
    assert point.level.tpot.at[95.0] == pytest.approx(29.0)
    assert "tokenizer" in point.level.warnings[0]


def late(**load: Any) -> dict[str, Any]:
    summary = {**inference_perf()["load_summary"], "schedule_delay": {"p95": 1.5}, **load}
    return inference_perf(load_summary=summary)


def test_a_client_that_sent_late_spoils_a_pass_but_not_a_fail():
    assert only(late()).said["client_limited"] is True
    assert verdict(late()) is Verdict.INVALID
    latency = {"time_to_first_token": {"mean": 2.0, "median": 2.0}}
    assert verdict(late() | successes(latency=latency)) is Verdict.FAIL


def test_the_schedule_of_a_closed_loop_means_nothing():
    point = only(late(concurrency=8, requested_rate=64.0))
    assert (point.level.arrival, point.level.load, point.level.delay_p95_s) == (CONCURRENCY, 8.0, None)
    assert judge(point.level, DEFAULT_SLO).verdict is Verdict.PASS


def test_failures_are_kept_by_their_label():
    failures = {"count": 9, "by_label": {"503 - Service Unavailable": {"count": 9}}}
    point = only(inference_perf(failures=failures))
    assert (point.level.failed, dict(point.level.failures)) == (9, {"503 - Service Unavailable": 9})


def test_sglang_counts_by_the_server_and_does_not_tell_of_failures():
    point = only(sglang())
    assert (point.tool, point.model) == ("sglang.bench_serving", None)
    assert (point.output_tok_s, point.level.output_tokens) == (256.0, 32.0)
    assert (point.level.failed, point.level.sent) == (None, None)
    assert (point.said["shape"], point.said["concurrency_mean"]) == ([64, 32], 7.3)


def test_sglangs_lines_are_points_and_infinity_is_unlimited():
    lines = [json.dumps(sglang(request_rate=inf, max_concurrency=4)), json.dumps(sglang())]
    assert "Infinity" in lines[0]
    closed, opened = read("\n".join(lines)).points
    assert (closed.level.arrival, closed.level.load) == (CONCURRENCY, 4.0)
    assert (opened.level.arrival, opened.level.load, opened.place) == (POISSON, 8.0, "line 2")


def test_sglang_of_2024_has_medians_only():
    document = {key: value for key, value in sglang().items() if not key.startswith("p99")}
    del document["median_tpot_ms"], document["request_throughput"]
    point = only(document)
    assert point.level.requests_per_sec == 8.0
    assert point.level.tpot == Spread()
    assert verdict(document) is Verdict.UNKNOWN
    assert verdict({**document, "median_ttft_ms": 614.0}) is Verdict.FAIL


def test_sglang_is_told_by_its_data_set_where_it_did_not_recount():
    document = sglang()
    del document["total_output_tokens_retokenized"]
    assert only(document).tool == "sglang.bench_serving"


def test_sglangs_details_give_the_95th_percentile():
    details = {"output_lens": [3, 3], "ttfts": [0.1, 0.2], "itls": [[0.02, 0.04], [0.02, 0.04]]}
    level = only(sglang(completed=2, errors=["", ""], **details)).level
    assert level.ttft.at[95.0] == pytest.approx(195.0)
    assert level.tpot.at[95.0] == pytest.approx(30.0)


def test_llmperf_is_a_closed_loop_in_seconds():
    point = only(llmperf())
    assert (point.tool, point.model) == ("llmperf", "sim-8b")
    assert (point.level.arrival, point.level.load) == (CONCURRENCY, 8.0)
    assert point.level.ttft.at[95.0] == pytest.approx(60.0)
    assert (point.level.requests_per_sec, point.output_tok_s) == (8.0, 256.0)
    assert "contains the first token" in point.level.warnings[0]


def test_sglangs_details_tell_how_many_requests_failed_or_were_empty():
    lists = {
        "ttfts": [0.05] * 76 + [9.0] * 4,
        "output_lens": [32] * 75 + [0] + [32] * 4,
        "itls": [[0.02] * 31] * 80,
        "errors": [""] * 76 + ["refused"] * 4,
    }
    level = only(sglang(completed=76, **lists)).level
    assert (level.sent, level.completed, level.failed) == (80, 75, 5)
    assert level.ttft.at[95.0] == pytest.approx(50.0)
    assert level.warnings == ("1 empty answers were counted as completed; they count as failed here",)
    assert verdict(sglang(completed=76, **lists)) is Verdict.FAIL
    level = only(sglang(completed=0, ttfts=[0.0] * 2, output_lens=[0] * 2, errors=["x", "y"])).level
    assert (level.completed, level.failed) == (0, 2)


def test_a_rate_that_is_a_word_leaves_the_load_of_its_line_untold():
    lines = "\n".join(json.dumps(sglang(request_rate=rate)) for rate in ("trace", 8.0))
    result = read(lines)
    assert [point.level.load for point in result.points] == [None, 8.0]
    assert [point.level.arrival for point in result.points] == [None, POISSON]


def test_aiperfs_cap_that_kept_the_rate_from_being_reached_is_a_closed_loop():
    def config(rate: float) -> dict[str, Any]:
        return {"loadgen": {"concurrency": 8, "request_rate": rate}}

    held = only(aiperf(input_config=config(50.0))).level
    assert (held.arrival, held.load) == (CONCURRENCY, 8.0)
    assert "taken as a closed loop of 8 streams" in held.warnings[0]
    level = only(aiperf(input_config=config(8.5))).level
    assert (level.arrival, level.load) == (POISSON, 8.5)


def test_a_run_of_aiperf_in_which_all_failed_is_invalid():
    whole = aiperf(error_request_count=metric("requests", 80.0))
    kept = ("schema_version", "aiperf_version", "error_request_count", "benchmark_duration", "was_cancelled")
    document = {key: whole[key] for key in kept}
    level = only(document).level
    assert (level.completed, level.failed, level.warnings) == (0, 80, ())
    assert points_form([only(document)])[0]["why"] == "no request completed"


@pytest.mark.parametrize("endpoint", [None, "v1/chat/completions"])
def test_genai_perfs_flat_arguments_are_read(endpoint):
    config = {
        "model": ["sim-8b"],
        "concurrency": 16,
        "request_rate": None,
        "endpoint": endpoint,
        "output_tokens_mean": -1,
        "streaming": True,
    }
    point = only(genai_perf(input_config=config))
    assert (point.level.arrival, point.level.load, point.model) == (CONCURRENCY, 16.0, "sim-8b")


@pytest.mark.parametrize("config", [5, [], {"concurrency": [1, 2]}, {"perf_analyzer": "x", "model_names": 1}])
def test_an_odd_configuration_of_genai_perf_tells_no_load_and_refuses_nothing(config):
    level = only(genai_perf(input_config=config)).level
    assert (level.arrival, level.load, level.tok_per_sec) == (None, None, 256.0)
