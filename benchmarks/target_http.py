"""The target answer over HTTP at 10,000 nodes and 40,000 replicas, beside an empty authenticated view.

Run: python -m benchmarks.target_http [--nodes 10000]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

from benchmarks.fleets import GPU_MEMORY_MIB, GPU_TYPE, GPUS_PER_NODE, whole_fleet

ROOT = Path(__file__).resolve().parents[1]
RUNS = 200
CHANGES = 40
MODEL = "asking"
URGENT = "urgent"
DAY_ONE = "2026-01-01T00:00:00Z"


def document(count: int) -> dict[str, Any]:
    """An inventory of full nodes, a model of the lowest priority that asks for one GPU a replica (fits) or
    eight (does not), and an urgent one that may stop all others down to their minima."""
    nodes, models, replicas = whole_fleet(count)
    asking = {
        "name": MODEL,
        "priority": 0,
        "default_profile": "chat",
        "variants": [{"name": "g1", "gpus": 1}, {"name": "g8", "gpus": 8}],
    }
    urgent = asking | {"name": URGENT, "priority": 10}
    return {
        "version": 1,
        "nodes": [
            {
                "name": n.name,
                "gpus": [{"type": GPU_TYPE, "memory_mib": GPU_MEMORY_MIB, "count": GPUS_PER_NODE}],
            }
            for n in nodes
        ],
        "profiles": [{"name": "chat", "input_tokens": 1024, "output_tokens": 256, "slo": {"ttft_ms": 500}}],
        "models": [
            {
                "name": m.name,
                "priority": m.priority,
                "min_replicas": m.min_replicas,
                "variants": [{"name": v.name, "gpus": v.gpus} for v in m.variants],
            }
            for m in models
        ]
        + [asking, urgent],
        "measurements": [
            {
                "model": model,
                "variant": v,
                "profile": "chat",
                "tok_per_sec": 10,
                "measured_at": "2026-01-01T00:00:00Z",
            }
            for model in (MODEL, URGENT)
            for v in ("g1", "g8")
        ],
        "replicas": [
            {
                "name": r.name,
                "model": r.model,
                "variant": r.variant,
                "state": r.state,
                "placement": [{"node": n, "gpus": list(g)} for n, g in r.placement],
            }
            for r in replicas
        ],
        "targets": [],
    }


class Server:
    """The product under gunicorn on a database of its own."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.environment = {
            **os.environ,
            "DATA_DIR": str(folder),
            "DJANGO_SETTINGS_MODULE": "benchmarks.http_settings",
        }
        self.environment.pop("DATABASE_URL", None)
        self.database = folder / "db.sqlite3"

    def manage(self, *words: str, text: str = "") -> str:
        return subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT, env=self.environment, input=text, text=True, check=True, stdout=subprocess.PIPE,
        ).stdout  # fmt: skip

    def start(self) -> subprocess.Popen[bytes]:
        gunicorn = [sys.executable, "-m", "gunicorn", "llmgw_admin.wsgi", "--bind", f"127.0.0.1:{self.port}"]
        options = [
            "--workers",
            "1",
            "--worker-class",
            "gthread",
            "--threads",
            "4",
            "--log-level",
            "warning",
            "--keep-alive",
            "900",
        ]
        return subprocess.Popen([*gunicorn, *options], cwd=ROOT, env=self.environment)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=10_000)
    count = parser.parse_args().nodes
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        server.manage("migrate", "-v0")
        path = Path(folder) / "fleet.json"
        path.write_text(json.dumps(document(count)))
        begin = perf_counter()
        server.manage("load_inventory", str(path))
        print(f"{count:,} nodes loaded in {perf_counter() - begin:.1f} s")
        server.manage(
            "shell", "-v0", "-c",
            "from django.contrib.auth.models import User; User.objects.create_superuser('bench')",
        )  # fmt: skip
        token = server.manage("create_token", "bench", "--label", "benchmark").split()[-1]
        web = server.start()
        try:
            measure(server, token)
            print(f"memory of the web worker: {resident_mib(web.pid):,} MiB")
        finally:
            web.terminate()
            web.wait()


def measure(server: Server, token: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Authorization": f"Bearer {token}"}

    def get(path: str) -> dict[str, Any]:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        body = response.read()
        assert response.status == 200, body[:300]
        found: dict[str, Any] = json.loads(body)
        return found

    for _ in range(100):
        try:
            get("/empty")
            break
        except OSError:
            connection.close()
            sleep(0.1)
    fitting = f"/api/v1/models/{MODEL}/target?tokens_per_sec=100"
    blocked = f"/api/v1/models/{MODEL}/target?tokens_per_sec=10000&variant=g8"
    begin = perf_counter()
    assert get(fitting)["fits"]
    print(f"first answer of the process: {perf_counter() - begin:.2f} s")
    assert not get(blocked)["fits"]
    empty = timed(lambda: get("/empty"))
    show("empty authenticated view", empty, empty)
    show("target that fits", timed(lambda: get(fitting)), empty)
    show("target that is blocked", timed(lambda: get(blocked)), empty)
    show("fits, after a replica changed", timed(lambda: get(fitting), before=change(server)), empty)
    for variant in ("g1", "g8"):
        path = f"/api/v1/models/{URGENT}/target?variant={variant}&tokens_per_sec="
        free = get(f"{path}1")["free_room"]
        for what, missing in (("1,000 by preempting", 1_000), ("more than can be had", 10**6)):
            question = f"{path}{(free + missing) * 10}"
            begin = perf_counter()
            found = get(question)
            first = (perf_counter() - begin) * 1000
            line = f"{what}, {variant}: {len(found['preemption']['victims']):,} victims"
            show(f"{line}, first time", first, empty)
            show(f"{line}, again", timed(lambda question=question: get(question)), empty)  # type: ignore[misc]
    show("blocked, after a replica changed", timed(lambda: get(blocked), before=change(server)), empty)


def resident_mib(parent: int) -> int:
    """Resident memory of the largest child of a process."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    pages = [int(Path(f"/proc/{child}/statm").read_text().split()[1]) for child in children]
    return max(pages) * os.sysconf("SC_PAGE_SIZE") // 2**20


def change(server: Server) -> Callable[[], None]:
    database = sqlite3.connect(server.database, isolation_level=None)
    names = [row[0] for row in database.execute("SELECT name FROM sizing_replica ORDER BY name LIMIT 1000")]

    def write() -> None:
        name = names.pop()
        database.execute("UPDATE sizing_replica SET state = 'failed' WHERE name = ?", [name])

    return write


def timed(call: Callable[[], Any], before: Callable[[], None] | None = None) -> float:
    """Median milliseconds of a call; what comes before each is not counted."""
    times = []
    for _ in range(RUNS if before is None else CHANGES):
        if before is not None:
            before()
        begin = perf_counter()
        call()
        times.append((perf_counter() - begin) * 1000)
    return median(times)


def show(what: str, took: float, empty: float) -> None:
    print(f"{what:<62}{took:>8.2f} ms {took / empty:>6.2f} x empty")


if __name__ == "__main__":
    main()
