"""One figure from several levels, what bounds it, and what does not add up in a level."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sizing.domain.levels import CONCURRENCY, POISSON, Judged, Level, Slo, Spread, Verdict
from sizing.domain.throughput import EDGE, FLOOR, Throughput, at_slo, cross_checks, groups, sweeps

PASS, FAIL, UNKNOWN, INVALID = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN, Verdict.INVALID
SLO = Slo(ttft_ms=500, itl_ms=50)


def said(
    load: float | None, verdict: Verdict, tok_per_sec: float | None = None, arrival: str | None = POISSON
) -> Judged:
    rate = tok_per_sec if tok_per_sec is not None or load is None else 100 * load
    return Judged(Level(arrival=arrival, load=load, tok_per_sec=rate), verdict, f"{verdict} at {load}")


# -- Throughput at the SLO


def test_a_failed_higher_level_makes_the_result_an_edge_and_names_the_bracket():
    levels = [said(24.99, PASS), said(45.96, FAIL), said(1, PASS)]
    assert at_slo(levels) == Throughput(
        2499, EDGE, 24.99, "2,499 tok/s; the next level tried, 4,596, failed", ()
    )


def open_loop(load: float, tok_per_sec: float, **fields) -> Judged:
    """A level of the desk's own: its requests are known one by one."""
    own = {"conform": 100, "output_tokens": 32.0} | fields
    return Judged(Level(arrival=POISSON, load=load, tok_per_sec=tok_per_sec, **own), PASS, "")


def test_what_a_server_made_of_arrivals_that_came_faster_than_asked_is_no_capacity():
    assert at_slo([open_loop(9, 327)]).tok_per_sec == 288
    assert at_slo([open_loop(9, 253)]).tok_per_sec == 253
    assert at_slo([open_loop(9, 327), open_loop(9, 270)]).tok_per_sec == 279


def test_a_closed_loop_and_the_means_of_a_file_are_not_held_to_the_load():
    assert at_slo([open_loop(9, 327, conform=None)]).tok_per_sec == 327
    assert at_slo([said(9, PASS, 327, arrival=CONCURRENCY)]).tok_per_sec == 327


def test_none_failed_makes_it_a_floor():
    levels = [said(1, PASS), said(8, PASS)]
    assert at_slo(levels) == Throughput(800, FLOOR, 8, "at least 800 tok/s; no higher level was tried", ())


@pytest.mark.parametrize(("verdict", "words"), [(UNKNOWN, "could not be told"), (INVALID, "was invalid")])
def test_a_next_level_that_proves_nothing_leaves_a_floor(verdict, words):
    found = at_slo([said(1, PASS), said(8, verdict)])
    assert (found.bound, found.load) == (FLOOR, 1)
    assert found.bracket == f"at least 100 tok/s; the next level tried, 800, {words}"


def test_a_fail_further_up_makes_an_edge_too():
    found = at_slo([said(1, PASS), said(8, UNKNOWN), said(9, FAIL)])
    assert (found.bound, found.load) == (EDGE, 1)
    next_one = "100 tok/s; the next level tried, 800, could not be told"
    assert found.bracket == f"{next_one}, and a higher one, 900, failed"


def test_a_repeat_that_gave_nothing_is_no_part_of_the_figure_of_its_load():
    nothing = Judged(
        Level(arrival=POISSON, load=8, tok_per_sec=0, completed=0), INVALID, "no request completed"
    )
    found = at_slo([said(1, PASS), said(8, PASS, 128), nothing])
    assert found.bracket == "at least 100 tok/s; the next level tried, 128, was invalid"


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (FAIL, "not met at the lowest load tried: fail at 1"),
        (UNKNOWN, "not known at the lowest load tried: unknown at 1"),
        (INVALID, "no valid level at the lowest load tried: invalid at 1"),
    ],
)
def test_without_a_pass_at_the_lowest_load_there_is_no_figure(verdict, words):
    assert at_slo([said(1, verdict), said(8, FAIL)]) == Throughput(None, None, None, words, ())


def test_no_level_is_no_figure():
    assert at_slo([]) == Throughput(None, None, None, "no level was measured", ())


def test_levels_that_pass_above_one_that_did_not_do_not_count():
    found = at_slo([said(1, PASS), said(2, FAIL), said(4, PASS), said(8, PASS)])
    assert (found.tok_per_sec, found.bound) == (100, EDGE)
    assert found.warnings == ("2 levels passed above one that did not; they do not count",)
    found = at_slo([said(1, FAIL), said(2, PASS)])
    assert found.tok_per_sec is None
    assert found.warnings == ("1 level passed above one that did not; they do not count",)


def test_an_unknown_or_invalid_level_below_bounds_the_figure_too():
    for verdict in (UNKNOWN, INVALID):
        found = at_slo([said(1, PASS), said(2, verdict), said(4, PASS)])
        assert (found.load, found.bound) == (1, FLOOR)


def test_the_figure_of_a_repeated_level_is_the_median():
    levels = [said(1, PASS, 100), said(1, PASS, 130), said(1, PASS, 110), said(2, FAIL, 150)]
    assert at_slo(levels).tok_per_sec == 110
    assert at_slo([*levels[:2], levels[3]]).tok_per_sec == 115


@pytest.mark.parametrize("other", [FAIL, UNKNOWN, INVALID])
def test_repeats_pass_only_if_all_pass(other):
    assert at_slo([said(1, PASS), said(2, PASS), said(2, other)]).load == 1
    assert at_slo([said(1, PASS), said(2, other), said(2, PASS)]).load == 1
    assert at_slo([said(1, PASS), said(2, PASS), said(2, PASS), said(2, other)]).load == 1


@pytest.mark.parametrize("other", [FAIL, UNKNOWN, INVALID])
def test_a_first_measurement_is_outvoted_by_two_that_passed_since(other):
    found = at_slo([said(1, other, 10), said(1, PASS, 100), said(1, PASS, 104)])
    assert (found.tok_per_sec, found.bound, found.load) == (102, FLOOR, 1)
    assert found.warnings == (
        "the level at 1 did not pass at first, and passed each time it was measured again",
    )


def test_the_verdict_of_repeats_is_the_worst_of_them_with_its_reason():
    (group,) = groups([said(2, PASS), said(2, UNKNOWN), said(2, FAIL), said(2, INVALID)])
    assert (group.verdict, group.why) == (FAIL, "fail at 2")


def test_an_unlimited_load_comes_last_by_the_rate_that_was_reached():
    fast, slow = said(None, PASS, 900), said(None, PASS, 500)
    fast = replace(fast, level=replace(fast.level, requests_per_sec=9))
    slow = replace(slow, level=replace(slow.level, requests_per_sec=5))
    ordered = groups([fast, slow, said(100, PASS)])
    assert [group.tok_per_sec for group in ordered] == [10_000, 500, 900]


def test_a_level_without_a_figure_counts_as_none():
    assert groups([Judged(Level(load=3), PASS, "")])[0].tok_per_sec == 0.0


def test_closed_and_open_loop_levels_are_not_one_sweep():
    levels = [said(1, PASS), said(2, PASS, arrival=CONCURRENCY), said(3, PASS), said(1, PASS, arrival=None)]
    with pytest.raises(ValueError, match="closed-loop and open-loop levels are not one sweep"):
        at_slo(levels)
    assert sweeps(levels) == [[levels[0], levels[2]], [levels[1]], [levels[3]]]


# -- Cross-checks

SOUND = Level(
    arrival=CONCURRENCY,
    load=8,
    tok_per_sec=256,
    requests_per_sec=8,
    output_tokens=32,
    ttft=Spread(100, {50.0: 90, 95.0: 200, 99.0: 300}),
    tpot=Spread(28, {50.0: 28, 95.0: 30, 99.0: 31}),
    e2e=Spread(1000, {50.0: 980, 95.0: 1200, 99.0: 1300}),
)


def test_a_sound_level_has_no_warning():
    assert cross_checks(SOUND, SLO) == ()
    assert cross_checks(Level(), SLO) == ()


def test_tokens_that_are_not_requests_times_their_length_are_told():
    assert cross_checks(replace(SOUND, output_tokens=28.9), SLO) == ()
    assert cross_checks(replace(SOUND, output_tokens=28.7), SLO) == (
        "256 tok/s, but 8 requests/s of 28.7 tokens are 229.6",
    )


def test_littles_law_holds_for_a_closed_loop_within_20_percent():
    assert cross_checks(replace(SOUND, load=6.7), SLO) == ()
    assert cross_checks(replace(SOUND, load=16), SLO) == (
        "8 requests were in flight on average, 16 streams were asked",
    )
    assert cross_checks(replace(SOUND, load=16, arrival=POISSON), SLO) == ()


@pytest.mark.parametrize(("name", "shown"), [("ttft", "TTFT"), ("tpot", "TPOT"), ("e2e", "end to end")])
def test_percentiles_that_fall_are_told(name, shown):
    falling = Spread(getattr(SOUND, name).mean, {99.0: 300, 50.0: 400, 95.0: 350})
    spreads = {"ttft": Spread(), "tpot": SOUND.tpot, "e2e": SOUND.e2e, name: falling}
    level = replace(SOUND, ttft=spreads["ttft"], tpot=spreads["tpot"], e2e=spreads["e2e"])
    assert cross_checks(level, SLO) == (f"the percentiles of {shown} do not rise",)


def test_a_ttft_above_the_whole_time_is_told_once():
    level = replace(SOUND, ttft=Spread(1100, {50.0: 1100, 95.0: 1250, 99.0: 1300}))
    assert cross_checks(level, SLO) == ("TTFT p50 is above the end-to-end time",)


def test_seconds_taken_for_milliseconds_are_told():
    level = replace(SOUND, load=None, ttft=Spread(), e2e=Spread(1.25, {50.0: 1.2}))
    assert cross_checks(level, SLO) == ("an answer of 32 tokens in 1.25 ms: are these seconds?",)
    assert cross_checks(replace(level, e2e=Spread(None, {50.0: 1.2})), SLO) == (
        "an answer of 32 tokens in 1.2 ms: are these seconds?",
    )
    assert cross_checks(replace(level, output_tokens=4, tok_per_sec=32), SLO) == ()


def test_a_next_level_without_a_figure_is_named_without_one():
    broken = Judged(Level(arrival=POISSON, load=8, completed=0), INVALID, "no request completed")
    assert at_slo([said(1, PASS), broken]).bracket == "at least 100 tok/s; the next level tried was invalid"
