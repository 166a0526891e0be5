"""A server is away for a while, or the disk is full: what people are told, and what becomes of the work."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.db import connection

from benchmarks.faults.judging import Cell, judge, over, wait
from benchmarks.faults.kills import LIMIT_S, Scene, reach
from benchmarks.faults.setups import server
from tests.infra.desk import Desk

PAGES = ("/admin/", "/api/v1/models", "/healthz")
TMPFS_MIB = 24


def gone(scene: Scene, what: str, seconds: float, cell: Cell) -> None:
    """One run: a refresh is measured and two wait when the server goes away.

    While the broker is away another one is asked for: its row has to do without a message.
    """
    cell.runs += 1
    began = time.monotonic()
    rows = [scene.ask()]
    reach(rows[0], "in a level")
    rows += [scene.ask(), scene.ask()]
    before = _processes(scene.desk)
    found = server(scene.setup, what)
    assert found is not None
    found.kill()
    until = time.monotonic() + seconds
    if what == "broker":
        rows.append(scene.ask())
    told = _told(scene)
    while time.monotonic() < until:
        time.sleep(min(1.0, max(0.0, until - time.monotonic())))
        told |= _told(scene)
    found.start()
    _healed(scene, cell, [row.pk for row in rows], before, began + seconds)
    cell.notes.append("meanwhile " + ", ".join(sorted(told)))


def locked(scene: Scene, seconds: float, cell: Cell) -> None:
    """One run: another program holds SQLite's one write lock."""
    cell.runs += 1
    began = time.monotonic()
    row = scene.ask()
    reach(row, "in a level")
    before = _processes(scene.desk)
    with connection.cursor() as cursor:
        cursor.execute("BEGIN IMMEDIATE")
        try:
            until = time.monotonic() + seconds
            told = _told(scene) | _asked(scene)
            time.sleep(max(0.0, until - time.monotonic()))
        finally:
            cursor.execute("ROLLBACK")
    _healed(scene, cell, [row.pk], before, began + seconds)
    cell.notes.append("meanwhile " + ", ".join(sorted(told)))


def full(scene: Scene, seconds: float, cell: Cell) -> None:
    """One run: the disk of DATA_DIR is full, with SQLite and the queue on it."""
    cell.runs += 1
    began = time.monotonic()
    row = scene.ask()
    reach(row, "in a level")
    before = _processes(scene.desk)
    filler = Path(scene.desk.environment["DATA_DIR"]) / "filler"
    until = time.monotonic() + seconds
    told: set[str] = set()
    with filler.open("wb", buffering=0) as file:
        while time.monotonic() < until:
            with suppress(OSError):
                while file.write(b"x" * 4096):
                    pass
            told |= _told(scene) | _asked(scene)
            time.sleep(0.5)
    filler.unlink()
    _healed(scene, cell, [row.pk, scene.ask().pk], before, began + seconds)
    cell.notes.append("meanwhile " + ", ".join(sorted(told)))


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """A small file system of its own at this folder; False where there is no leave to mount one."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_MIB}m,mode=0700", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, check=False, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=False)


def _told(scene: Scene) -> set[str]:
    return {f"{path} {scene.client.get(scene.desk.address, path)[0]}" for path in PAGES}


def _asked(scene: Scene) -> set[str]:
    """What somebody hears who wants to write."""
    status, body = scene.client.label(scene.desk.address)
    return {f"a change {status}: {body[:60]}" if status != 503 else f"a change 503 ({_words(body)})"}


def _words(body: str) -> str:
    return "no space left" if "no space" in body else "away" if "cannot be reached" in body else body[:60]


def _healed(scene: Scene, cell: Cell, pks: list[int], before: dict[str, int], due: float) -> None:
    back = time.monotonic()
    pages = wait(lambda: all(scene.client.get(scene.desk.address, path)[0] == 200 for path in PAGES), 60)
    cell.notes.append(f"pages back in {time.monotonic() - back:.1f} s" if pages else "no pages")
    over(pks, LIMIT_S)
    cell.seconds.append(max(0.0, time.monotonic() - due - scene.undisturbed_s))
    judge(cell, pks)
    changed = [name for name, pid in _processes(scene.desk).items() if before.get(name) != pid]
    if changed:
        cell.notes.append(f"restarted: {', '.join(changed)}")


def _processes(desk: Desk) -> dict[str, int]:
    words = {
        "web": "gunicorn",
        "worker": "--queues desk",
        "measuring worker": "--queues measuring",
        "schedule": "--quiet beat",
    }
    return {name: desk.child(word).pid for name, word in words.items()}
