"""An integer program that grows by arrays, solved in stages under a limit of work."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from sizing.domain.hardware import Bools, Ints
from sizing.domain.solver import Solver

Floats = NDArray[np.float64]
INFINITY = highspy.kHighsInf
TOLERANCE = 1e-6
"""Numbers of the solver that differ by less are equal."""

_ROOT_PRICE = 20

_RELAXED_WORK = 1_000_000_000
"""Entries of the program times steps of the simplex method for one bound: some seconds."""


@dataclass
class Work:
    """What may be spent on one question, never in seconds: a node of the solver's search costs as much
    as its program has entries, a step at the root (cuts, heuristics) many times that."""

    left: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """`values` None: none found. `bound`: no solution has a lower objective. `proven`: the values have
    the lowest objective there is, or without values: there are none."""

    values: Ints | None
    bound: float
    proven: bool


@dataclass
class Program:
    """Columns with bounds 0 to `upper`, rows over them, and one objective after the other."""

    upper: list[Any] = field(default_factory=list)
    whole: list[Bools] = field(default_factory=list)
    width: int = 0
    low: list[Any] = field(default_factory=list)
    high: list[Any] = field(default_factory=list)
    height: int = 0
    entries: list[tuple[Any, Any, Any]] = field(default_factory=list)

    def columns(self, upper: Any, whole: bool = True) -> Ints:
        """Add columns; their numbers."""
        upper = np.atleast_1d(np.asarray(upper, dtype=float))
        self.upper.append(upper)
        self.whole.append(np.full(len(upper), whole))
        first, self.width = self.width, self.width + len(upper)
        return np.arange(first, self.width)

    def rows(self, low: Any, high: Any, row: Any, column: Any, value: Any) -> Ints:
        """Add rows with their entries, whose rows count from the first one added; their numbers."""
        low, high = np.atleast_1d(np.asarray(low, dtype=float)), np.atleast_1d(np.asarray(high, dtype=float))
        first, self.height = self.height, self.height + len(low)
        self.low.append(low)
        self.high.append(high)
        self.add(np.asarray(row) + first, column, value)
        return np.arange(first, self.height)

    def row(self, low: float, high: float, column: Any, value: Any) -> int:
        """Add one row."""
        column = np.atleast_1d(np.asarray(column, dtype=np.int64))
        return int(self.rows(low, high, np.zeros(len(column), dtype=np.int64), column, value)[0])

    def add(self, row: Any, column: Any, value: Any) -> None:
        """Add entries to rows that are there."""
        row, column = np.broadcast_arrays(np.atleast_1d(row), np.atleast_1d(column))
        value = np.broadcast_to(np.asarray(value, dtype=float), row.shape)
        self.entries.append((row, column, value))

    def start(self, work: Work) -> Stages:
        """Hand it to the solver."""
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = self.width, self.height
        lp.col_cost_ = np.zeros(self.width)
        lp.col_lower_ = np.zeros(self.width)
        lp.col_upper_ = _joined(self.upper)
        lp.row_lower_, lp.row_upper_ = _joined(self.low), _joined(self.high)
        row, column, value = (_joined([e[i] for e in self.entries]) for i in range(3))
        key = column.astype(np.int64) * max(self.height, 1) + row.astype(np.int64)
        keys, inverse = np.unique(key, return_inverse=True)
        factor: Any = np.bincount(inverse, weights=value, minlength=len(keys))
        column, row = np.divmod(keys, max(self.height, 1))
        matrix: Any = lp.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kColwise
        matrix.start_ = np.searchsorted(column, np.arange(self.width + 1)).astype(np.int32)
        matrix.index_ = row.astype(np.int32)
        matrix.value_ = factor
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[w] for w in np.concatenate(self.whole).tolist()] if self.whole else []
        entries = (row, column, factor)
        whole = np.concatenate(self.whole) if self.whole else np.zeros(0, dtype=bool)
        return Stages(lp, entries, whole, work)


class Stages:
    """A program at the solver: rows may change their bounds between one objective and the next.

    Presolve of HiGHS 1.16 is wrong at times: it finds programs infeasible that are not, or ends at a solution
    that is not the best. So what is proven never rests on it; what it finds is checked here row by row.
    """

    def __init__(self, lp: Any, entries: tuple[Ints, Ints, Floats], whole: Bools, work: Work) -> None:
        self.width = len(whole)
        self.work = work
        self.presolve_first = False
        """Try presolve before the proof, which pays where there are many columns of little use."""
        self._row, self._column, self._factor = entries
        self._whole = whole
        self._price = max(len(self._row), 1)
        self._bounds = [np.array(b) for b in (lp.row_lower_, lp.row_upper_, lp.col_lower_, lp.col_upper_)]
        self._reserve = 0
        self.solver = Solver()
        self.solver.setOptionValue("mip_allow_restart", False)
        # MiB times the usual tolerance of 1e-6 would round to a claim that does not fit.
        self.solver.setOptionValue("mip_feasibility_tolerance", 1e-9)
        self.solver.passModel(lp)
        self.solver.cbMipInterrupt.subscribe(self._watch)

    def _watch(self, event: Any) -> None:
        self.work.left -= self._price if event.data_out.mip_node_count > 0 else self._price * _ROOT_PRICE
        if self.work.left < self._reserve:
            event.interrupt()

    def limit(self, row: int, low: float, high: float) -> None:
        """Change a row's bounds."""
        self._bounds[0][row], self._bounds[1][row] = low, high
        self.solver.changeRowBounds(row, low, high)

    def limit_column(self, column: int, low: int, high: int) -> None:
        """Change a column's bounds."""
        self._bounds[2][column], self._bounds[3][column] = low, high
        self.solver.changeColBounds(column, low, high)

    def add_row(self, values: Floats) -> int:
        """Add a row without bounds, with a value for each column; its number."""
        columns = np.flatnonzero(values)
        number = len(self._bounds[0])
        self._bounds[0] = np.append(self._bounds[0], -INFINITY)
        self._bounds[1] = np.append(self._bounds[1], INFINITY)
        self._row = np.append(self._row, np.full(len(columns), number))
        self._column = np.append(self._column, columns)
        self._factor = np.append(self._factor, values[columns])
        self.solver.addRow(-INFINITY, INFINITY, len(columns), columns.astype(np.int32), values[columns])
        return number

    def relaxed(self, cost: Floats) -> float | None:
        """A bound on the objective, found where columns need not be whole; None where the rows contradict,
        minus infinity where a large program does not come to one in `_RELAXED_WORK`."""
        self._objective(cost)
        self.solver.setOptionValue("simplex_iteration_limit", max(_RELAXED_WORK // self._price, 1))
        self.solver.setOptionValue("presolve", "on")
        self.solver.setOptionValue("solve_relaxation", True)
        self.solver.run()
        self.solver.setOptionValue("solve_relaxation", False)
        self.solver.setOptionValue("simplex_iteration_limit", 2**31 - 1)
        status = self.solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            return -INFINITY
        return float(self.solver.getInfo().objective_function_value)

    def lowest(self, cost: Floats) -> Outcome:
        """The lowest objective (of whole numbers), for a part of the work that is left."""
        tried = Outcome(None, -INFINITY, False)
        if self.presolve_first:
            relaxed = self.relaxed(cost)
            if relaxed is None:
                return Outcome(None, INFINITY, True)
            bound = ceil(relaxed - TOLERANCE) if relaxed > -INFINITY else relaxed
            tried = self._run(cost, presolve=True)
            tried = _weighed(cost, tried.values, bound)
            if tried.proven:
                return tried
        found = self._run(cost, presolve=False)
        if found.proven and found.values is None:
            return found if tried.values is None else replace(tried, proven=False)
        best = found.values
        if best is None or (tried.values is not None and cost @ tried.values < cost @ best):
            best = tried.values
        return _weighed(cost, best, max(found.bound, tried.bound))

    def _run(self, cost: Floats, presolve: bool) -> Outcome:
        self._objective(cost)
        self._reserve = max(self.work.left, 0) // 2
        self.solver.setOptionValue("presolve", "on" if presolve else "off")
        # A solution of the run before misleads presolve too: it may prove a wrong objective for it.
        self.solver.clearSolver()
        self.solver.run()
        info = self.solver.getInfo()
        if self.solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
            return Outcome(None, INFINITY, True)
        values = np.array(self.solver.getSolution().col_value)
        if info.primal_solution_status != 2 or not self._holds(values):
            return Outcome(None, float(info.mip_dual_bound), False)
        return Outcome(np.rint(values).astype(np.int64), float(info.mip_dual_bound), False)

    def _holds(self, values: Floats) -> bool:
        """Whether a solution, its whole columns rounded, keeps to every row and bound."""
        if len(values) != self.width:
            return False
        exact = np.where(self._whole, np.rint(values), values)
        low, high, least, most = self._bounds
        sums = np.bincount(self._row, weights=self._factor * exact[self._column], minlength=len(low))
        slack = 10 * TOLERANCE
        rows = (sums >= low - slack) & (sums <= high + slack)
        columns = (exact >= least - slack) & (exact <= most + slack)
        return bool(rows.all() and columns.all())

    def _objective(self, cost: Floats) -> None:
        self.solver.changeColsCost(self.width, np.arange(self.width, dtype=np.int32), cost)


def _weighed(cost: Floats, values: Ints | None, bound: float) -> Outcome:
    """A solution is proven where whole numbers leave nothing between it and the bound."""
    proven = values is not None and float(cost @ values) - bound < 1 - TOLERANCE
    return Outcome(values, bound, proven)


def _joined(parts: list[Any]) -> Any:
    return np.concatenate(parts) if parts else np.zeros(0)
