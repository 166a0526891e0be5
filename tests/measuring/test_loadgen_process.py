"""The process beside the worker: watched, stopped, killed, and never left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from dataclasses import asdict

import psutil
import pytest

from sizing.domain.levels import CONCURRENCY, Slo, Verdict, judge
from sizing.measuring.loadgen.builtin import ROOT, Builtin
from sizing.measuring.seam import Endpoint, Limits, Load, MeasuringError, Progress, Stopped, Workload
from tests.measuring.simulated import simulated_replica

SLO = Slo(ttft_ms=500, itl_ms=50)
LIMITS = Limits(SLO, seconds=30.0)
WORKLOAD = Workload(input_tokens=64, output_tokens=32, seed=1)
KEY = "sk-of-the-endpoint"


def children(of: int | None = None) -> list[psutil.Process]:
    found = psutil.Process(of).children(recursive=True)
    return [child for child in found if "sizing.measuring.loadgen" in child.cmdline()]


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_a_level_comes_back_from_its_process_and_is_watched_meanwhile() -> None:
    told: list[tuple[float, Progress]] = []
    secrets: list[str] = []

    def watch(progress: Progress) -> bool:
        told.append((time.monotonic(), progress))
        for child in children():
            secrets.extend([*child.cmdline(), *child.environ().values()])
        return True

    with simulated_replica(key=KEY) as url:
        endpoint = Endpoint(url, "simulated", key=KEY)
        level = Builtin().run_level(endpoint, WORKLOAD, Load(CONCURRENCY, 8), LIMITS, watch)
    assert judge(level, SLO).verdict is Verdict.PASS
    assert (level.arrival, level.load, level.output_tokens) == (CONCURRENCY, 8, 32)
    assert told[-1][1].completed > 0
    assert secrets
    assert not [text for text in secrets if KEY in text]
    assert not children()


def test_a_watcher_stops_a_level_and_nothing_goes_on() -> None:
    seen: list[int] = []

    def watch(progress: Progress) -> bool:
        seen.extend(child.pid for child in children())
        return progress.sent == 0

    with simulated_replica() as url, pytest.raises(Stopped):
        Builtin().run_level(Endpoint(url, "simulated"), WORKLOAD, Load(CONCURRENCY, 8), LIMITS, watch)
    assert seen
    assert all(gone(pid) for pid in seen)


def test_a_watcher_that_raises_ends_the_process_as_well() -> None:
    def watch(progress: Progress) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Builtin().run_level(
            Endpoint("http://127.0.0.1:9/v1", "m"), WORKLOAD, Load(CONCURRENCY, 1), LIMITS, watch
        )
    assert not children()


def test_a_stuck_process_is_stopped_all_the_same() -> None:
    def watch(progress: Progress) -> bool:
        for child in children():
            child.suspend()
        return not children() or all(child.status() != psutil.STATUS_STOPPED for child in children())

    with simulated_replica() as url, pytest.raises(Stopped):
        Builtin().run_level(Endpoint(url, "simulated"), WORKLOAD, Load(CONCURRENCY, 2), LIMITS, watch)
    assert not children()


def test_a_process_that_is_killed_is_told_by_its_signal() -> None:
    def watch(progress: Progress) -> bool:
        if progress.sent:
            for child in children():
                child.kill()
        return True

    with simulated_replica() as url, pytest.raises(MeasuringError, match=r"was killed by SIGKILL$"):
        Builtin().run_level(Endpoint(url, "simulated"), WORKLOAD, Load(CONCURRENCY, 2), LIMITS, watch)


def test_a_measuring_error_of_the_process_is_raised_with_its_words() -> None:
    endpoint = Endpoint("http://192.0.2.1/v1", "m")
    with pytest.raises(MeasuringError, match=r"^192\.0\.2\.1 is outside the networks that may be measured: "):
        Builtin().run_level(endpoint, WORKLOAD, Load(CONCURRENCY, 2), LIMITS, lambda _: True)


def test_the_process_is_gone_when_its_parent_is_killed() -> None:
    with simulated_replica() as url:
        program = f"""
            from sizing.measuring.loadgen.builtin import Builtin
            from sizing.measuring.seam import *
            from sizing.domain.levels import Slo
            Builtin().run_level(Endpoint({url!r}, "simulated"), Workload(64, 32), Load("concurrency", 4),
                                Limits(Slo(ttft_ms=500), thorough=True), lambda p: True)
        """
        parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], cwd=ROOT)
        try:
            assert wait_for(lambda: len(children(parent.pid)) == 1)
            child = children(parent.pid)[0].pid
            time.sleep(1.0)
        finally:
            os.kill(parent.pid, signal.SIGKILL)
            parent.wait()
        assert wait_for(lambda: gone(child), 3.0)


def test_the_process_ends_when_its_stdin_closes() -> None:
    with simulated_replica() as url:
        child = subprocess.Popen(
            [sys.executable, "-m", "sizing.measuring.loadgen"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        task = {
            "parent": os.getpid(),
            "endpoint": asdict(Endpoint(url, "simulated")),
            "workload": asdict(WORKLOAD),
            "load": asdict(Load(CONCURRENCY, 2)),
            "limits": asdict(LIMITS),
        }
        child.stdin.write(json.dumps(task).encode() + b"\n")
        child.stdin.flush()
        assert "progress" in json.loads(child.stdout.readline())
        child.stdin.close()
        assert child.wait(3) != 0
        child.stdout.close()


def test_a_process_of_another_parent_does_not_begin() -> None:
    task = json.dumps({"parent": 1}).encode() + b"\n"
    child = subprocess.run(
        [sys.executable, "-m", "sizing.measuring.loadgen"], cwd=ROOT, input=task, check=False, timeout=20
    )
    assert child.returncode != 0


def test_levels_may_run_from_several_threads() -> None:
    found = []

    def run(url: str) -> None:
        level = Builtin().run_level(
            Endpoint(url, "simulated"), WORKLOAD, Load(CONCURRENCY, 2), LIMITS, lambda _: True
        )
        found.append(level.failed)

    with simulated_replica() as url:
        threads = [threading.Thread(target=run, args=(url,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [0, 0]
