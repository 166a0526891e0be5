"""The whole question up to a priority as one integer program."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, floor, gcd

import numpy as np

from sizing.domain.hardware import Bools, Ints
from sizing.domain.once import once
from sizing.domain.preemption.classes import Classes, classes, expand
from sizing.domain.preemption.layout import Layout
from sizing.domain.preemption.options import Weights, kinds
from sizing.domain.preemption.places import Places
from sizing.domain.preemption.program import INFINITY, TOLERANCE, Floats, Outcome, Program, Stages, Work

_SURE = 2**26
"""Sums up to this are exact for the solver."""

_MOST_MULTIPLES = 100


class Level:
    """Victims up to a priority, with the minima of some models written down.

    Column `got` counts the replicas that are gained; `victims` and `priority_sum` are objectives.
    """

    def __init__(self, layout: Layout, priority: int, written: Bools, wanted: int, work: Work) -> None:
        self.layout = layout
        self.priority = priority
        field, book = layout.field, layout.field.ledger
        use = field.up_to(priority)
        values = book.priority[use]
        least = int(values.min())
        factor = gcd(*np.unique(values - least).tolist()) or 1
        self.one_priority = least == priority
        self.weights = Weights(
            priority=np.where(use, (book.priority - least) // factor, 0),
            model=np.where(book.serving & written[book.model], book.model, -1),
            order=book.order,
        )
        self.program = Program()
        self.classes: Classes = classes(kinds(layout.cells, use, self.weights))
        self.class_columns = self.program.columns(self.classes.upper)
        several = np.bincount(self.classes.class_of, minlength=len(self.classes.parts)) > 1
        column = np.flatnonzero(several[self.classes.class_of])
        number = (np.cumsum(several) - 1)[self.classes.class_of[column]]
        limit = self.classes.upper[self.classes.first[several]]
        self.program.rows(np.full(len(limit), -INFINITY), limit, number, column, 1)
        self.places = Places(layout, self.program, use)
        self.place_columns = np.array(list(self.places.column.values()), dtype=np.int64)
        self._write_models(written)
        self._write_gain(wanted)
        self.victims = self._costs(self.classes.count, np.ones(len(self.places.victims), dtype=np.int64))
        self.priority_sum = self._costs(self.classes.sum, self.weights.priority[self.places.victims])
        used = np.flatnonzero(self.victims)
        self.count_row = self.program.row(-INFINITY, INFINITY, used, self.victims[used])
        used = np.flatnonzero(self.priority_sum)
        self.sum_row = self.program.row(-INFINITY, INFINITY, used, self.priority_sum[used])
        self.wanted = wanted
        self.stages: Stages = self.program.start(work)
        self.stages.presolve_first = len(self.places.victims) > 0

    def _costs(self, of_options: Ints, of_victims: Ints) -> Floats:
        cost = np.zeros(self.program.width)
        cost[self.class_columns] = of_options
        cost[self.place_columns] = of_victims
        return cost

    def _write_models(self, written: Bools) -> None:
        model = self.weights.model[self.places.victims]
        counted = model >= 0
        models = np.concatenate((self.classes.used_model, model[counted]))
        column = np.concatenate((self.classes.used_column, self.place_columns[counted]))
        value = np.concatenate((self.classes.used, np.ones(int(counted.sum()), dtype=np.int64)))
        numbers, row = np.unique(models, return_inverse=True)
        limit = self.layout.field.allowance[numbers]
        self.program.rows(np.full(len(limit), -INFINITY), limit, row, column, value)

    def _write_gain(self, wanted: int) -> None:
        """Replicas gained ≤ what there is room for beyond the room now."""
        layout, program, found = self.layout, self.program, self.classes
        nodes = layout.variant.nodes
        shares = np.array(list(self.places.shares.values()), dtype=np.int64)
        groups = np.array(list(self.places.shares), dtype=np.int64)
        self.got = int(program.columns(wanted)[0])
        if nodes == 1:
            node = layout.hardware.group_node[groups]
            there, at = np.unique(node, return_inverse=True)
            now = np.zeros(len(there), dtype=np.int64)
            np.add.at(now, at, layout.shares_now[groups])
            base = int(np.minimum(now, layout.cap_now[there]).sum())
            column = np.concatenate((self.class_columns, shares, [self.got]))
            value = np.concatenate((found.gain, np.ones(len(shares)), [-1]))
            program.row(base, INFINITY, column, value)
            return
        pools = len(layout.pool_adds)
        most = np.bincount(layout.pool, weights=layout.shares_most, minlength=pools).astype(np.int64) // nodes
        rounds = program.columns(most)
        in_cells = np.ones(len(layout.pool), dtype=bool)
        in_cells[layout.place_groups] = False
        in_cells[layout.fixed_groups] = False
        adds = layout.pool_adds
        plain = in_cells.copy()
        plain[layout.fixed_groups] = adds[layout.pool[layout.fixed_groups]]
        there = np.bincount(layout.pool[plain], weights=layout.shares_now[plain], minlength=pools)
        row = np.concatenate((np.arange(pools), found.pool, layout.pool[groups]))
        column = np.concatenate((rounds, self.class_columns, shares))
        value = np.concatenate((np.full(pools, nodes), -found.gain, -np.ones(len(shares))))
        rows = program.rows(np.full(pools, -INFINITY), there, row, column, value)
        for group, share in self.places.shares.items():
            pool = int(layout.pool[group])
            if not adds[pool]:
                program.row(-INFINITY, 0, [share, int(rounds[pool])], [1, -1])
        # Groups that nothing changes, alike in pool and shares: w ≤ their number × R.
        fixed = layout.fixed_groups[~adds[layout.pool[layout.fixed_groups]]]
        alike, many = np.unique(
            np.column_stack((layout.pool[fixed], layout.shares_now[fixed])), axis=0, return_counts=True
        )
        for (pool, each), multiple in zip(alike.tolist(), many.tolist(), strict=True):
            if each:
                some = int(program.columns(each * multiple, whole=False)[0])
                program.row(-INFINITY, 0, [some, int(rounds[pool])], [1, -multiple])
                program.add(int(rows[pool]), some, -1)
        column = np.concatenate((rounds, [self.got]))
        program.row(layout.field.room_now, INFINITY, column, np.concatenate((np.ones(pools), [-1])))

    @once
    def reach(self) -> int:
        """At most so many replicas, by the relaxation; all of them where gains simply add up."""
        if self.additive:
            return self.wanted
        self.stages.limit_column(self.got, 0, self.wanted)
        relaxed = self.stages.relaxed(-self._gain)
        if relaxed is None or relaxed == -INFINITY:
            return self.wanted
        return floor(TOLERANCE - relaxed)

    def most(self) -> Outcome:
        """The largest gain."""
        self.stages.limit_column(self.got, 0, self.wanted)
        return self.stages.lowest(-self._gain)

    def fewest(self, gain: int) -> Outcome:
        """The fewest victims for a gain."""
        self.stages.limit_column(self.got, gain, gain)
        return self.stages.lowest(self.victims)

    def lowest_sum(self, values: Ints) -> Outcome:
        """The lowest sum of priorities for as many victims as a solution of `fewest` has.

        Priorities far apart (0, 7 and 2,000,000,000) give sums that the solver cannot tell apart. They are
        taken as multiples of some number and what is over, and these go one after the other.
        """
        count = int(self.victims @ values)
        self.stages.limit(self.count_row, count, count)
        sums = self.priority_sum
        if sums.max() * count <= _SURE:
            return self.stages.lowest(sums)
        tried = [
            *np.unique(sums)[1:].tolist(),
            *(10.0**k for k in range(3, 10)),
            ceil(sums.max() * count / _SURE),
        ]
        best: tuple[float, float] | None = None
        for multiple in tried:
            over = sums - np.rint(sums / multiple) * multiple
            spread = float(over.max() - over.min()) * count
            if max(spread, sums.max() / multiple * count) <= _SURE:
                best = min(best or (spread / multiple, multiple), (spread / multiple, multiple))
        if best is None:
            return replace(self.stages.lowest(sums), proven=False)
        return self._by_multiples(best[1], count)

    def _by_multiples(self, multiple: float, count: int) -> Outcome:
        """The lowest sum: for each number of multiples that may give it, fewest first, the least over."""
        times = np.rint(self.priority_sum / multiple)
        over = self.priority_sum - times * multiple
        best = self.stages.lowest(times)
        if best.values is None or not best.proven:
            return replace(best, bound=-INFINITY, proven=False)
        at = int(times @ best.values)
        row = self.stages.add_row(times)
        lowest = float(self.priority_sum @ best.values)
        for number in range(at, at + _MOST_MULTIPLES):
            if multiple * number + count * float(over.min()) >= lowest:
                return Outcome(best.values, lowest, True)
            self.stages.limit(row, number, number)
            found = self.stages.lowest(over)
            if found.values is not None and self.priority_sum @ found.values <= lowest:
                best, lowest = found, float(self.priority_sum @ found.values)
            if not found.proven:
                break
        return Outcome(best.values, -INFINITY, False)

    @once
    def _gain(self) -> Floats:
        cost = np.zeros(self.program.width)
        cost[self.got] = 1
        return cost

    @property
    def additive(self) -> bool:
        """Whether the largest gain is that of stopping everybody."""
        return not len(self.places.victims) and not len(self.classes.used) and self.layout.variant.nodes == 1

    def replicas(self, values: Ints, limited: Bools) -> list[int]:
        """The victims (replicas of the ledger) of a solution."""
        field, book = self.layout.field, self.layout.field.ledger
        left = field.allowance.copy()
        models = np.where(book.serving & limited[book.model], book.model, -1)
        direct = self.places.victims[values[self.place_columns] > 0]
        lost = models[direct]
        np.subtract.at(left, lost[lost >= 0], 1)
        victims: list[int] = direct.tolist()
        return victims + expand(self.classes, values[self.class_columns], self.weights, models, left)
