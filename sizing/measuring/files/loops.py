"""Whether a run was an open or a closed loop, told by what was asked and what came of it."""

from __future__ import annotations

from math import isinf
from typing import NamedTuple

from sizing.domain.levels import CONCURRENCY, POISSON

REACHED_SHARE = 0.9
"""An achieved rate below this share of the asked one was not reached."""


class Loop(NamedTuple):
    """The arrival and the load of a level, and what is odd about them."""

    arrival: str | None
    load: float | None
    warning: str = ""


def loop(rate: float | None, cap: float | None, achieved: float | None) -> Loop:
    """Closed where only the cap limits: at an infinite rate, and where the asked one was not reached.

    Open at a rate, or with everything sent at once, where the load is None. rate, achieved: requests/s;
    cap: requests at once.
    """
    if rate is None:
        return Loop(None, cap)
    if isinf(rate):
        return Loop(POISSON if cap is None else CONCURRENCY, cap)
    if not cap:
        return Loop(POISSON, rate)
    if achieved is not None and achieved < REACHED_SHARE * rate:
        said = (
            f"{rate:,.4g} requests/s were asked and {achieved:,.4g} achieved with at most {cap:,g} at once: "
            f"taken as a closed loop of {cap:,g} streams"
        )
        return Loop(CONCURRENCY, cap, said)
    return Loop(POISSON, rate, f"at most {cap:,g} requests at once: the cap may have held requests back")
