"""What became of refreshes: lost, doubled, and how late."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TypeVar

from django.db import Error, connection

from sizing.models import MeasuredNode, Measurement, Refresh

T = TypeVar("T")


@dataclass
class Cell:
    """All runs of one fault in one set-up."""

    setup: str
    fault: str
    runs: int = 0
    asked: int = 0
    lost: int = 0
    doubled: int = 0
    seconds: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def line(self) -> str:
        """A row of the table."""
        slowest = f"{median(self.seconds):.1f} / {max(self.seconds):.1f}" if self.seconds else "–"
        notes = "; ".join(dict.fromkeys(self.notes))
        return (
            f"| {self.setup} | {self.fault} | {self.runs} | {self.asked} | {self.lost} | {self.doubled} "
            f"| {slowest} | {notes} |"
        )


HEAD = (
    "| set-up | fault | runs | refreshes | lost | doubled | late: median / most, s | |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- |"
)


def with_rows(look: Callable[[], T], seconds: float = 90.0) -> T:
    """What a query says, once the database can be asked."""
    until = time.monotonic() + seconds
    while True:
        try:
            return look()
        except Error:
            connection.close()
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def wait(true: Callable[[], bool], seconds: float, pause_s: float = 0.05) -> bool:
    """Whether it becomes true in time; a database that is away says nothing."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if true():
                return True
        except Error:
            connection.close()
        time.sleep(pause_s)
    return False


def over(pks: Sequence[int], seconds: float) -> bool:
    """Wait until none of these refreshes is active."""
    active = Refresh.objects.filter(pk__in=pks, state__in=Refresh.ACTIVE)
    return wait(lambda: not active.exists(), seconds)


def judge(cell: Cell, pks: Sequence[int]) -> None:
    """Count them: each should be done, with one measurement, and hold nothing."""
    cell.asked += len(pks)
    for pk in pks:
        row = with_rows(lambda pk=pk: Refresh.objects.get(pk=pk))  # type: ignore[misc]
        stored = Measurement.objects.filter(refresh_id=pk).count()
        held = MeasuredNode.objects.filter(refresh_id=pk).exists()
        if row.state != Refresh.State.DONE or stored == 0 or held:
            cell.lost += 1
            cell.notes.append(f"{row.state}: {row.message or row.error}")
        if stored > 1:
            cell.doubled += 1
        if row.attempts > 1:
            cell.notes.append(f"{row.attempts} attempts")
