"""The admin's board and target page at 10,000 nodes and 40,000 replicas, beside the login page.

Run: python -m benchmarks.pages [--nodes 10000] [--rounds 30]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.desk import Desk, running
from benchmarks.fleets import GPUS_PER_NODE
from benchmarks.target_http import DAY_ONE, MODEL, URGENT, Server, change, document

WISHES = 50
"""Saved targets, each of a model of its own; every other one for more than there is room for."""


TOK_PER_SEC = 10
"""Of each replica."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=30)
    asked = parser.parse_args()

    free = 0

    def fill(server: Server, folder: Path) -> None:
        path = folder / "fleet.json"
        inventory = document(asked.nodes)
        nonlocal free
        free = asked.nodes * GPUS_PER_NODE - sum(
            len(gpus["gpus"]) for replica in inventory["replicas"] for gpus in replica["placement"]
        )
        path.write_text(json.dumps(with_targets(inventory)))
        server.manage("load_inventory", str(path))

    with running(fill) as desk:
        print(f"{asked.nodes:,} nodes; each page beside the login page in turn; medians of {asked.rounds}")
        pages(desk, asked.rounds, free)


def with_targets(inventory: dict[str, Any]) -> dict[str, Any]:
    """The inventory with measured models that somebody asked of."""
    names = [model["name"] for model in inventory["models"] if model["name"].startswith("model-")][:WISHES]
    measured = [
        {"model": name, "variant": "g1", "profile": "chat", "tok_per_sec": 10, "measured_at": DAY_ONE}
        for name in names
    ]
    wishes = [
        {"model": name, "profile": "chat", "tokens_per_sec": 100 if at % 2 else 10**6}
        for at, name in enumerate(names)
    ]
    return inventory | {"measurements": [*inventory["measurements"], *measured], "targets": wishes}


def target(desk: Desk, model: str) -> str:
    """The address of a model's target page, up to the number asked for."""
    found = desk.server.manage(
        "shell", "-v0", "-c",
        f"from sizing.models import ServedModel; print(ServedModel.objects.get(name={model!r}).pk)",
    )  # fmt: skip
    return f"/admin/sizing/servedmodel/{found.strip()}/target/?tokens_per_sec="


def typed(path: str, first: int, rest: str = "") -> Iterator[str]:
    """Addresses that ask for one replica more each."""
    return (f"{path}{first + step * TOK_PER_SEC}{rest}" for step in count(1))


def pages(desk: Desk, rounds: int, free: int) -> None:
    asking, urgent = target(desk, MODEL), target(desk, URGENT)
    changed = change(desk.server)
    wall, processor, _ = desk.timed("/admin/")
    print(f"{'first board of the process':<58}{wall:>8.0f} ms ({processor:.0f} of the processor)")
    g8 = "&variant=g8"
    lines: list[tuple[str, str | Iterator[str], Callable[[], None] | None]] = [
        ("board", "/admin/", None),
        ("board, a group opened", "/admin/?open=no+zone+%C2%B7+NVIDIA-H100-80GB-HBM3", None),
        ("board, after a replica changed", "/admin/", changed),
        ("board, kept current by its script", "/admin/board/live/", None),
        ("target that fits", f"{asking}100", None),
        ("target that fits, a number typed anew", typed(asking, 100), None),
        ("target that fits, after a replica changed", f"{asking}100", changed),
        ("target that is blocked", f"{asking}10000{g8}", None),
        ("target that is blocked, a number typed anew", typed(asking, 10000, g8), None),
        ("target that is blocked, after a replica changed", f"{asking}10000{g8}", changed),
    ]
    for name, many in (("10", 10), ("1,000", 1_000), ("10,000", 10_000), ("more than there are", 10**6)):
        rate = (free + many) * TOK_PER_SEC
        lines.append((f"target that would stop others for {name}", f"{urgent}{rate}", None))
        lines.append(("the same, a number typed anew", typed(urgent, rate), None))
        lines.append(("the same, after a replica changed", f"{urgent}{rate}", changed))
    for what, path, before in lines:
        first = desk.timed(path if isinstance(path, str) else next(path))[1]
        took = desk.beside_login(path, rounds, before)
        print(
            f"{what:<58}{took.clock:>8.1f} ms, processor {took.processor:>8.1f} ms,"
            f" {took.ratio:>5.1f} x login ({took.login_processor:.1f}) {took.size / 1000:>5.0f} kB,"
            f" the first time {first:.0f} ms",
            flush=True,
        )


if __name__ == "__main__":
    main()
