"""A cluster's list read, counted, mapped and brought in: seconds and memory, beside `json.load` of the file.

Run: python -m benchmarks.kubernetes [--nodes 10000] [--pods 60000] [--indent] | [--file LIST.json[.gz]]

Each step runs in a process of its own, on a new SQLite database. `CPU` are its seconds of work, which a busy
machine hardly lengthens; its memory is the most that the process ever had resident. Without `--file` the list
is synthetic. The command must keep a limit on an empty desk, from its start to its end: 5 s and 400 MiB up to
2,000 nodes, 40 s and 1,500 MiB up to 10,000.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import django

from benchmarks.clusters import GPU, write_cluster

ROOT = Path(__file__).resolve().parents[1]
LIMITS = ((2_000, 5, 400), (10_000, 40, 1_500))

COMMAND = "import_kubernetes"

Result = dict[str, Any]
"""What a step tells: the seconds of its parts, and numbers that it saw."""


class Clock:
    """Seconds of the parts of a step, by the clock and of work."""

    def __init__(self) -> None:
        self.took: dict[str, tuple[float, float]] = {}

    def time(self, name: str, call: Callable[[], Any]) -> Any:
        begin, worked = perf_counter(), process_time()
        found = call()
        self.took[name] = perf_counter() - begin, process_time() - worked
        return found


# ---------------------------------------------------------------- the steps, each in a child


def plain(path: Path) -> Result:
    """The yardstick: the whole file as Python objects."""
    clock = Clock()
    with path.open("rb") as file:
        clock.time("json.load", lambda: json.load(file))
    return {"took": clock.took}


def looked_at(path: Path) -> Result:
    """Read, count, report and map; nothing is stored."""
    from sizing.inventory.kubernetes.counting import count
    from sizing.inventory.kubernetes.mapping import map_pods
    from sizing.inventory.kubernetes.reading import read_listing
    from sizing.inventory.kubernetes.report import report

    clock = Clock()
    with path.open("rb") as file:
        listing = clock.time("read", lambda: read_listing(file))
    counted = clock.time("count", lambda: count(listing))
    clock.time("report", lambda: report(counted))
    clock.time("map", lambda: map_pods(counted, ()))
    return {"took": clock.took, "nodes": len(listing.nodes), "pods": len(listing.pods)}


def brought(path: Path, one_pod_less: bool = False) -> Result:
    """Read and bring in."""
    from sizing.models import InventoryChange
    from sizing.services import kubernetes

    def newest() -> int:
        return InventoryChange.objects.order_by("-id").values_list("id", flat=True).first() or 0

    clock = Clock()
    before = newest()
    with path.open("rb") as file:
        listing = clock.time("read", lambda: kubernetes.read(file))
    if one_pod_less:
        of_one_gpu = (uid for uid, pod in listing.pods.items() if pod.bound and pod.requests.get(GPU) == 1)
        listing.pods.pop(next(of_one_gpu))
    outcome = clock.time("bring", lambda: kubernetes.bring(listing))
    return {"took": clock.took, "rows": outcome.changes["rows"], "changes": newest() - before}


def one_less(path: Path) -> Result:
    """The same without one pod of one GPU."""
    return brought(path, one_pod_less=True)


def commanded(path: Path) -> Result:
    """What an operator runs: the command, from its start to its end."""
    from django.core.management import execute_from_command_line

    with redirect_stdout(io.StringIO()):
        execute_from_command_line(["manage.py", "import_kubernetes", str(path)])
    return {"took": {}}


STEPS: dict[str, Callable[[Path], Result]] = {
    "json.load": plain,
    "look": looked_at,
    "import, first": brought,
    "import, unchanged": brought,
    "import, one pod less": one_less,
    COMMAND: commanded,
}


def peak_mib() -> int:
    """The most memory that this process ever had resident."""
    lines = Path("/proc/self/status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith("VmHWM")]
    return int(line.split()[1]) // 1024


# ---------------------------------------------------------------- the parent


def new_desk(folder: Path) -> dict[str, str]:
    """The environment of a desk with an empty database."""
    environment = os.environ | {"DATA_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "llmgw_admin.settings"}
    environment.pop("DATABASE_URL", None)
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=environment, check=True)
    return environment


def run(step: str, path: Path, environment: dict[str, str]) -> Result:
    begin = perf_counter()
    words = [sys.executable, "-m", "benchmarks.kubernetes", "--step", step, "--file", str(path)]
    done = subprocess.run(words, cwd=ROOT, env=environment, text=True, check=True, stdout=subprocess.PIPE)
    found: Result = json.loads(done.stdout.splitlines()[-1])
    return found | {"in all": (perf_counter() - begin, found["worked"])}


def measure(path: Path, folder: Path) -> bool:
    """Print a line for each part of each step; whether the command kept its limit."""
    desk = new_desk(folder / "steps")
    results = {step: run(step, path, desk) for step in STEPS if step != COMMAND}
    results[COMMAND] = run(COMMAND, path, new_desk(folder / "command"))
    nodes, pods = results["look"]["nodes"], results["look"]["pods"]
    print(f"{nodes:,} nodes, {pods:,} pods, {path.stat().st_size / 2**20:,.0f} MiB")
    yardstick = results["json.load"]["took"]["json.load"][1]
    print(f"{'process':<22}{'part':<12}{'seconds':>9}{'CPU':>9}{'x json.load':>13}{'MiB':>8}  rows touched")
    for step, found in results.items():
        for part, (took, worked) in found["took"].items():
            print(f"{'':<22}{part:<12}{took:>9.2f}{worked:>9.2f}{worked / yardstick:>13.1f}")
        took, worked = found["in all"]
        rows = f"  {found['changes']:,}" if "changes" in found else ""
        peak = f"{worked / yardstick:>13.1f}{found['peak']:>8,}"
        print(f"{step:<22}{'in all':<12}{took:>9.2f}{worked:>9.2f}{peak}{rows}")
    _, seconds, memory = next((limit for limit in LIMITS if nodes <= limit[0]), (0, 0, 0))
    if not seconds:
        return True
    command = results[COMMAND]
    kept = bool(command["in all"][0] <= seconds and command["peak"] <= memory)
    print(f"limit of the command: {seconds} s and {memory:,} MiB: {'kept' if kept else 'BROKEN'}")
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--pods", type=int, default=60_000)
    parser.add_argument("--indent", action="store_true", help="write the list as kubectl prints it")
    parser.add_argument("--file", type=Path, help="a list of your own; .gz is unpacked beforehand")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        django.setup()
        found = STEPS[options.step](options.file)
        print(json.dumps(found | {"peak": peak_mib(), "worked": process_time()}))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "list.json"
        if options.file is None:
            begin = perf_counter()
            write_cluster(path, options.nodes, options.pods, options.indent)
            print(f"written in {perf_counter() - begin:.0f} s")
        elif options.file.suffix == ".gz":
            with gzip.open(options.file) as packed, path.open("wb") as plain_file:
                shutil.copyfileobj(packed, plain_file)
        else:
            path = options.file.resolve()
        kept = measure(path, Path(folder))
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
