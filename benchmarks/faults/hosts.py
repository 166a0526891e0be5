"""Two hosts on one database: one of them is lost, or its clock is wrong."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.faults.clock import Clock
from benchmarks.faults.judging import Cell, judge, over, wait
from benchmarks.faults.kills import LIMIT_S, Scene, reach
from sizing.models import Refresh
from tests.infra.desk import Desk, alive


def lost(scene: Scene, cell: Cell) -> None:
    """One run: eight refreshes are asked for at two hosts; one host ends while they are measured."""
    cell.runs += 1
    with second_host(scene) as other:
        began = time.monotonic()
        hosts = [scene.desk.address, other.address]
        rows = [scene.ask(hosts[number % 2]) for number in range(8)]
        running = Refresh.objects.filter(pk__in=[row.pk for row in rows], state=Refresh.State.RUNNING)
        wait(lambda: running.count() >= 6, 30)
        family = other.family()
        other.process.kill()
        other.process.wait()
        wait(lambda: not any(map(alive, family)), 10)
        _finish(scene, cell, [row.pk for row in rows], began)
        cell.notes.append("2 hosts with 4 measuring processes each")


def skewed(scene: Scene, hours: int, clock: Clock, cell: Cell) -> None:
    """One run: the second host's clock is wrong by hours; it measures, its measuring process is lost, and the
    first host goes on without it."""
    cell.runs += 1
    clock.set(hours)
    with second_host(scene, clock) as other:
        hosts = [scene.desk.address, other.address]
        rows = [scene.ask(hosts[number % 2]) for number in range(6)]
        assert over([row.pk for row in rows], LIMIT_S)
        own = scene.measuring()
        own.suspend()
        began = time.monotonic()
        try:
            row = scene.ask(other.address)
            reach(row, "in a level")
            for child in other.child("--queues measuring").children():
                child.kill()
        finally:
            own.resume()
        _finish(scene, cell, [*(row.pk for row in rows), row.pk], began)
        told = scene.client.get(other.address, "/healthz")[1]
        if '"worker":"ok"' not in told.replace(" ", ""):
            cell.notes.append(told)


def stepped(scene: Scene, hours: int, clock: Clock, cell: Cell) -> None:
    """One run: the machine's clock is set while one refresh is measured and before another is asked for,
    of which the measuring process is lost."""
    cell.runs += 1
    rows = [scene.ask()]
    reach(rows[0], "in a level")
    clock.set(hours)
    time.sleep(1.5)  # it is looked at each second
    assert over([rows[0].pk], LIMIT_S)
    began = time.monotonic()
    rows.append(scene.ask())
    reach(rows[1], "in a level")
    busy = [child for child in scene.measuring().children() if child.children()]
    for child in busy:
        child.kill()
    _finish(scene, cell, [row.pk for row in rows], began)
    paths = ("/admin/", "/api/v1/models", "/healthz")
    told = [scene.client.get(scene.desk.address, path)[0] for path in paths]
    cell.notes.append(f"afterwards {told}")


@contextmanager
def second_host(scene: Scene, clock: Clock | None = None) -> Iterator[Desk]:
    """Another desk on the same servers, with a data folder of its own."""
    environment = scene.setup.host("b") | (clock.environment if clock else {})
    other = Desk(environment)
    try:
        yield other
    finally:
        if other.process.poll() is None:
            other.stop(signal.SIGTERM)


def _finish(scene: Scene, cell: Cell, pks: list[int], began: float) -> None:
    over(pks, LIMIT_S)
    cell.seconds.append(max(0.0, time.monotonic() - began - scene.undisturbed_s))
    judge(cell, pks)
