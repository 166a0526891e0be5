"""The real GuideLLM against a simulated replica.

These tests exist only where it is installed (`GUIDELLM_BIN` names it, or `guidellm` is on the PATH), so that
nothing is skipped elsewhere.
"""

from __future__ import annotations

import os
import shutil
import statistics

import psutil
import pytest

from sizing.domain.levels import CONCURRENCY, POISSON, Judged, Level, Slo, Verdict, judge
from sizing.measuring.bench import Effort, Plan, Status, measure
from sizing.measuring.guidellm import GuideLlm
from sizing.measuring.loadgen.builtin import Builtin
from sizing.measuring.seam import (
    Endpoint,
    Limits,
    Load,
    Maker,
    Progress,
    Stopped,
    Workload,
)
from tests.measuring.processes import all_end
from tests.measuring.simulated import simulated_replica, truth

REAL = os.environ.get("GUIDELLM_BIN") or shutil.which("guidellm")

SLO = Slo(ttft_ms=500, itl_ms=50)
LIMITS = Limits(SLO)
WORKLOAD = Workload(64, 32, seed=5, extras={"ignore_eos": True})


if REAL:

    def measured(url: str, load: Load, thorough: bool = False, key: str = "") -> Level:
        limits = Limits(SLO, thorough=thorough, seconds=30)
        endpoint = Endpoint(url, "simulated", key=key)
        return GuideLlm(str(REAL)).run_level(endpoint, WORKLOAD, load, limits, lambda progress: True)

    @pytest.mark.parametrize("streams", [8, 20])
    def test_streams_are_measured_as_they_are_served(streams):
        with simulated_replica() as url:
            level = measured(url, Load(CONCURRENCY, streams), thorough=True)
            real = truth(url)
        done = [request for request in real["requests"] if request["outcome"] == "done"]
        assert level.tpot.mean == pytest.approx(statistics.mean(r["tpot_ms"] for r in done), rel=0.03)
        tokens, busy_s = real["totals"]["generation_tokens"], real["steps"]["busy_s"]
        assert level.tok_per_sec == pytest.approx(tokens / busy_s, rel=0.03)
        assert (level.input_tokens, level.output_tokens, level.failed) == (64, 32, 0)
        assert level.conform == level.sent
        assert judge(level, SLO).verdict is Verdict.PASS

    def test_arrivals_come_at_the_rate_that_was_asked():
        with simulated_replica() as url:
            level = measured(url, Load(POISSON, 8), thorough=True)
            real = truth(url)
        done = [request for request in real["requests"] if request["outcome"] == "done"]
        assert level.tpot.mean == pytest.approx(statistics.mean(r["tpot_ms"] for r in done), rel=0.03)
        assert level.requests_per_sec is not None
        assert level.tok_per_sec == pytest.approx(32 * level.requests_per_sec, rel=0.1)
        assert level.delay_p95_s is not None
        assert level.delay_p95_s < 0.5

    def test_a_key_and_a_name_reach_the_server():
        with simulated_replica(key="a secret") as url:
            level = measured(url.replace("127.0.0.1", "localhost"), Load(CONCURRENCY, 2), key="a secret")
        assert (level.failed, level.failures) == (0, {})

    @pytest.mark.parametrize(
        ("fault", "reason"),
        [
            ("errors", "http 500"),
            ("busy", "http 429"),
            ("empty", "no token in the answer"),
            ("in_stream_error", "error in the stream"),
            ("abort", "cut stream"),
            ("malformed", "malformed chunk"),
        ],
    )
    def test_a_server_that_only_fails_is_a_level_with_the_reason(fault, reason):
        with simulated_replica(faults=[fault]) as url:
            level = measured(url, Load(CONCURRENCY, 2))
        assert level.completed == 0
        assert set(level.failures) == {reason}
        assert judge(level, SLO).verdict is Verdict.INVALID

    def test_redirects_are_not_followed():
        with simulated_replica() as elsewhere, simulated_replica(faults=[f"redirect={elsewhere}"]) as url:
            level = measured(url, Load(CONCURRENCY, 2))
            assert truth(elsewhere)["totals"]["requests"] == 0
        assert set(level.failures) == {"http 302"}

    def test_both_makers_find_the_same_capacity():
        found = [searched(maker_of_load) for maker_of_load in (Builtin(), GuideLlm(str(REAL)))]
        assert found[1] == pytest.approx(found[0], rel=0.05)

    def searched(maker_of_load: Maker) -> float | None:
        effort = Effort(level_s=30, lowest=16, highest=48)
        with simulated_replica() as url:
            endpoint = Endpoint(url, "simulated")
            plan = Plan(endpoint, WORKLOAD, SLO, CONCURRENCY, maker_of_load, effort)
            return measure(plan, Unhurried()).throughput.tok_per_sec

    class Unhurried:
        """Follows a measurement to its end."""

        def status(self, status: Status) -> bool:
            return True

        def level(self, position: int, judged: Judged) -> bool:
            return True

    def test_a_real_run_is_ended_as_a_whole():
        seen: dict[int, psutil.Process] = {}

        def watch(progress: Progress) -> bool:
            seen.update({child.pid: child for child in psutil.Process().children(recursive=True)})
            return not truth(url)["totals"]["requests"]

        with simulated_replica(faults=["endless"]) as url:
            watch_from = {child.pid for child in psutil.Process().children()}
            maker_of_load = GuideLlm(str(REAL))
            with pytest.raises(Stopped):
                maker_of_load.run_level(
                    Endpoint(url, "simulated"), WORKLOAD, Load(CONCURRENCY, 2), LIMITS, watch
                )
            started = [child for pid, child in seen.items() if pid not in watch_from]
        assert len(started) > 3
        assert all_end(started)
