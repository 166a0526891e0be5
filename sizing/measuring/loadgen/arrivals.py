"""When the requests of an open loop are due: a Poisson process, the same for the same seed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from random import Random


def due_times(per_sec: float, seed: int) -> Iterator[float]:
    """Seconds since the start at which requests are due, without end; gaps are exponential."""
    rng = Random(f"arrivals {seed}")
    return accumulate(rng.expovariate(per_sec) for _ in iter(int, 1))


def due_between(per_sec: float, seed: int, begin: float, end: float) -> int:
    """How many requests are due in `[begin, end)`."""
    count = 0
    for at in due_times(per_sec, seed):
        if at >= end:
            return count
        count += at >= begin
    raise AssertionError("arrivals do not end")
