"""`vllm bench serve`, InferenceX, and the results that vLLM and SGLang print."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from sizing.domain.levels import CONCURRENCY, POISSON, Spread, Verdict, judge
from sizing.measuring.files import DEFAULT_SLO, all_warnings, points_form
from tests.files.builders import SGLANG_CONSOLE, VLLM_CONSOLE, inferencex, only, read, vllm


def test_a_result_gives_its_throughput_latencies_and_mean_lengths():
    point = only(vllm())
    assert (point.tool, point.model, point.output_tok_s) == ("vllm bench serve", "sim-8b", 256.0)
    assert (point.level.input_tokens, point.level.output_tokens) == (64.0, 32.0)
    assert point.level.tpot == Spread(28.0, {50.0: 28.0, 95.0: 29.0, 99.0: 30.0})
    assert judge(point.level, DEFAULT_SLO).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("rate", "cap", "arrival", "load", "shown"),
    [
        ("inf", 8, CONCURRENCY, 8.0, "inf"),
        ("inf", None, POISSON, None, "inf"),
        (4.0, None, POISSON, 4.0, 4.0),
        (4.0, 8, POISSON, 4.0, 4.0),
    ],
)
def test_rate_and_cap_tell_whether_the_loop_is_closed(rate, cap, arrival, load, shown):
    point = only(vllm(request_rate=rate, max_concurrency=cap))
    assert (point.level.arrival, point.level.load) == (arrival, load)
    assert points_form([point])[0]["request_rate_target"] == shown


def test_a_cap_beside_a_rate_is_a_warning():
    warnings = only(vllm(request_rate=8.0)).level.warnings
    assert warnings == ("at most 8 requests at once: the cap may have held requests back",)


def test_requests_held_back_behind_a_cap_spoil_a_pass():
    point = only(vllm(request_rate=8.0, p95_client_queue_time_ms=1500.0))
    assert point.level.delay_p95_s == 1.5
    assert judge(point.level, DEFAULT_SLO).verdict is Verdict.INVALID


def test_p99_within_the_limit_proves_p95_and_a_median_beyond_it_disproves():
    document = vllm()
    del document["p95_ttft_ms"], document["p95_tpot_ms"]
    assert judge(only(document).level, DEFAULT_SLO).verdict is Verdict.PASS
    assert (
        judge(only({**document, "median_tpot_ms": 51.0, "p99_tpot_ms": 60.0}).level, DEFAULT_SLO).verdict
        is Verdict.FAIL
    )
    assert judge(only({**document, "p99_tpot_ms": 51.0}).level, DEFAULT_SLO).verdict is Verdict.UNKNOWN


def test_what_is_lacking_to_the_number_of_prompts_failed():
    document = vllm(completed=79)
    del document["failed"]
    assert only(document).level.failed == 1


def test_where_all_failed_the_zeros_are_no_latencies():
    zeros = {key: 0.0 for key in vllm() if key.endswith("_ms")}
    point = only(vllm(completed=0, failed=80, output_throughput=0.0, **zeros))
    assert (point.level.ttft, point.level.tpot) == (Spread(), Spread())
    judged = judge(point.level, DEFAULT_SLO)
    assert (judged.verdict, judged.why) == (Verdict.INVALID, "no request completed")


def test_the_goodput_key_of_0_8_ends_in_a_colon():
    document = vllm(**{"request_goodput:": 7.5})
    del document["request_goodput"]
    assert only(document).said["request_goodput"] == 7.5


def test_an_achieved_rate_far_below_the_asked_one_is_saturation_and_is_judged_by_the_slo():
    point = only(vllm(request_rate=9.0, max_concurrency=None))
    assert point.said["saturated"] is True
    assert judge(point.level, DEFAULT_SLO).verdict is Verdict.PASS
    assert "saturated" not in only(vllm(request_rate=8.5, max_concurrency=None)).said


def detailed(**changes):
    document = vllm(
        completed=20,
        failed=1,
        num_prompts=21,
        output_lens=[0, *[11] * 20],
        ttfts=[0.0, *[number / 1000 for number in range(10, 210, 10)]],
        itls=[[], *[[0.02] * 10] * 20],
        errors=["refused", *[""] * 20],
    )
    del document["p95_ttft_ms"], document["p95_tpot_ms"]
    return {**document, **changes}


def test_lists_of_single_requests_are_in_seconds_and_give_the_95th_percentile():
    point = only(detailed())
    assert point.level.ttft.at[95.0] == pytest.approx(190.5)
    assert point.level.tpot.at[95.0] == pytest.approx(20.0)
    assert point.level.e2e.at[50.0] == pytest.approx(305.0)
    assert point.said["derived_from_detail"] == ["ttft_ms.p95", "tpot_ms.p95"]
    assert point.level.ttft.at[50.0] == 40.0


def test_end_to_end_times_that_are_given_are_taken():
    point = only(detailed(latencies=[0.0, *[0.5] * 20]))
    assert point.level.e2e == Spread(500.0, {50.0: 500.0, 90.0: 500.0, 95.0: 500.0, 99.0: 500.0})


def test_times_without_the_other_details_leave_out_failed_requests():
    assert only(vllm(latencies=[0.0, 0.5, 0.5])).level.e2e.mean == 500.0


def test_an_empty_answer_counts_as_failed_although_the_tool_counts_it_as_completed():
    document = detailed(output_lens=[0, 0, *[11] * 19])
    point = only(document)
    assert (point.level.completed, point.level.failed, point.level.sent) == (19, 2, 21)
    (form,) = points_form([point])
    assert (form["completed"], form["failed"], form["empty"]) == (20, 1, 1)


def test_chunks_of_several_tokens_are_no_tpot_and_a_warning():
    point = only(vllm(mean_itl_ms=112.0, p95_itl_ms=113.0))
    assert judge(point.level, DEFAULT_SLO).verdict is Verdict.PASS
    assert "a chunk brings 4 tokens on average" in point.level.warnings[0]


@pytest.mark.parametrize(
    ("ttft", "tpot", "streamed"),
    [
        (896.0, 0.3, False),  # 98 % of the whole, and the rest is no token each: it came in one piece
        (9000.0, 12.0, True),  # 96 % of the whole is queue, but tokens came one by one
        (40.0, 28.0, True),
    ],
)
def test_an_answer_in_one_piece_is_told_from_a_long_queue(ttft, tpot, streamed):
    whole = ttft + 31 * tpot
    point = only(vllm(mean_ttft_ms=ttft, mean_tpot_ms=tpot, mean_e2el_ms=whole))
    assert point.level.streamed is streamed


def test_ttft_of_an_answer_in_one_piece_is_not_known():
    slow = {"mean_ttft_ms": 896.0, "mean_tpot_ms": 0.3, "mean_e2el_ms": 905.3}
    assert judge(only(vllm(**slow)).level, DEFAULT_SLO).verdict is Verdict.UNKNOWN


def test_a_ramp_is_not_one_level():
    assert read(vllm(ramp_up_strategy="linear")).error == (
        'result.json: ramp_up_strategy: one load level was expected, "linear" found'
    )


def test_results_appended_to_one_file_are_points_named_by_their_line():
    result = read(json.dumps(vllm()) + "\n" + json.dumps(vllm(max_concurrency=16)) + json.dumps(vllm()))
    assert [(point.place, point.concurrency) for point in result.points] == [
        ("line 1", 8.0),
        ("line 2", 16.0),
        ("line 2", 8.0),
    ]


def test_a_sweeps_list_gives_a_point_for_each_element():
    result = read([vllm(), vllm(max_concurrency=16)])
    assert [(point.place, point.concurrency) for point in result.points] == [("[0]", 8.0), ("[1]", 16.0)]


def test_inferencex_has_the_same_keys_in_seconds():
    point = only(inferencex())
    assert point.tool == "InferenceX"
    assert point.level.ttft == Spread(None, {50.0: 40.0, 99.0: 70.0})
    assert point.level.tpot.at[50.0] == 28.0
    assert point.level.e2e.at[99.0] == 1000.0
    assert point.level.failed == 0


def test_the_printed_result_reads_like_the_file():
    printed, written = only(VLLM_CONSOLE), only(vllm())
    assert printed.place == "line 4"
    assert (printed.level.ttft, printed.level.tpot) == (written.level.ttft, written.level.tpot)
    assert (printed.level.arrival, printed.level.load) == (CONCURRENCY, 8.0)
    assert (printed.output_tok_s, printed.level.completed, printed.total_tok_s) == (256.0, 80, 768.0)


def test_the_rate_printed_before_the_banner_or_below_it_is_the_asked_one():
    before = VLLM_CONSOLE.replace("rate: inf", "rate: 4.0")
    assert only(before).request_rate_target == 4.0
    below = VLLM_CONSOLE.replace("Benchmark dur", "Request rate configured (RPS):   5.00\nBenchmark dur")
    assert only(below).request_rate_target == 5.0


def test_several_printed_results_are_several_points():
    result = read(VLLM_CONSOLE + SGLANG_CONSOLE)
    assert [point.tool for point in result.points] == ["vllm bench serve", "sglang.bench_serving"]


def test_sglangs_printed_result_has_its_own_words():
    point = only(SGLANG_CONSOLE)
    assert (point.level.arrival, point.level.load, point.concurrency) == (POISSON, 8.0, None)
    assert point.level.e2e.mean == 908.0
    assert point.level.ttft.at[99.0] == 70.0


def test_sglangs_misspelled_cap_is_read():
    closed = SGLANG_CONSOLE.replace("not set", "8").replace("8.0\n", "inf\n")
    assert (only(closed).level.arrival, only(closed).level.load) == (CONCURRENCY, 8.0)


def test_a_printed_result_that_is_cut_off_is_refused_by_its_line():
    cut = VLLM_CONSOLE[: VLLM_CONSOLE.index("Output token")]
    assert read(cut, "run.log").error == (
        "run.log: line 4: output_throughput: a line with this figure was expected, nothing found"
    )


def test_a_sound_result_has_no_warnings():
    assert all_warnings(read(vllm())) == []


def test_a_rate_that_a_cap_kept_from_being_reached_is_a_closed_loop():
    level = only(vllm(request_rate=100.0, p95_client_queue_time_ms=1500.0)).level
    assert (level.arrival, level.load, level.delay_p95_s) == (CONCURRENCY, 8.0, None)
    assert level.warnings == (
        "100 requests/s were asked and 8 achieved with at most 8 at once: "
        "taken as a closed loop of 8 streams",
    )
    assert only(vllm(request_rate=100.0, max_concurrency=None)).level.arrival == POISSON


def test_an_answer_in_one_piece_is_told_without_its_end_to_end_time():
    document = vllm(mean_ttft_ms=400.0, mean_tpot_ms=0.01)
    assert "mean_e2el_ms" not in document
    assert only(document).level.streamed is False
    assert only({**document, "mean_tpot_ms": 1.0}).level.streamed is True


def test_seconds_are_told_without_the_end_to_end_time():
    document = vllm(mean_ttft_ms=0.4, mean_tpot_ms=0.02, mean_itl_ms=0.02)
    assert "an answer of 32 tokens in 1.02 ms: are these seconds?" in all_warnings(read(document))


def test_the_gaps_of_a_request_are_replaced_by_their_sum_and_faults_in_them_keep_their_place():
    lists = {"ttfts": [0.5, 0.5], "output_lens": [3, 3], "generated_texts": ["]", "["], "errors": ["", ""]}
    document = vllm(itls=[[0.25, 0.75], [1, 1]], **lists)
    assert only(document).level.e2e.at[50.0] == 2000.0
    assert only(vllm(itls=[[0.25, None], []], **lists)).level.e2e.at[50.0] == 625.0
    assert read(vllm(itls=[[0.25], [0.25, -1]], **lists)).error == (
        "result.json: itls[1][1]: a number from 0 to 1e+15 was expected, -1 found"
    )
    assert read(vllm(itls=[[[[0.25]]]], **lists)).error == (
        "result.json: itls[0][0]: a number was expected, a list found"
    )


def test_a_detailed_file_is_read_in_little_more_than_its_own_size():
    gaps = "[" + "0.0333333333, " * 499 + "0.0333333333]"
    head = json.dumps(vllm(ttfts=[0.5] * 2000, output_lens=[501] * 2000))[:-1]
    text = f'{head}, "generated_texts": [not, even, parsed], "itls": [{", ".join([gaps] * 2000)}]}}'.encode()
    tracemalloc.start()
    result = read(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.points[0].level.e2e.at[50.0] == pytest.approx(500 + 500 * 33.3333333)
    assert peak < len(text)


def test_a_printed_result_without_failed_requests_does_not_tell_them():
    text = VLLM_CONSOLE.replace("Failed requests:                         0\n", "")
    level = only(text).level
    assert (level.failed, level.sent) == (None, None)
    assert "how many requests failed is not told" in level.warnings
