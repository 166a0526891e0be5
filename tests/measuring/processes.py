"""Whether processes have ended."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress

import psutil


def runs(process: psutil.Process) -> bool:
    """Whether a process goes on; a zombie only waits for whoever reaps orphans on this machine."""
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def all_end(processes: Iterable[psutil.Process]) -> bool:
    """Whether none of them goes on, once the machine has ended those that were killed."""
    left, deadline = list(processes), time.monotonic() + 30
    while (left := [process for process in left if runs(process)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not left
