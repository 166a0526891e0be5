"""The integer solver (HiGHS), silent and the same on every machine."""

from __future__ import annotations

import highspy


class Solver(highspy.Highs):
    """HiGHS on one thread that proves optimality exactly for whole-number objectives."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.setOptionValue("threads", 1)
        self.setOptionValue("random_seed", 0)
        self.setOptionValue("mip_rel_gap", 0.0)
        self.setOptionValue("mip_abs_gap", 0.5)
        # Presolve of integer programs in HiGHS 1.16 at times calls feasible programs infeasible.
        self.setOptionValue("presolve", "off")
        self.setOptionValue("mip_allow_restart", False)

    def enableCallbacks(self) -> None:  # noqa: N802
        # The constructor calls this first, and HiGHS prints its banner here unless it is silent already.
        self.silent()
        super().enableCallbacks()  # type: ignore[no-untyped-call]
