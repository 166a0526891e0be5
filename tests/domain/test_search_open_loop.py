"""The search on a simulated replica under Poisson arrivals.

A step takes 20 ms, 1 ms a sequence and 0.05 ms a prefill token; requests are 64 tokens in, 32 out.
Requests near each other share their fate, so what a level says of its load depends on how long it ran:
the levels here run long, and so say what the search makes of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

from sizing.domain.levels import POISSON, Judged, Level, Slo, Spread, Verdict, judge
from sizing.domain.search import Bounds, next_step
from sizing.domain.throughput import EDGE, at_slo

SLO = Slo(ttft_ms=500, itl_ms=50)
INPUT, OUTPUT, SLOTS, PREFILL = 64, 32, 256, 2048
Times = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """Latencies in ms of each request, and how long all took in seconds."""

    ttft: Times
    tpot: Times
    seconds: float

    @property
    def conform(self) -> int:
        return int(((self.ttft <= 500) & (self.tpot <= 50)).sum())


@cache
def simulate(rate: float, requests: int, seed: int) -> Run:
    due = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, requests)).tolist()
    first, last = [0.0] * requests, [0.0] * requests
    running: list[list[int]] = []
    now, following = 0.0, 0
    while following < requests or running:
        if not running:
            now = max(now, due[following])
        started = following
        room = min(SLOTS - len(running), PREFILL // INPUT)
        while following < requests and due[following] <= now and following - started < room:
            running.append([following, OUTPUT])
            following += 1
        now += 0.020 + 0.001 * len(running) + 0.00005 * INPUT * (following - started)
        for index in range(started, following):
            first[index] = now
        for sequence in running:
            sequence[1] -= 1
            last[sequence[0]] = now
        running = [sequence for sequence in running if sequence[1]]
    ttft = (np.array(first) - np.array(due)) * 1000
    tpot = (np.array(last) - np.array(first)) * 1000 / (OUTPUT - 1)
    return Run(ttft, tpot, now - due[0])


def spread(values: Times) -> Spread:
    return Spread(float(values.mean()), {p: float(np.percentile(values, p)) for p in (50.0, 95.0, 99.0)})


def level(rate: float, requests: int, seed: int) -> Judged:
    run = simulate(rate, requests, seed)
    seen = Level(
        arrival=POISSON,
        load=rate,
        tok_per_sec=requests * OUTPUT / run.seconds,
        sent=requests,
        completed=requests,
        failed=0,
        conform=run.conform,
        ttft=spread(run.ttft),
        tpot=spread(run.tpot),
    )
    return judge(seen, SLO)


def searched(seed: int, requests: int = 2000) -> list[Judged]:
    levels: list[Judged] = []
    while step := next_step(levels, SLO, POISSON, Bounds(0.5, 64)):
        assert 0.5 <= step.load <= 64
        levels.append(level(step.load, requests if step.thorough else 200, 1000 * seed + len(levels)))
    return levels


def share(rate: float) -> float:
    """How many of 40,000 requests meet the SLO."""
    return simulate(rate, 40_000, 99).conform / 40_000


def test_the_simulated_server_meets_the_slo_up_to_about_13_5_requests_a_second():
    assert share(13.4) > 0.95 > share(13.7)


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 7, 8])
def test_poisson_arrivals_are_found_within_7_percent_and_never_above_what_the_server_can_do(seed):
    levels = searched(seed)
    found = at_slo(levels)
    assert len(levels) <= 12
    assert found.bound == EDGE
    assert found.load is not None
    assert found.load >= 0.93 * 13.5
    assert share(found.load) >= 0.95
    assert found.tok_per_sec == pytest.approx(found.load * OUTPUT, rel=0.06)
    assert [j.verdict for j in levels if j.level.load == found.load] == [Verdict.PASS, Verdict.PASS]


def test_closed_loop_flatters():
    # 27 streams make 27 requests in 32 steps of 49.7 ms: 17 requests/s.
    assert share(17) < 0.5
