"""The process that makes the load of one level: its task comes on stdin, JSON lines go out on stdout.

It ends at once when stdin closes or its parent dies, so that nothing goes on unwatched.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import resource
import signal
import sys
from dataclasses import asdict
from json import dumps, loads
from typing import Any

from sizing.domain.levels import Slo
from sizing.measuring.loadgen.guard import guarded_session
from sizing.measuring.loadgen.level import LevelRun
from sizing.measuring.loadgen.probe import probe
from sizing.measuring.seam import Endpoint, Limits, Load, MeasuringError, Progress, Workload

PR_SET_PDEATHSIG = 1
MOST_FILES = 65_536
ORPHANED = 3


def main() -> None:
    line = sys.stdin.buffer.readline()
    if not line:
        os._exit(ORPHANED)
    task = loads(line)
    die_with(task["parent"])
    more_files()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)  # a long pause would show up as latency
    try:
        asyncio.run(work(task))
    except MeasuringError as error:
        say("error", str(error))


def die_with(parent: int) -> None:
    """Have Linux kill this process when the parent dies: a fork of the parent may hold our stdin open."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(ORPHANED)


def more_files() -> None:
    """Each request that flies needs a socket; the usual soft limit is 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


async def work(task: dict[str, Any]) -> None:
    """Do the task and say what it gave; MeasuringError where it cannot be done."""
    asyncio.get_running_loop().add_reader(0, end_when_closed)
    endpoint = Endpoint(**{**task["endpoint"], "networks": tuple(task["endpoint"]["networks"])})
    workload = Workload(**task["workload"])
    async with guarded_session(endpoint) as session:
        if "probe" in task:
            found = await probe(session, endpoint, workload, task["probe"]["deadline_s"])
            say("probe", asdict(found))
            return
        limits = Limits(**{**task["limits"], "slo": Slo(**task["limits"]["slo"])})
        run = LevelRun(session, endpoint, workload, Load(**task["load"]), limits, say_progress)
        say("level", (await run.run()).as_dict())


def end_when_closed() -> None:
    if not os.read(0, 4096):
        os._exit(ORPHANED)


def say_progress(progress: Progress) -> None:
    say("progress", asdict(progress))


def say(what: str, value: Any) -> None:
    print(dumps({what: value}), flush=True)


if __name__ == "__main__":
    main()
