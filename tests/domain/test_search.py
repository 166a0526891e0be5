"""The search, step by step, on servers whose TPOT is a known curve over the streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from sizing.domain.levels import CONCURRENCY, POISSON, Judged, Level, Slo, Spread, Verdict, judge
from sizing.domain.search import Bounds, Step, most_left, next_step
from sizing.domain.throughput import EDGE, FLOOR, at_slo

SLO = Slo(itl_ms=50)
Curve = Callable[[float], float]
Server = Callable[[Step], Judged]


def observed(load: float, tpot_ms: float, **known: object) -> Level:
    tpot = Spread(tpot_ms, {50.0: tpot_ms, 95.0: tpot_ms, 99.0: tpot_ms})
    level = Level(
        arrival=CONCURRENCY, load=load, tok_per_sec=1000 * load / tpot_ms, completed=100, failed=0, tpot=tpot
    )
    return replace(level, **known)  # type: ignore[arg-type]


def server(curve: Curve) -> Server:
    return lambda step: judge(observed(step.load, curve(step.load)), SLO)


def said(load: float, verdict: Verdict, tpot_ms: float = 25.0, arrival: str = CONCURRENCY) -> Judged:
    return Judged(observed(load, tpot_ms, arrival=arrival), verdict, "so the test says")


def searched(server: Server, bounds: Bounds, arrival: str = CONCURRENCY) -> tuple[list[Judged], list[Step]]:
    levels: list[Judged] = []
    steps: list[Step] = []
    while step := next_step(levels, SLO, arrival, bounds):
        assert most_left(levels, SLO, arrival, bounds) >= 1
        steps.append(step)
        levels.append(server(step))
    assert most_left(levels, SLO, arrival, bounds) == 0
    return levels, steps


def loads(steps: Sequence[Step]) -> list[float]:
    return [step.load for step in steps]


# -- The way, step by step


def test_the_simulated_replica_is_found_at_27_streams_in_7_levels():
    # Step time 20 ms + 1 ms a sequence + 0.05 ms a prefill token, of 64, one request in 32 steps.
    levels, steps = searched(server(lambda streams: 20 + streams + 0.05 * 64 * streams / 32), Bounds(1, 256))
    assert steps == [
        Step(1, False, "lowest load"),
        Step(8, False, "looking for a load that fails"),
        Step(28, False, "looking for a load that fails"),
        Step(26, True, "narrowing"),
        Step(27, True, "narrowing"),
        Step(27, True, "measuring the deciding level again"),
        Step(28, True, "measuring the deciding level again"),
    ]
    found = at_slo(levels)
    assert (found.load, found.bound) == (27, EDGE)
    assert found.tok_per_sec == pytest.approx(543.3, abs=0.1)


def test_without_latencies_at_the_percentile_it_doubles_and_halves():
    def blind(step: Step) -> Judged:
        return said(step.load, Verdict.PASS if step.load <= 11 else Verdict.FAIL)

    without = replace(SLO, percentile=90)
    levels: list[Judged] = []
    while step := next_step(levels, without, CONCURRENCY, Bounds(1, 256)):
        levels.append(blind(step))
    assert [judged.level.load for judged in levels] == [1, 2, 4, 8, 16, 11, 13, 12, 11, 12]


def test_a_limit_that_one_request_alone_misses_is_measured_twice_and_no_more():
    levels, steps = searched(server(lambda _: 51.0), Bounds(1, 256))
    assert loads(steps) == [1, 1]
    assert steps[1] == Step(1, True, "measuring a level again that did not pass")
    assert at_slo(levels).tok_per_sec is None


@pytest.mark.parametrize("verdict", [Verdict.UNKNOWN, Verdict.INVALID])
def test_a_lowest_load_that_tells_nothing_ends_the_search_too(verdict):
    _, steps = searched(lambda step: said(step.load, verdict), Bounds(1, 256))
    assert loads(steps) == [1, 1]


def test_a_lowest_load_that_failed_from_warm_up_is_outvoted_by_two_passes():
    real = server(lambda streams: 20 + streams)
    cold = iter([Verdict.FAIL])
    levels, steps = searched(
        lambda step: replace(real(step), verdict=next(cold, real(step).verdict)), Bounds(1, 256)
    )
    assert loads(steps)[:4] == [1, 1, 1, 8]
    found = at_slo(levels)
    assert (found.load, found.bound) == (30, EDGE)
    assert found.warnings == (
        "the level at 1 did not pass at first, and passed each time it was measured again",
    )


def test_a_limit_that_is_never_reached_ends_at_the_highest_load_with_a_floor():
    levels, steps = searched(server(lambda streams: 20 + streams / 1000), Bounds(1, 100))
    assert loads(steps) == [1, 8, 64, 100, 100]
    assert steps[-1] == Step(100, True, "measuring the deciding level again")
    assert (at_slo(levels).load, at_slo(levels).bound) == (100, FLOOR)


def test_one_load_alone_is_measured_twice():
    levels, steps = searched(server(lambda _: 30.0), Bounds(4, 4))
    assert loads(steps) == [4, 4]
    assert at_slo(levels).bound == FLOOR


def test_bounds_without_a_whole_stream_leave_nothing_to_ask():
    assert next_step([], SLO, CONCURRENCY, Bounds(1.2, 1.8)) is None


def test_a_client_too_slow_is_given_a_second_try_and_then_only_the_floor_is_raised():
    def slow_client(step: Step) -> Judged:
        return said(step.load, Verdict.PASS if step.load <= 20 else Verdict.INVALID)

    levels, steps = searched(slow_client, Bounds(1, 256))
    assert loads(steps)[:4] == [1, 8, 64, 64]
    assert steps[3].purpose == "measuring a level again that did not pass"
    assert max(loads(steps)) == 64
    assert (at_slo(levels).load, at_slo(levels).bound) == (20, FLOOR)


def test_a_client_too_slow_once_does_not_end_the_way_up():
    once = iter([Verdict.PASS, Verdict.PASS, Verdict.INVALID])
    levels, steps = searched(lambda step: said(step.load, next(once, Verdict.PASS)), Bounds(1, 512))
    assert loads(steps) == [1, 8, 64, 64, 64, 512, 512]
    assert (at_slo(levels).load, at_slo(levels).bound) == (512, FLOOR)


def test_a_fail_below_a_pass_has_both_measured_again():
    seen = [said(1, Verdict.PASS), said(4, Verdict.FAIL), said(8, Verdict.PASS)]
    odd = Step(4, True, "measuring a level again that did not pass")
    assert next_step(seen, SLO, CONCURRENCY, Bounds(1, 8)) == odd
    seen.append(said(4, Verdict.PASS))
    assert next_step(seen, SLO, CONCURRENCY, Bounds(1, 8)) == odd
    seen.append(said(4, Verdict.PASS))
    assert next_step(seen, SLO, CONCURRENCY, Bounds(1, 8)) == Step(
        8, True, "measuring the deciding level again"
    )
    seen.append(said(8, Verdict.PASS))
    assert next_step(seen, SLO, CONCURRENCY, Bounds(1, 8)) is None
    assert at_slo(seen).load == 8


def test_a_fail_below_a_pass_that_fails_again_bounds_the_search():
    seen = [said(1, Verdict.PASS), said(4, Verdict.FAIL), said(8, Verdict.PASS), said(4, Verdict.FAIL)]
    step = next_step(seen, SLO, CONCURRENCY, Bounds(1, 8))
    assert step == Step(2, True, "narrowing")


def test_a_deciding_level_that_fails_when_repeated_hands_on_to_the_next_lower_one():
    seen = [said(load, Verdict.PASS, 20 + load) for load in (1, 8, 26)]
    seen += [said(28, Verdict.FAIL, 51), said(27, Verdict.PASS, 49)]
    again = next_step(seen, SLO, CONCURRENCY, Bounds(1, 256))
    assert again == Step(27, True, "measuring the deciding level again")
    seen.append(said(27, Verdict.FAIL, 51))
    assert next_step(seen, SLO, CONCURRENCY, Bounds(1, 256)) == replace(again, load=26)
    seen.append(said(26, Verdict.PASS, 48))
    assert next_step(seen, SLO, CONCURRENCY, Bounds(1, 256)) is None
    assert (at_slo(seen).load, at_slo(seen).bound) == (26, EDGE)


def test_a_quick_pass_above_which_nothing_passes_is_doubted_before_the_levels_run_out():
    quick = replace(said(64, Verdict.PASS, 45), level=observed(64, 45, sent=10, conform=10))
    seen = [said(1, Verdict.PASS), quick, said(120, Verdict.FAIL, 70), said(90, Verdict.FAIL, 60)]
    again = Step(64, True, "measuring the deciding level again")
    assert next_step(seen, SLO, CONCURRENCY, Bounds(1, 256)) == again
    proven = replace(quick, level=observed(64, 45, sent=73, conform=73))
    step = next_step([seen[0], proven, *seen[2:]], SLO, CONCURRENCY, Bounds(1, 256))
    assert step is not None
    assert step.purpose == "narrowing"


def test_open_loop_loads_are_not_whole():
    seen = [said(0.5, Verdict.PASS, 21, POISSON), said(4, Verdict.PASS, 25, POISSON)]
    seen.append(said(5, Verdict.FAIL, 60, POISSON))
    assert next_step(seen, SLO, POISSON, Bounds(0.5, 64)) == Step(4.667, True, "narrowing")


@pytest.mark.parametrize(
    "wrong", [(0, 8), (-1, 8), (9, 8), (float("nan"), 8), (1, 8, 0.0), (1, 8, 0.02, 0)], ids=str
)
def test_bounds_that_leave_nothing_to_search_are_refused(wrong):
    with pytest.raises(ValueError, match=r"rise|needs"):
        Bounds(*wrong)


def test_how_many_levels_may_come_falls_to_none():
    levels: list[Judged] = []
    left = [most_left(levels, SLO, CONCURRENCY, Bounds(1, 256))]
    while step := next_step(levels, SLO, CONCURRENCY, Bounds(1, 256)):
        levels.append(server(lambda streams: 20 + 1.1 * streams)(step))
        left.append(most_left(levels, SLO, CONCURRENCY, Bounds(1, 256)))
    assert left == [12, 11, 10, 7, 3, 2, 1, 0]


def test_the_last_levels_are_kept_for_measuring_what_decides_again():
    _, steps = searched(
        lambda step: said(step.load, Verdict.PASS if step.load <= 200 else Verdict.FAIL), Bounds(1, 256)
    )
    assert len(steps) == 12
    assert [step.purpose for step in steps[-3:]] == ["narrowing", *["measuring the deciding level again"] * 2]


def test_an_outvoted_measurement_does_not_steer_the_way_up():
    seen = [said(1, Verdict.FAIL, 500), said(1, Verdict.PASS), said(1, Verdict.PASS)]
    assert next_step(seen, SLO, CONCURRENCY, Bounds(1, 256)) == Step(
        8, False, "looking for a load that fails"
    )


def test_the_stream_between_a_settled_load_and_one_that_passed_and_failed_is_tried():
    passed, failed = Verdict.PASS, Verdict.FAIL
    found = [said(load, passed) for load in (1, 8, 28)] + [said(35, failed), said(29, failed)]
    found += [said(28, failed), said(26, passed), said(26, passed)]
    step = next_step(found, SLO, CONCURRENCY, Bounds(1, 256))
    assert step == Step(27, True, "narrowing")
