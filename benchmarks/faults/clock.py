"""A time of day of one's own for processes, without setting the machine's; needs a C compiler."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HOUR_S = 3600


@dataclass(frozen=True)
class Clock:
    """The time of day of the processes that are started with this environment."""

    library: Path
    file: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.library), "CLOCK_FILE": str(self.file)}

    def set(self, hours: float) -> None:
        """Off from the machine's by so much, within a second."""
        self.file.write_text(f"{round(hours * HOUR_S)}\n")


def clock_in(folder: Path) -> Clock | None:
    """A clock that goes right as yet; None where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    clock = Clock(folder / "clock.so", folder / "clock")
    source = Path(__file__).with_suffix(".c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(clock.library), str(source)], check=True)
    clock.set(0)
    return clock
