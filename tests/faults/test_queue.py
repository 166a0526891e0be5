"""The folder of the queue loses its messages: the rows say what is to be done, and the sweep wakes again."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests import builders
from tests.faults.rows import measured_once, nothing_runs, queued, wait_for
from tests.infra.desk import Desk

pytestmark = pytest.mark.database


def test_the_queue_is_emptied_while_refreshes_wait(
    desk: Desk, environment: dict[str, str], replica: str
) -> None:
    folder = Path(environment["DATA_DIR"]) / "queue"
    workers = {word: desk.child(f"--queues {word}").pid for word in ("desk", "measuring")}
    node = builders.node("emptied", gpus=1)
    rows = [queued(replica, node, most_levels=1) for _ in range(3)]
    lost = 0
    while lost < 6:  # two sweeps, that is
        for message in folder.iterdir():
            with suppress(FileNotFoundError):
                message.unlink()
                lost += 1
        time.sleep(0.001)
    shutil.rmtree(folder, ignore_errors=True)
    print(f"{lost} messages lost")
    for row in rows:
        wait_for(row, "done")
        measured_once(row, attempts=1)
    assert {word: desk.child(f"--queues {word}").pid for word in workers} == workers
    nothing_runs(desk, replica)
