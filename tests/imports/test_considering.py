"""What result files say together: sweeps, the one that counts, what is refused and what is odd."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sizing.domain.levels import CONCURRENCY, POISSON, Slo, Spread
from sizing.measuring.importing import Considered, consider, given, read_file
from sizing.measuring.importing.considering import MOST_POINTS
from tests.files import builders
from tests.imports.files import CHAT, LOOPED, rate, read, slow, streams, untold


def figure(considered: Considered) -> tuple[float | None, str | None, float | None]:
    """tok/s, bound and load of the sweep that counts."""
    assert considered.counting is not None
    found = considered.counting.throughput
    return found.tok_per_sec, found.bound, found.load


def test_several_files_are_one_sweep_with_its_edge_and_bracket() -> None:
    files = read(c=slow(rate(8, 200)), a=rate(2, 60), b=rate(4, 120))
    considered = consider(files, CHAT)
    assert figure(considered) == (120.0, "edge", 4.0)
    assert considered.counting is not None
    assert considered.counting.throughput.bracket == "120 tok/s; the next level tried, 200, failed"
    assert [here.file for here in considered.counting.deciding] == ["b.json"]
    assert (considered.refused, considered.warnings) == ({}, ())


def test_without_a_failed_level_the_figure_is_a_floor() -> None:
    considered = consider(read(a=rate(2, 60), b=rate(4, 120)), CHAT)
    assert figure(considered) == (120.0, "floor", 4.0)


def test_a_level_that_cannot_be_told_ends_the_leading_passes() -> None:
    considered = consider(read(a=rate(2, 60), b=untold(rate(4, 120)), c=rate(8, 200)), CHAT)
    assert figure(considered) == (60.0, "floor", 2.0)
    assert considered.warnings == ("1 level passed above one that did not; they do not count",)


def test_a_fail_below_a_pass_leaves_the_leading_passes_and_a_warning() -> None:
    considered = consider(read(a=rate(2, 60), b=slow(rate(4, 120)), c=rate(8, 200)), CHAT)
    assert figure(considered) == (60.0, "edge", 2.0)
    assert considered.warnings == ("1 level passed above one that did not; they do not count",)


def test_repeats_of_a_load_count_by_their_median() -> None:
    considered = consider(read(a=rate(2, 60), b=rate(2, 64), c=rate(2, 61)), CHAT)
    assert figure(considered) == (61.0, "floor", 2.0)


def test_closed_and_open_loop_never_mix_and_that_of_the_profile_counts() -> None:
    files = read(a=rate(2, 60), b=streams(8, 256), c=streams(16, 400))
    assert figure(consider(files, CHAT)) == (60.0, "floor", 2.0)
    assert consider(files, CHAT).warnings == ("2 points of closed loop do not count beside open loop",)
    assert figure(consider(files, LOOPED)) == (400.0, "floor", 16.0)
    assert consider(files, LOOPED).warnings == ("1 point of open loop does not count beside closed loop",)


def test_only_closed_loop_for_a_poisson_profile_is_labeled() -> None:
    considered = consider(read(a=streams(8, 256)), CHAT)
    assert figure(considered) == (256.0, "floor", 8.0)
    assert considered.warnings == ("closed loop: chat says poisson; closed loop flatters",)


def test_only_open_loop_for_a_closed_profile_is_labeled_and_does_not_flatter() -> None:
    considered = consider(read(a=rate(2, 60)), LOOPED)
    assert considered.warnings == ("open loop: looped says concurrency",)


def test_a_failing_sweep_of_the_profile_s_arrival_is_not_replaced_by_one_that_flatters() -> None:
    considered = consider(read(a=slow(rate(2, 60)), b=streams(8, 256)), CHAT)
    assert figure(considered) == (None, None, None)
    assert considered.refused == {}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"total_input_tokens": 80 * 77}, "77 input tokens a request where chat has 64"),
        ({"total_output_tokens": 80 * 25}, "25 output tokens a request where chat has 32"),
        (
            {"total_input_tokens": 80 * 640, "total_output_tokens": 80 * 320},
            "640 input tokens a request where chat has 64, and 320 output tokens a request where chat has 32",
        ),
    ],
)
def test_another_shape_is_refused_with_its_place_unless_forced_and_then_labeled(
    changes: dict[str, Any], words: str
) -> None:
    files = read(a=rate(2, 60), b=rate(4, 120, **changes))
    refused = consider(files, CHAT)
    assert refused.refused == {"b.json": [f"b.json: other shape: {words}"]}
    assert refused.preview()["storable"] is False
    forced = consider(files, CHAT, force=True)
    assert (forced.refused, figure(forced)) == ({}, (120.0, "floor", 4.0))
    assert f"other shape: {words}" in forced.warnings


@pytest.mark.parametrize("tokens", [80 * 64 * 1.19, 80 * 64 * 0.81])
def test_up_to_20_percent_it_is_the_same_shape(tokens: float) -> None:
    assert consider(read(a=rate(2, 60, total_input_tokens=round(tokens))), CHAT).refused == {}


def test_points_of_another_shape_can_be_left_out_on_purpose() -> None:
    files = read(a=rate(2, 60), b=rate(4, 120, total_input_tokens=8000))
    considered = consider(files, CHAT, leave_out=True)
    assert (considered.refused, figure(considered)) == ({}, (60.0, "floor", 2.0))
    assert considered.warnings == (
        "left out: b.json: other shape: 100 input tokens a request where chat has 64",
    )


def test_a_broken_file_refuses_the_whole_and_the_others_are_still_shown() -> None:
    considered = consider(read(a=rate(2, 60), b="{"), CHAT)
    line = "b.json: line 1: the JSON that begins here is cut off; its end was expected"
    assert considered.refused == {"b.json": [line]}
    preview = considered.preview()
    assert [file["error"] for file in preview["files"]] == [None, line]
    assert preview["files"][0]["points"][0]["verdict"] == "pass"
    assert preview["sweeps"][0]["tok_per_sec"] == 60.0


def test_a_broken_file_can_be_left_out_on_purpose() -> None:
    considered = consider(read(a=rate(2, 60), b="{"), CHAT, leave_out=True)
    assert (considered.refused, figure(considered)) == ({}, (60.0, "floor", 2.0))
    assert considered.warnings == (
        "left out: b.json: line 1: the JSON that begins here is cut off; its end was expected",
    )


def test_where_everything_is_left_out_nothing_may_be_stored() -> None:
    considered = consider(read(b="{"), CHAT, leave_out=True)
    assert considered.refused == {"": ["no load point is left that could be stored"]}


def test_the_same_content_twice_is_no_repeat() -> None:
    files = read(a=rate(2, 60), b=rate(2, 60))
    line = "b.json: each file once was expected, this is a.json again"
    assert consider(files, CHAT).refused == {"b.json": [line]}
    assert consider(files, CHAT, leave_out=True).warnings == (f"left out: {line}",)


def test_below_73_requests_the_verdict_stands_with_a_warning() -> None:
    few = {"completed": 72, "num_prompts": 72, "total_input_tokens": 72 * 64, "total_output_tokens": 72 * 32}
    considered = consider(read(a=rate(2, 60), b=rate(4, 120, **few)), CHAT)
    assert figure(considered) == (120.0, "floor", 4.0)
    assert considered.warnings == (
        "few_requests: 72 at the deciding level; 73 without a violation would prove p95",
    )


def test_another_percentile_needs_other_requests() -> None:
    asked = replace(CHAT, slo=Slo(500.0, 50.0, None, 99.0))
    considered = consider(read(a=rate(2, 60)), asked)
    assert considered.warnings == (
        "few_requests: 80 at the deciding level; 381 without a violation would prove p99",
    )
    assert considered.preview()["files"][0]["warnings"] == [
        "few_requests: 80 requests, 381 are needed to prove 99 %"
    ]


def test_a_lowest_level_that_fails_is_the_slo_not_met() -> None:
    considered = consider(read(a=slow(rate(2, 60)), b=slow(rate(4, 70))), CHAT)
    assert figure(considered) == (None, None, None)
    assert considered.counting is not None
    assert considered.counting.throughput.bracket == (
        "not met at the lowest load tried: TTFT of 800 ms is beyond 500 ms"
    )
    assert considered.refused == {}


def test_a_lowest_level_that_cannot_be_told_is_refused() -> None:
    considered = consider(read(a=untold(rate(2, 60)), b=slow(rate(4, 70))), CHAT)
    assert considered.refused == {
        "a.json": [
            "a.json: not known at the lowest load tried: "
            "TTFT and TPOT at p95 cannot be told from what is given"
        ]
    }


def test_tokens_that_only_a_client_s_tokenizer_counted_are_no_figure() -> None:
    document = builders.genai_perf(
        output_sequence_length=builders.metric("tokens", 36.0),
        output_token_throughput=builders.metric("tokens/sec", 288.0),
    )
    considered = consider(read(a=document), LOOPED)
    assert figure(considered) == (None, None, 8.0)
    assert considered.refused == {
        "a.json": ["a.json: the SLO is met, but there is no tok/s that the server counted"]
    }


def test_what_the_cross_checks_find_at_the_deciding_level_stands_beside_the_figure() -> None:
    considered = consider(read(a=rate(2, 60), b=rate(4, 120, request_throughput=8.0)), CHAT)
    assert considered.warnings == ("120 tok/s, but 8 requests/s of 32 tokens are 256",)


def test_points_of_several_load_generators_and_models_are_told() -> None:
    document = builders.inference_perf()
    considered = consider(read(a=rate(2, 60), b=rate(4, 120, model_id="other"), c=document), CHAT)
    assert (
        "points of several load generators are one sweep here: vllm bench serve, inference-perf"
        in considered.warnings
    )
    assert "points of several models are one sweep here: sim-8b, other" in considered.warnings


def test_lengths_that_no_file_tells_are_told_to_be_untold() -> None:
    document = rate(2, 60)
    del document["total_input_tokens"]
    assert consider(read(a=document), CHAT).warnings == (
        "the files do not tell the input tokens of a request: are they the profile's?",
    )


def test_without_a_profile_the_usual_slo_judges_and_nothing_may_be_stored() -> None:
    considered = consider(read(a=rate(2, 60), b=slow(streams(8, 256))))
    assert considered.counting is None
    assert considered.preview()["storable"] is False
    assert [(s["arrival"], s["tok_per_sec"], s["counts"]) for s in considered.preview()["sweeps"]] == [
        (POISSON, 60.0, False),
        (CONCURRENCY, None, False),
    ]


def test_all_at_once_is_a_level_above_every_rate() -> None:
    considered = consider(read(a=rate(2, 60), b=slow(rate(0, 700, request_rate="inf"))), CHAT)
    assert figure(considered) == (60.0, "edge", 2.0)
    alone = consider(read(b=rate(0, 700, request_rate="inf")), CHAT)
    assert figure(alone) == (700.0, "floor", None)


def test_more_points_than_can_be_a_sweep_are_too_many() -> None:
    lines = "\n".join(['{"model_id": "m", "num_prompts": 1, "median_ttft_ms": 1}'] * (MOST_POINTS + 1))
    considered = consider(read(a=lines), CHAT)
    assert considered.too_many == "the files have 1,001 load points; at most 1,000 are read together"


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"requests_per_sec": float("inf")}, "request_rate"),
        ({"sent_per_sec": float("nan")}, "sent_per_sec"),
        ({"ttft": Spread(1e200, {})}, "ttft_ms.mean"),
    ],
)
def test_a_number_that_no_database_keeps_refuses_its_file_whatever_the_reader_takes(
    changes: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = builders.read(rate(2, 60), "a.json")
    (point,) = right.points
    odd = replace(right, points=(replace(point, level=replace(point.level, **changes)),))
    monkeypatch.setattr(given, "read_results", lambda name, data: odd)
    found = read_file("a.json", b"{}").result
    line = f"a.json: {name} was expected to be a finite number below 1e100"
    assert (found.error, found.points) == (line, ())


def test_more_tokens_than_a_measurement_takes_are_refused_at_their_point() -> None:
    considered = consider(read(a=rate(2, 1e14)), CHAT)
    assert considered.refused == {"a.json": ["a.json: 1e+14 tok/s are more than can be"]}
