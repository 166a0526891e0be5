"""The schedule of background work, by a clock that nobody sets."""

import time
from datetime import timedelta
from typing import Any

from celery.beat import Scheduler

STEP_S = 2.0
"""What the clock may wander from one look to the next without having been set."""


class SteadyScheduler(Scheduler):
    """Celery's own goes by the time of day: set back an hour, it would send nothing for an hour.

    Keeps no file, which a kill could break for good.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._apart = _apart()

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due; seconds until the next look. Where the clock was set, times are set with it."""
        apart = _apart()
        step = apart - self._apart
        if abs(step) > STEP_S:
            for entry in self.schedule.values():
                entry.last_run_at = (entry.last_run_at or entry.default_now()) + timedelta(seconds=step)
            self._heap = None
        self._apart = apart
        return float(super().tick(*args, **kwargs))


def _apart() -> float:
    """How far the time of day is from the time that only grows."""
    return time.time() - time.monotonic()
