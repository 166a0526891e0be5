"""A level against a simulated replica, whose own account of each request is the truth."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from sizing.domain.levels import CONCURRENCY, POISSON, Level, Slo, Verdict, judge
from sizing.measuring.loadgen.guard import guarded_session
from sizing.measuring.loadgen.level import LevelRun
from sizing.measuring.loadgen.summary import Window
from sizing.measuring.seam import Endpoint, Limits, Load, MeasuringError, Progress, Workload
from tests.measuring.loop import in_a_loop
from tests.measuring.simulated import forget_truth, simulated_replica, truth

SLO = Slo(ttft_ms=500, itl_ms=50)
WORKLOAD = Workload(input_tokens=400, output_tokens=32, seed=7)
LIMITS = Limits(SLO, seconds=30.0)
EASY = replace(LIMITS, slo=Slo(ttft_ms=5_000, itl_ms=500))
"""Met even where the machine is busy with something else."""


def run(
    url: str, load: Load, limits: Limits = LIMITS, workload: Workload = WORKLOAD, **endpoint: Any
) -> tuple[Level, Window]:
    """Run one level in this process."""

    async def work() -> tuple[Level, Window]:
        target = Endpoint(url, "simulated", **endpoint)
        async with guarded_session(target) as session:
            level_run = LevelRun(session, target, workload, load, limits, lambda _: None)
            return await level_run.run(), level_run.window

    return in_a_loop(work())


@contextmanager
def counted_tokens(url: str) -> Iterator[Callable[[Window], float]]:
    """Watch the replica's own count of tokens; what is yielded tells its tokens/s in a window."""
    samples: list[tuple[float, float]] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            asked = time.monotonic()
            tokens = truth(url)["totals"]["generation_tokens"]
            samples.append(((asked + time.monotonic()) / 2, tokens))

    def rate(window: Window) -> float:
        at, tokens = zip(*samples, strict=True)
        first, last = np.interp([window.open, window.close], at, tokens)
        return float(last - first) / (window.close - window.open)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield rate
    finally:
        over.set()
        thread.join()


def measured_requests(url: str, window: Window) -> list[dict[str, Any]]:
    """The replica's account of the requests that were measured; it takes them as they are sent."""
    first = window.measured[0].sent
    done = [request for request in truth(url)["requests"] if request["outcome"] == "done"]
    later = sorted((r for r in done if r["arrived_s"] >= first), key=lambda r: r["arrived_s"])
    return later[: len(window.measured)]


def check_against_truth(url: str, level: Level, window: Window, true_rate: float) -> None:
    """tok/s, TTFT and TPOT within 3 % of what the replica did; of TTFT the way there takes a few ms."""
    measured = measured_requests(url, window)
    assert level.tok_per_sec == pytest.approx(true_rate, rel=0.03)
    assert level.ttft.mean == pytest.approx(fmean(r["written"]["ttft_ms"] for r in measured), rel=0.03, abs=6)
    assert level.tpot.mean == pytest.approx(fmean(r["written"]["tpot_ms"] for r in measured), rel=0.03)
    assert (level.completed, level.failed, level.cut) == (len(window.measured), 0, 0)
    assert (level.input_tokens, level.output_tokens, level.counted, level.streamed) == (400, 32, False, True)


@pytest.mark.parametrize("load", [Load(CONCURRENCY, 8), Load(CONCURRENCY, 20), Load(POISSON, 9)], ids=str)
def test_tokens_per_second_ttft_and_tpot_are_what_the_replica_gave(load: Load) -> None:
    with simulated_replica() as url, counted_tokens(url) as true_rate:
        level, window = run(url, load, EASY)
        check_against_truth(url, level, window, true_rate(window))
        assert judge(level, EASY.slo).verdict is Verdict.PASS
        if load.arrival == CONCURRENCY:
            # n streams: 32 steps and the wait for the next one, with everybody's prefill in each cycle.
            cycle_ms = 33 * (20 + load.value * 32 / 33) + load.value * 400 * 0.05
            assert level.tok_per_sec == pytest.approx(32_000 * load.value / cycle_ms, rel=0.03)


@pytest.mark.parametrize("fault", ["chunk_tokens=4", "reasoning", "no_usage"])
def test_streams_of_other_forms_are_measured_right(fault: str) -> None:
    with simulated_replica(faults=[fault]) as url, counted_tokens(url) as true_rate:
        level, window = run(url, Load(CONCURRENCY, 8), EASY)
        true_tpot = fmean(r["written"]["tpot_ms"] for r in measured_requests(url, window))
        assert level.tok_per_sec == pytest.approx(true_rate(window), rel=0.03)
        assert level.tpot.mean == pytest.approx(true_tpot, rel=0.03)
        assert (level.output_tokens, level.counted) == (32, fault == "no_usage")


def test_a_load_beyond_the_slo_fails_and_its_strain_is_told() -> None:
    with simulated_replica(t0=60) as url:
        level, _ = run(url, Load(CONCURRENCY, 10))
    assert level.conform == 0
    assert level.tpot.at[95] > 50
    assert judge(level, SLO).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("errors=0.3", "http 500"),
        ("in_stream_error=0.3", "error in the stream"),
        ("abort=0.3", "cut stream"),
        ("empty=0.3", "empty answer"),
        ("malformed=0.3", "malformed chunk"),
        ("no_stream=0.3", "not a stream"),
        ("busy", "http 429"),
        ("html", "HTML"),
        ("redirect=http://127.0.0.1:9/v1", "redirect"),
        ("endless", "answer too large"),
    ],
)
def test_every_failure_is_counted_by_its_kind_and_fails_the_level(fault: str, kind: str) -> None:
    workload = replace(WORKLOAD, input_tokens=64, output_tokens=8)
    with simulated_replica(t0=10, faults=[fault]) as url:
        level, _ = run(url, Load(CONCURRENCY, 4), workload=workload)
    assert set(level.failures) == {kind}
    assert level.failures[kind] == (level.failed or 0) >= 3
    assert judge(level, SLO).verdict is (Verdict.FAIL if level.completed else Verdict.INVALID)


def test_a_replica_that_dies_in_a_level_ends_it_as_failed_connections() -> None:
    with simulated_replica(t0=5, faults=["die_after=60"]) as url:
        level, _ = run(url, Load(CONCURRENCY, 4), replace(LIMITS, warmup_s=0.2, thorough=True))
    assert set(level.failures) <= {"connect", "connection closed", "cut stream"}
    assert (level.failed or 0) >= 3
    assert judge(level, SLO).verdict is Verdict.FAIL


def test_a_replica_that_hangs_ends_the_level_long_before_its_cap() -> None:
    limits = replace(LIMITS, slo=Slo(ttft_ms=200), warmup_s=0.2, seconds=60.0)
    with simulated_replica(t0=5, faults=["hang=60"]) as url:
        level, window = run(url, Load(POISSON, 20), limits)
    assert window.end - window.start < 40
    assert judge(level, limits.slo).verdict in (Verdict.FAIL, Verdict.INVALID)
    assert (level.sent or 0) - (level.conform or 0) >= 10


@pytest.mark.parametrize(
    ("limits", "load"),
    [
        (replace(LIMITS, thorough=True, seconds=4.0), Load(CONCURRENCY, 2)),
        (replace(LIMITS, thorough=True, requests=20), Load(CONCURRENCY, 4)),
        (replace(LIMITS, thorough=True, bytes=100_000), Load(CONCURRENCY, 4)),
    ],
    ids=["seconds", "requests", "bytes"],
)
def test_the_caps_hold_and_what_was_measured_until_then_is_kept(limits: Limits, load: Load) -> None:
    with simulated_replica() as url:
        forget_truth(url)
        _, window = run(url, load, limits)
        received = sum(flight.bytes for flight in window.flights)
        assert window.end - window.start < limits.seconds + 0.5
        assert truth(url)["totals"]["requests"] == len(window.flights) <= limits.requests
        assert received < limits.bytes + 100_000


def test_a_level_in_which_nothing_completes_is_invalid() -> None:
    with simulated_replica(t0=500) as url:
        level, _ = run(url, Load(CONCURRENCY, 2), replace(LIMITS, seconds=3.0, slo=Slo(e2e_ms=100)))
    assert level.completed == 0
    assert judge(level, SLO).verdict is Verdict.INVALID


def test_requests_in_flight_at_the_end_are_cut_and_left_out() -> None:
    with simulated_replica(t0=150) as url:
        level, _ = run(url, Load(POISSON, 4), replace(LIMITS, seconds=7.0, slo=Slo(itl_ms=1000)))
    assert (level.cut or 0) > 0
    assert level.sent == (level.completed or 0) + (level.failed or 0) == level.conform


def test_a_load_that_cannot_be_made_is_refused() -> None:
    with pytest.raises(MeasuringError, match="a load of 0 "):
        run("http://127.0.0.1:9/v1", Load(POISSON, 0))


def test_an_address_outside_the_networks_breaks_the_level() -> None:
    with pytest.raises(MeasuringError, match="outside the networks"):
        run("http://127.0.0.1:9/v1", Load(CONCURRENCY, 2), networks=("10.0.0.0/8",))


def test_progress_is_told_while_it_runs() -> None:
    told: list[Progress] = []

    async def work(url: str) -> None:
        target = Endpoint(url, "simulated")
        async with guarded_session(target) as session:
            await LevelRun(session, target, WORKLOAD, Load(CONCURRENCY, 4), LIMITS, told.append).run()

    with simulated_replica() as url:
        in_a_loop(work(url))
    assert [p.seconds for p in told] == sorted(p.seconds for p in told)
    assert told[-1].completed > 0
    assert told[-1].tok_per_sec == pytest.approx(32_000 * 4 / (33 * 24 + 4 * 20), rel=0.2)


def test_a_level_that_passes_lasts_as_long_as_it_is_told_to_and_counts_all_its_tokens() -> None:
    with simulated_replica(t0=2, a=0.1) as url:
        short, _ = run(url, Load(CONCURRENCY, 2), replace(EASY, warmup_s=0.2))
        forget_truth(url)
        level, window = run(url, Load(CONCURRENCY, 2), replace(EASY, warmup_s=0.2, least_s=4.0))
        assert short.duration_s is not None
        assert level.duration_s is not None
        assert short.duration_s < 4.0 <= level.duration_s
        assert level.all_tokens == pytest.approx(truth(url)["totals"]["generation_tokens"], rel=0.01)
        assert len(window.flights) > len(window.measured)


def test_a_level_that_fails_does_not_wait_for_its_least_time() -> None:
    with simulated_replica(t0=60) as url:
        level, _ = run(url, Load(CONCURRENCY, 2), replace(LIMITS, warmup_s=0.2, least_s=25.0))
        assert judge(level, SLO).verdict is Verdict.FAIL
        assert level.duration_s is not None
        assert level.duration_s < 25.0
