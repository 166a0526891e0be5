"""The space that is left where the desk keeps its state."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from django.conf import settings

LOW_BYTES = 100 * 1024**2
FULL_BYTES = 1024**2


@dataclass(frozen=True, slots=True)
class Disk:
    """Bytes of the file system that DATA_DIR is on."""

    size: int
    free: int

    @property
    def state(self) -> str:
        """`ok`, `low` (under 100 MiB), or `full` (under 1 MiB)."""
        if self.free < FULL_BYTES:
            return "full"
        return "low" if self.free < LOW_BYTES else "ok"


def look() -> Disk:
    """Raises OSError where the folder cannot be looked at."""
    usage = shutil.disk_usage(settings.DATA_DIR)
    return Disk(usage.total, usage.free)
