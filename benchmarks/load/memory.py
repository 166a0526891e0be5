"""The memory of a desk's processes over time: whether it stays."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from statistics import mean

EVERY_S = 5.0
SETTLING = 0.3
"""This share of the run, in which a process meets each question for the first time, is left out."""
MOST_GROWTH = 0.05
"""Between the thirds before and after the middle of what is left, as a share."""


class Memory(threading.Thread):
    """Notes the resident memory of a process's children every few seconds."""

    def __init__(self, parent: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._parent, self._stopped = parent, stop
        self._mib: dict[int, list[float]] = {}

    def run(self) -> None:
        while not self._stopped.wait(EVERY_S):
            for child in children_of(self._parent):
                self._mib.setdefault(child, []).append(resident_mib(child))

    def show(self) -> bool:
        """Print how it went for each process; whether none grew."""
        fine = True
        for pid, sizes in self._mib.items():
            settled = sizes[int(len(sizes) * SETTLING) :]
            third = max(len(settled) // 3, 1)
            early, late = mean(settled[:third]), mean(settled[-third:])
            fine &= late <= early * (1 + MOST_GROWTH)
            print(
                f"process {pid}: {sizes[0]:.0f} MiB at first, {early:.0f} after settling,"
                f" {late:.0f} in the end, {max(sizes):.0f} at most"
            )
        return fine


def children_of(parent: int) -> list[int]:
    """The ids of a process's children."""
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def resident_mib(pid: int) -> float:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
