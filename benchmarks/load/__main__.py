"""A desk of 10,000 nodes under readers of mixed models and one writer a second, all through HTTP.

Run: python -m benchmarks.load [--seconds 300] [--workers 2] [--readers 8] [--pause 0.2]
on SQLite; python -m tests.postgres python -m benchmarks.load ... on PostgreSQL.
Ends with 1 where a call failed, an answer was older than the last write, a p99 is above 10 × its p50, or
the memory of a process grew.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.desk import SESSION, wait_for
from benchmarks.fleets import GPUS_PER_NODE
from benchmarks.load.memory import Memory
from benchmarks.load.readers import Reader, Timings, kinds_of
from benchmarks.load.writer import Writer
from benchmarks.pages import with_targets
from benchmarks.target_http import ROOT, Server, document

MOST_TIMES_THE_MEDIAN = 10
CALLS_TO_WARM = 30
"""Of each reader: each process reads the fleet once, which is told of elsewhere."""


class Desk(Server):
    """The product under gunicorn as ``manage.py up`` runs it, on the database of this run."""

    def __init__(self, folder: Path, workers: int, threads: int) -> None:
        super().__init__(folder)
        self._options = ["--workers", str(workers), "--threads", str(threads)]
        if url := os.environ.get("DATABASE_URL"):
            self.environment["DATABASE_URL"] = url

    def start(self) -> subprocess.Popen[bytes]:
        gunicorn = [sys.executable, "-m", "gunicorn", "llmgw_admin.wsgi", "--bind", f"127.0.0.1:{self.port}"]
        fixed = "--worker-class gthread --log-level warning --keep-alive 900 --no-control-socket"
        return subprocess.Popen([*gunicorn, *self._options, *fixed.split()], cwd=ROOT, env=self.environment)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--pause", type=float, default=0.2, help="seconds of a reader between two calls")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder), asked.workers, asked.threads)
        desk.manage("migrate", "-v0")
        inventory = with_targets(document(asked.nodes))
        path = Path(folder) / "fleet.json"
        path.write_text(json.dumps(inventory))
        begin = perf_counter()
        desk.manage("load_inventory", str(path))
        kind = "PostgreSQL" if "DATABASE_URL" in desk.environment else "SQLite"
        print(f"{asked.nodes:,} nodes loaded into {kind} in {perf_counter() - begin:.0f} s", flush=True)
        session = desk.manage("shell", "-v0", "-c", SESSION).strip()
        token = desk.manage("create_token", "bench", "--label", "benchmark").split()[-1]
        free, replicas = layout(inventory)
        web = desk.start()
        try:
            wait_for(desk)
            fine = load(desk, web.pid, token, session, free, replicas, asked)
        finally:
            web.terminate()
            web.wait()
    sys.exit(0 if fine else 1)


def layout(inventory: dict[str, Any]) -> tuple[dict[str, int], dict[str, list[str]]]:
    """By node how many GPUs are free, and by model its replicas of one GPU."""
    free = {node["name"]: GPUS_PER_NODE for node in inventory["nodes"]}
    replicas: dict[str, list[str]] = {}
    for replica in inventory["replicas"]:
        for place in replica["placement"]:
            free[place["node"]] -= len(place["gpus"])
        if replica["variant"] == "g1":
            replicas.setdefault(replica["model"], []).append(replica["name"])
    return free, replicas


def load(
    desk: Desk,
    web: int,
    token: str,
    session: str,
    free: dict[str, int],
    replicas: dict[str, list[str]],
    asked: argparse.Namespace,
) -> bool:
    """Let all loose for the time asked for, and print what came of it; whether all was well."""
    stop = threading.Event()
    headers = {"Authorization": f"Bearer {token}", "Cookie": f"sessionid={session}"}
    kinds = kinds_of(desk, sum(free.values()))
    readers = [Reader(desk.port, headers, kinds, asked.pause, seed, stop) for seed in range(asked.readers)]
    writer = Writer(desk.port, token, stop, replicas, free)
    for reader in readers:
        reader.start()
    while min(reader.calls for reader in readers) < CALLS_TO_WARM:
        stop.wait(0.1)
    for reader in readers:
        reader.begin()
    memory = Memory(web, stop)
    memory.start()
    writer.start()
    stop.wait(asked.seconds)
    stop.set()
    for thread in (*readers, writer, memory):
        thread.join()
    timings = Timings.of(readers, asked.seconds)
    fine = timings.show(MOST_TIMES_THE_MEDIAN)
    return all((fine, writer.show(), memory.show()))


if __name__ == "__main__":
    main()
