"""A simulated replica as a process of its own, for tests."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parents[2]
KEY_ENV = "SIMULATED_REPLICA_KEY"


@contextmanager
def simulated_replica(
    *,
    t0: float = 20,
    a: float = 1,
    p: float = 0.05,
    max_seqs: int = 256,
    prefill_budget: int = 8192,
    model: str = "simulated",
    faults: Sequence[str] = (),
    key: str = "",
    port: int = 0,
) -> Iterator[str]:
    """Start one that answers, yield its base URL (`http://127.0.0.1:P/v1`), end it whatever happens.

    faults: as after `--fault`, such as `["errors=0.2", "no_usage"]`. key: it asks for this API key.
    """
    numbers = (
        f"--t0 {t0} --a {a} --p {p} --max-seqs {max_seqs} --prefill-budget {prefill_budget} --port {port}"
    )
    command = [sys.executable, "-m", "sizing.measuring.simulated", *numbers.split(), "--model", model]
    command += [word for fault in faults for word in ("--fault", fault)]
    if key:
        command += ["--key-env", KEY_ENV]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | {KEY_ENV: key},
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=_end_with_the_tests,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()  # it is written once the replica listens; nothing at its end
        assert ": http://" in line, f"the simulated replica did not start: {line!r}"
        yield line.split(": ")[-1].strip()
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


def truth(url: str) -> dict[str, Any]:
    """What really happened since the last reset; see `sizing/measuring/simulated/ledger.py`."""
    with urlopen(_root(url) + "/truth", timeout=10) as answer:
        return json.load(answer)


def forget_truth(url: str) -> None:
    """Begin a new account of the truth."""
    urlopen(Request(_root(url) + "/truth", method="DELETE"), timeout=10).close()


def metric(url: str, name: str) -> float:
    """The sum of a metric's series of exactly this name."""
    with urlopen(_root(url) + "/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    found = [float(line.split()[-1]) for line in lines if line.replace("{", " ").split(" ")[0] == name]
    assert found, f"no metric {name}"
    return sum(found)


def _root(url: str) -> str:
    return url.removesuffix("/v1")


def _end_with_the_tests() -> None:
    """For the new process: where the tests are killed, Linux ends it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
