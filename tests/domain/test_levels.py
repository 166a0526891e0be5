"""The verdict of one level: each rule, and which of them comes first."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sizing.domain.levels import (
    CONCURRENCY,
    POISSON,
    Level,
    Slo,
    Spread,
    Verdict,
    judge,
    resolved,
    strain,
    wilson,
)

SLO = Slo(ttft_ms=500, itl_ms=50)


def spread(p50: float, p95: float, p99: float) -> Spread:
    return Spread(p50, {50.0: p50, 95.0: p95, 99.0: p99})


BY_PERCENTILES = Level(
    arrival=POISSON,
    load=10,
    tok_per_sec=320,
    sent=200,
    completed=200,
    failed=0,
    sent_per_sec=10,
    delay_p95_s=0.01,
    output_tokens=32,
    ttft=spread(100, 400, 450),
    tpot=spread(30, 45, 48),
    e2e=spread(1000, 1800, 1950),
    streamed=True,
)
BY_REQUESTS = replace(BY_PERCENTILES, conform=200)


def verdict(level: Level, slo: Slo = SLO) -> tuple[str, str]:
    judged = judge(level, slo)
    assert judged.level == level
    return judged.verdict.value, judged.why


# -- One request


def test_a_request_meets_the_slo_when_every_limit_set_is_met():
    assert SLO.met(500, 50, None)
    assert not SLO.met(500.1, 50, None)
    assert not SLO.met(500, 50.1, None)
    assert not Slo(e2e_ms=900).met(1, 1, 901)


def test_a_latency_that_is_limited_and_not_known_is_not_met():
    assert not SLO.met(None, 20, 20)
    assert not SLO.met(20, None, 20)
    assert Slo(e2e_ms=900).met(None, None, 900)


# -- A percentile of a spread


@pytest.mark.parametrize(
    ("at", "within"),
    [
        ({95.0: 50}, True),
        ({95.0: 50.01}, False),
        ({99.0: 50}, True),
        ({99.0: 51}, None),
        ({50.0: 51}, False),
        ({50.0: 50}, None),
        ({50.0: 20, 99.0: 90}, None),
        ({50.0: 20, 95.0: 51, 99.0: 90}, False),
        ({}, None),
    ],
    ids=str,
)
def test_a_higher_percentile_within_proves_and_a_lower_one_beyond_disproves(at, within):
    assert Spread(20, at).within(50, 95) is within


def test_a_mean_alone_tells_nothing_of_a_percentile():
    assert Spread(20).within(50, 95) is None
    assert Spread(20).known
    assert not Spread().known


# -- Wilson's interval


def test_73_requests_without_a_violation_prove_95_percent_and_72_do_not():
    assert wilson(72, 72)[0] < 0.95 <= wilson(73, 73)[0]
    assert not resolved(72, 72, 95)
    assert resolved(73, 73, 95)


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [(0, 0, 0, 1), (0, 10, 0, 0.27753), (10, 10, 0.72247, 1), (95, 100, 0.88825, 0.97846)],
)
def test_wilsons_interval_is_that_of_the_tables(hits, of, low, high):
    assert wilson(hits, of) == pytest.approx((low, high), abs=1e-5)


def test_a_share_well_below_is_resolved_early():
    assert resolved(0, 1, 95)
    assert resolved(8, 10, 95)
    assert not resolved(9, 10, 95)
    assert not resolved(0, 0, 95)


# -- By percentiles


def test_every_limited_percentile_within_its_limit_passes():
    assert verdict(BY_PERCENTILES) == ("pass", "every limit met at p95")


def test_a_percentile_beyond_its_limit_fails_and_says_by_how_much():
    level = replace(BY_PERCENTILES, tpot=spread(30, 50.5, 60))
    assert verdict(level) == ("fail", "TPOT of 50.5 ms is beyond 50 ms")


def test_a_percentile_that_is_not_given_is_unknown():
    level = replace(BY_PERCENTILES, tpot=Spread(30, {50.0: 30, 99.0: 60}))
    assert verdict(level) == ("unknown", "TPOT at p95 cannot be told from what is given")
    level = replace(level, ttft=Spread())
    assert verdict(level)[1] == "TTFT and TPOT at p95 cannot be told from what is given"


def test_one_limit_failed_fails_though_another_is_unknown():
    level = replace(BY_PERCENTILES, ttft=Spread(), tpot=Spread(None, {50.0: 51}))
    assert verdict(level) == ("fail", "TPOT of 51 ms is beyond 50 ms")


def test_a_latency_without_a_limit_does_not_matter():
    level = replace(BY_PERCENTILES, ttft=Spread(), tpot=Spread(), streamed=None)
    assert verdict(level, Slo(e2e_ms=1800))[0] == "pass"
    assert verdict(level, Slo(e2e_ms=1799))[0] == "fail"


def test_another_percentile_is_judged_by_itself():
    assert verdict(BY_PERCENTILES, replace(SLO, itl_ms=47, percentile=99)) == (
        "fail",
        "TPOT of 48 ms is beyond 47 ms",
    )


def test_the_ttft_of_an_answer_in_one_piece_is_not_known():
    level = replace(BY_PERCENTILES, streamed=False)
    assert verdict(level)[0] == "unknown"
    assert verdict(level, Slo(e2e_ms=1800))[0] == "pass"


# -- By requests


def test_enough_requests_within_the_limits_pass():
    assert verdict(replace(BY_REQUESTS, conform=198)) == ("pass", "198 of 200 requests (99 %) met the SLO")


def test_few_requests_without_a_violation_pass_too():
    level = replace(BY_REQUESTS, sent=10, completed=10, conform=10)
    assert verdict(level) == ("pass", "10 of 10 requests (100 %) met the SLO")


def test_a_violation_among_few_is_neither_a_pass_nor_a_fail():
    level = replace(BY_REQUESTS, sent=100, completed=100, conform=96)
    assert verdict(level) == (
        "unknown",
        "96 of 100 requests (96 %) met the SLO: too few to tell them from 95 %",
    )


def test_less_than_the_percentile_fails_and_names_the_worst_latency():
    level = replace(BY_REQUESTS, conform=189, tpot=spread(30, 52, 60))
    why = "189 of 200 requests (94.5 %) met the SLO, 95 % must; TPOT p95 52 ms, limit 50 ms"
    assert verdict(level) == ("fail", why)


def test_failed_requests_count_among_those_sent():
    # 1 of 100 failed, which may be; with 5 more that missed the SLO, 94 % conform.
    level = replace(BY_REQUESTS, sent=100, completed=99, failed=1, conform=94)
    assert verdict(level)[0] == "fail"


def test_requests_cut_by_the_end_do_not_count():
    assert verdict(replace(BY_REQUESTS, cut=50))[0] == "pass"


def test_unstreamed_answers_are_unknown_unless_their_whole_time_fails():
    level = replace(BY_REQUESTS, streamed=False, conform=0)
    assert verdict(level) == ("unknown", "the answers were not streamed, so TTFT and TPOT are not known")
    assert verdict(level, replace(SLO, e2e_ms=1700)) == ("fail", "end to end of 1,800 ms is beyond 1,700 ms")
    assert verdict(replace(level, conform=200), Slo(e2e_ms=1800))[0] == "pass"


def test_no_request_that_ended_is_invalid():
    level = replace(BY_REQUESTS, sent=0, completed=None, failed=None, conform=0)
    assert verdict(level) == ("invalid", "no request ended")


# -- Failures


@pytest.mark.parametrize("form", [BY_PERCENTILES, BY_REQUESTS], ids=["percentiles", "requests"])
def test_more_than_1_percent_failed_fails(form):
    just = replace(form, sent=200, completed=198, failed=2)
    assert just.failed_share == 0.01
    assert verdict(just)[0] == "pass"
    level = replace(form, sent=200, completed=197, failed=3)
    assert verdict(level) == ("fail", "1.5 % of the requests failed, at most 1 % may")


@pytest.mark.parametrize(
    "lost", [{"failed": None}, {"completed": None}, {"completed": 0, "failed": 0}], ids=str
)
def test_a_share_of_failures_that_cannot_be_known_is_not_known(lost):
    assert replace(BY_PERCENTILES, **lost).failed_share is None


# -- Invalid


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ({"cancelled": True}, "the run was cancelled"),
        ({"completed": 0, "failed": 200}, "no request completed"),
        ({"tok_per_sec": 0.0}, "no tokens came"),
        ({"tok_per_sec": float("nan")}, "no tokens came"),
        ({"ttft": spread(0, 0, 0)}, "TTFT is 0 although tokens came: it was not measured"),
        ({"tpot": Spread(0.0)}, "TPOT is 0 although tokens came: it was not measured"),
        ({"e2e": spread(0, 0, 0)}, "end to end is 0 although tokens came: it was not measured"),
    ],
    ids=str,
)
def test_a_run_that_measured_nothing_is_invalid_whatever_else_it_shows(what, why):
    slow = replace(BY_PERCENTILES, tpot=spread(80, 90, 95), delay_p95_s=5)
    assert verdict(replace(slow, **what)) == ("invalid", why)


def test_a_tpot_of_0_is_right_for_answers_of_one_token():
    level = replace(BY_PERCENTILES, output_tokens=1, tpot=spread(0, 0, 0))
    assert verdict(level)[0] == "pass"


def test_a_client_that_sent_below_90_percent_of_the_rate_makes_a_pass_invalid():
    assert verdict(replace(BY_PERCENTILES, sent_per_sec=9.0))[0] == "pass"
    why = "the client sent 8.9 requests/s of 10 asked: it did not keep up"
    assert verdict(replace(BY_PERCENTILES, sent_per_sec=8.9)) == ("invalid", why)


def test_a_closed_loop_has_no_rate_to_keep():
    assert verdict(replace(BY_PERCENTILES, arrival=CONCURRENCY, sent_per_sec=1))[0] == "pass"


def test_a_client_that_sent_a_second_late_makes_a_pass_invalid():
    assert verdict(replace(BY_PERCENTILES, delay_p95_s=1.0))[0] == "pass"
    why = "the client sent late (p95 1.2 s): it did not keep up"
    assert verdict(replace(BY_PERCENTILES, delay_p95_s=1.2)) == ("invalid", why)


def test_a_low_completed_rate_is_saturation_and_judged_by_the_slo():
    assert verdict(replace(BY_PERCENTILES, requests_per_sec=2))[0] == "pass"


def test_a_failed_slo_is_a_fail_even_where_the_client_was_slow_too():
    level = replace(BY_PERCENTILES, tpot=spread(30, 52, 60), delay_p95_s=5, sent_per_sec=1)
    assert verdict(level)[0] == "fail"
    assert verdict(replace(level, tpot=Spread()))[0] == "unknown"


# -- Strain


def test_strain_is_the_largest_share_of_a_limit_that_is_used_up():
    assert strain(BY_PERCENTILES, SLO) == 0.9
    assert strain(BY_PERCENTILES, Slo(ttft_ms=400, itl_ms=50)) == 1.0
    assert strain(BY_PERCENTILES, Slo(e2e_ms=900)) == 2.0


def test_strain_is_not_known_where_one_limited_latency_is_not():
    assert strain(replace(BY_PERCENTILES, ttft=Spread(100)), SLO) is None
    assert strain(replace(BY_PERCENTILES, streamed=False), SLO) is None
    assert strain(BY_PERCENTILES, replace(SLO, percentile=90)) is None


# -- Kept as JSON

NUMBERS = st.none() | st.floats(0, 1e9)
COUNTS = st.none() | st.integers(0, 10**9)
PERCENTILES = st.sampled_from([1.0, 5.0, 50.0, 90.0, 95.0, 97.5, 99.0, 99.9, 99.99])
SPREADS = st.builds(Spread, NUMBERS, st.dictionaries(PERCENTILES, st.floats(0, 1e9)))
FLAGS = {"streamed": st.none() | st.booleans(), "cancelled": st.booleans(), "counted": st.booleans()}
OF_KIND = {"float | None": NUMBERS, "int | None": COUNTS, "Spread": SPREADS}
KINDS = {f.name: OF_KIND[str(f.type)] for f in fields(Level) if str(f.type) in OF_KIND}
LEVELS = st.builds(
    Level,
    **KINDS,
    **FLAGS,
    arrival=st.sampled_from([None, POISSON, CONCURRENCY]),
    failures=st.dictionaries(st.text(max_size=8), st.integers(1, 99), max_size=3),
    warnings=st.lists(st.text(max_size=8), max_size=3).map(tuple),
)


@given(LEVELS)
def test_a_level_comes_back_from_json_as_it_was(level):
    assert Level.from_dict(json.loads(json.dumps(level.as_dict()))) == level


def test_percentiles_are_kept_under_short_names():
    assert Level(ttft=Spread(1.5, {50.0: 1, 99.9: 2})).as_dict()["ttft"] == {
        "mean": 1.5,
        "at": {"50": 1, "99.9": 2},
    }


def test_keys_of_another_version_are_left_aside_and_missing_ones_not_known():
    level = Level.from_dict({"load": 4, "novelty": 1, "tpot": None})
    assert level == Level(load=4)


def test_a_verdict_is_its_word():
    assert [str(v) for v in Verdict] == ["pass", "fail", "unknown", "invalid"]
