"""The maker of load that is built in: one child process for each level, watched and ended with it."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
from dataclasses import asdict
from json import dumps, loads
from pathlib import Path
from signal import Signals
from time import monotonic
from typing import IO, Any

from sizing.domain.levels import Level
from sizing.measuring.seam import (
    Endpoint,
    Limits,
    Load,
    MeasuringError,
    Probe,
    Progress,
    Stopped,
    Watch,
    Workload,
)

VERSION = "1"
"""Rises when the same server would be measured differently."""

WATCH_EVERY_S = 0.25
STOP_S = 0.5
GRACE_S = 20.0
"""How long beyond its limits a child may take to start and to end, and how long it may be silent."""

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)
"""All that a child gets: it needs no secret of its parent's."""


class Builtin:
    """Makes load from a process beside this one; it needs no child process of `multiprocessing`."""

    @property
    def name(self) -> str:
        return f"builtin {VERSION}"

    def run_level(
        self, endpoint: Endpoint, workload: Workload, load: Load, limits: Limits, watch: Watch
    ) -> Level:
        """Run one level; Stopped where the watcher ended it, MeasuringError where it cannot run."""
        task = {"load": asdict(load), "limits": asdict(limits)}
        said = _converse(endpoint, workload, task, limits.seconds, GRACE_S, watch)
        return Level.from_dict(said["level"])


def probe(endpoint: Endpoint, workload: Workload, deadline_s: float, watch: Watch) -> Probe:
    """Ask an endpoint once or twice, before any load.

    Stopped where the watcher ended it, MeasuringError with the reason where it cannot be measured.
    """
    task = {"probe": {"deadline_s": deadline_s}}
    said = _converse(endpoint, workload, task, deadline_s, deadline_s + GRACE_S, watch)
    return Probe(**said["probe"])


def _converse(
    endpoint: Endpoint,
    workload: Workload,
    task: dict[str, Any],
    seconds: float,
    silent_s: float,
    watch: Watch,
) -> dict[str, Any]:
    """Give a child its task and return its last word, due in `seconds`; it may be silent for `silent_s`."""
    whole = {**task, "parent": os.getpid(), "endpoint": asdict(endpoint), "workload": asdict(workload)}
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            [sys.executable, "-m", "sizing.measuring.loadgen"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=ROOT,
            env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
            start_new_session=True,
        )
        try:
            _hand_over(child, dumps(whole).encode() + b"\n", errors)
            return _listen(child, seconds, silent_s, watch, errors)
        finally:
            _end(child)


def _hand_over(child: subprocess.Popen[bytes], task: bytes, errors: IO[bytes]) -> None:
    """Give the task on stdin, which stays open: its end would end the child."""
    assert child.stdin is not None
    try:
        child.stdin.write(task)
        child.stdin.flush()
    except BrokenPipeError:
        raise MeasuringError(_death(child, errors)) from None


def _listen(
    child: subprocess.Popen[bytes], seconds: float, silent_s: float, watch: Watch, errors: IO[bytes]
) -> dict[str, Any]:
    assert child.stdout is not None
    progress, rest = Progress(), b""
    begin = heard = monotonic()
    watched = 0.0
    while True:
        if monotonic() - watched >= WATCH_EVERY_S:
            if not watch(progress):
                raise Stopped
            watched = monotonic()
        if select.select([child.stdout], [], [], WATCH_EVERY_S)[0]:
            data = os.read(child.stdout.fileno(), 65_536)
            if not data:
                raise MeasuringError(_death(child, errors))
            heard = monotonic()
            *lines, rest = (rest + data).split(b"\n")
            for line in map(loads, lines):
                if "error" in line:
                    raise MeasuringError(line["error"])
                if "progress" not in line:
                    return dict(line)
                progress = Progress(**line["progress"])
        now = monotonic()
        if now - begin > seconds + GRACE_S or now - heard > silent_s:
            raise MeasuringError("the load generator's process did not come to an end and was ended")


def _death(child: subprocess.Popen[bytes], errors: IO[bytes]) -> str:
    """Why a child ended without a result, in one line."""
    try:
        code = child.wait(STOP_S)
    except subprocess.TimeoutExpired:
        return "the load generator's process closed its output"
    if code < 0:
        return f"the load generator's process was killed by {Signals(-code).name}"
    errors.seek(max(errors.seek(0, os.SEEK_END) - 4096, 0))
    said = errors.read().decode(errors="replace").strip().rpartition("\n")[2]
    return f"the load generator's process ended with code {code}{f': {said}' if said else ''}"


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a child, politely first; it holds nothing that needs more than that."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()
