"""One process or server is killed in one step of a refresh."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from django.db import connection

from benchmarks.faults.client import Client, newest_of
from benchmarks.faults.judging import Cell, judge, over, wait, with_rows
from benchmarks.faults.setups import LEVELS, server
from sizing.models import BenchLevel, Refresh
from tests.faults.rows import measurable
from tests.infra.desk import Desk, alive
from tests.services.setups import SetUp

STEPS = ("queued", "claimed", "in a level", "between levels", "storing")
VICTIMS = ("web", "worker", "measuring worker", "its process", "schedule", "broker", "database", "all")
STORING_S = 1.5
"""For so long the measurement's row is held up, so that a kill meets the transaction that stores."""

LIMIT_S = 150.0


@dataclass
class Scene:
    """A desk that runs on a set-up, and somebody who asks it."""

    setup: SetUp
    desk: Desk
    client: Client
    replica: str
    undisturbed_s: float = 0.0
    down_s: float = 2.0  # how long a server stays away

    def ask(self, address: str = "") -> Refresh:
        """Ask for a measurement of something new, by default at the one desk."""
        variant, profile = with_rows(lambda: measurable(self.replica))
        model = variant.model
        model.default_profile = profile
        with_rows(model.save)
        status, body = self.client.measure(address or self.desk.address, model.name)
        assert status == 202, (status, body)
        return with_rows(lambda: newest_of(model.name))

    def measuring(self) -> psutil.Process:
        return self.desk.child("--queues measuring")


def kill(scene: Scene, step: str, victim: str, cell: Cell) -> None:
    """One run: a refresh is asked for, brought to a step, and the victim is killed there."""
    cell.runs += 1
    began = time.monotonic()
    with _at(scene, step) as row:
        _kill(scene, victim)
    done = over([row.pk], LIMIT_S)
    cell.seconds.append(max(0.0, time.monotonic() - began - scene.undisturbed_s))
    judge(cell, [row.pk])
    if not done:
        with_rows(lambda: Refresh.objects.filter(pk=row.pk).delete())
    if not wait(lambda: scene.client.get(scene.desk.address, "/admin/")[0] == 200, 30):
        cell.notes.append("the pages did not come back")
    # The next run finds all processes up again.
    for word in ("gunicorn", "--queues desk", "--queues measuring", "--quiet beat"):
        scene.desk.child(word)


@contextmanager
def _at(scene: Scene, step: str) -> Iterator[Refresh]:
    """A refresh that has come to this step."""
    if step == "queued":
        sleeper = scene.measuring()
        sleeper.suspend()
        row = scene.ask()
        try:
            yield row
        finally:
            if alive(sleeper):
                sleeper.resume()
        return
    if step == "storing":
        with _slow_storing():
            row = scene.ask()
            reach(row, "storing")
            time.sleep(STORING_S / 3)
            yield row
        return
    row = scene.ask()
    reach(row, step)
    yield row


def reach(row: Refresh, step: str) -> None:
    """Wait until a refresh has come to this step."""
    now = Refresh.objects.filter(pk=row.pk)
    levels = BenchLevel.objects.filter(refresh=row)
    reached: dict[str, Callable[[], bool]] = {
        "claimed": lambda: now.filter(state=Refresh.State.RUNNING).exists(),
        "in a level": lambda: now.get().live.get("sent", 0) > 0,
        "between levels": levels.exists,
        "storing": lambda: levels.count() == LEVELS,
    }
    found = wait(reached[step], 60, pause_s=0.002)
    assert found, f"{row} did not come so far: {now.values().get()}"


@contextmanager
def _slow_storing() -> Iterator[None]:
    """A new measurement's row takes a while, in the middle of its transaction."""
    if connection.vendor == "postgresql":
        make = [
            "CREATE OR REPLACE FUNCTION held_up() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN IF NEW.refresh_id IS NOT NULL THEN PERFORM pg_sleep({STORING_S}); END IF; "
            "RETURN NEW; END $$",
            "CREATE TRIGGER held_up BEFORE INSERT ON sizing_measurement "
            "FOR EACH ROW EXECUTE FUNCTION held_up()",
        ]
        drop = "DROP TRIGGER IF EXISTS held_up ON sizing_measurement"
    else:
        many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 8000000)"
        make = [
            "CREATE TRIGGER held_up BEFORE INSERT ON sizing_measurement WHEN NEW.refresh_id IS NOT NULL "
            f"BEGIN SELECT count(*) FROM ({many} SELECT x FROM c); END"
        ]
        drop = "DROP TRIGGER IF EXISTS held_up"
    with_rows(lambda: _execute(drop, *make))
    try:
        yield
    finally:
        with_rows(lambda: _execute(drop))


def _execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _kill(scene: Scene, victim: str) -> None:
    desk, setup = scene.desk, scene.setup
    match victim:
        case "web":
            desk.child("gunicorn").kill()
        case "worker":
            os.killpg(desk.child("--queues desk").pid, signal.SIGKILL)
        case "measuring worker":
            scene.measuring().kill()
        case "its process":
            busy = [child for child in scene.measuring().children() if child.children()]
            for child in busy or scene.measuring().children():
                child.kill()
        case "schedule":
            desk.child("--quiet beat").kill()
        case "broker" if not setup.servers:
            shutil.rmtree(Path(desk.environment["DATA_DIR"]) / "queue", ignore_errors=True)
        case "broker" | "database":
            found = server(setup, victim)
            assert found is not None
            found.kill()
            time.sleep(scene.down_s)
            found.start()
        case "all":
            family = desk.family()
            desk.process.kill()
            desk.process.wait()
            wait(lambda: not any(map(alive, family)), 10)
            desk.start()


def undisturbed(scene: Scene, runs: int = 3) -> float:
    """Seconds that a refresh takes where nothing fails."""
    took = []
    for _ in range(runs):
        began = time.monotonic()
        row = scene.ask()
        assert over([row.pk], LIMIT_S)
        took.append(time.monotonic() - began)
    return sorted(took)[runs // 2]
