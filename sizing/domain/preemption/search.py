"""The search: the most replicas, then the lowest priorities, the fewest victims, the lowest sum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor

import numpy as np

from sizing.domain.hardware import Bools, Ints
from sizing.domain.preemption.field import Field
from sizing.domain.preemption.layout import Layout
from sizing.domain.preemption.level import Level
from sizing.domain.preemption.program import INFINITY, TOLERANCE, Outcome, Work

WORK = 60_000_000
"""What one question may cost the solver (see `Work`): some seconds on a large cluster."""

MOST_IN_ORDER = 240
"""Candidates among which the choice between equals is searched victim by victim."""

_BLOCK = 16


@dataclass
class Proof:
    """What is proven of every choice: it gives at most `gives`; where it gives as many as the one found, its
    highest priority is at least `priority`, and with no higher one it has at least `victims`."""

    gives: int
    priority: int | None = None
    victims: int | None = None
    complete: bool = True


class Search:
    """One question's search; `levels` are the priorities that candidates have, ascending.

    `apart`: by the plain program with a column for every victim, slow on large clusters. `layout`: the
    field's, where it is known.
    """

    def __init__(
        self,
        field: Field,
        wanted: int,
        work: int = WORK,
        apart: bool = False,
        layout: Layout | None = None,
    ) -> None:
        self.field = field
        self.wanted = wanted
        self.work = work
        self.apart = apart
        self.layout = layout
        book, candidates = field.ledger, field.candidates
        self.levels: list[int] = np.unique(book.priority[candidates]).tolist()
        self.columns = 0
        """Most victims that had a column of their own, which is what makes a program slow."""
        counted = candidates & book.serving
        could = np.bincount(book.model[counted], minlength=len(book.models))
        self.limited: Bools = could > field.allowance
        """By model: some choice would take it below its minimum."""

    def bound(self, level: int) -> int:
        """At most so many replicas with victims up to a level: what stopping all of them would give."""
        return self.field.gain_up_to(self.levels[level], self.wanted)

    def run(self) -> tuple[list[int], Proof]:
        """The victims (replicas of the ledger) and what is proven."""
        if not self.levels or self.bound(len(self.levels) - 1) <= 0:
            return [], Proof(0)
        layout = self.layout or Layout(self.field, self.apart)
        written = np.zeros_like(self.limited)
        if not len(layout.cells.victim):
            written = self.limited
        while True:
            victims, proof = self._lexicographic(layout, written)
            broken = self.broken(victims)
            if not broken.any():
                break
            # Minima are written down as they break: some, and then all.
            some = 2 * int(broken.sum()) <= int(self.limited.sum())
            first = not written.any()
            written = written | broken if some and first and proof.complete else self.limited
        if not proof.complete:
            victims = self._spared(victims or np.flatnonzero(self.field.allowed).tolist())
        elif victims:
            victims = self._preferred(victims)
        return victims, proof

    def broken(self, victims: list[int]) -> Bools:
        """By model: whether these victims take it below its minimum."""
        book = self.field.ledger
        lost = np.array([v for v in victims if book.serving[v]], dtype=np.int64)
        losses = np.bincount(book.model[lost], minlength=len(book.models))
        result: Bools = losses > self.field.allowance
        return result

    def _lexicographic(self, layout: Layout, written: Bools) -> tuple[list[int], Proof]:
        work = Work(self.work)
        made: dict[int, Level] = {}

        def level(number: int) -> Level:
            if number not in made:
                made[number] = Level(layout, self.levels[number], written, self.wanted, work)
                self.columns = max(self.columns, len(made[number].places.victims))
            return made[number]

        top = len(self.levels) - 1
        proof = Proof(self.bound(top))
        at = 0
        while proof.gives > 0:
            while at < top and self.bound(at) < proof.gives:
                at += 1
            here = level(at)
            fewest = here.fewest(proof.gives)
            if fewest.values is not None:
                return self._cheapest(here, fewest, proof)
            if not fewest.proven:
                proof.complete = False
                proof.priority = self.levels[at] if proof.priority is None else proof.priority
            if at < top:
                at += 1
                continue
            if here.reach < proof.gives:
                proof, at = Proof(here.reach), 0
                continue
            most = here.most()
            if most.values is None:
                return [], replace(proof, complete=False, priority=None)
            gain = int(most.values[here.got])
            if most.proven and gain < proof.gives:
                proof, at = Proof(gain), 0
                continue
            known = proof.priority if gain == proof.gives else None
            proof = Proof(min(proof.gives, floor(TOLERANCE - most.bound)), known, None, False)
            if gain == 0:
                return [], proof
            fewest = here.fewest(gain)
            if fewest.values is None:
                fewest = Outcome(most.values, -INFINITY, False)
            return self._cheapest(here, fewest, proof)
        return [], proof

    def _cheapest(self, here: Level, fewest: Outcome, proof: Proof) -> tuple[list[int], Proof]:
        """The lowest sum among the fewest."""
        values = fewest.values
        assert values is not None
        if proof.complete:
            proof.priority = here.priority
        if fewest.bound > -INFINITY:
            proof.victims = ceil(fewest.bound - TOLERANCE)
        if fewest.proven and not here.one_priority:
            lowest = here.lowest_sum(values)
            values = values if lowest.values is None else lowest.values
            proof.complete &= lowest.proven
        proof.complete &= fewest.proven
        return here.replicas(values, self.limited), proof

    def _spared(self, victims: list[int]) -> list[int]:
        """The fewest of these victims that give as much."""
        field = replace(self.field, candidates=self._mask(victims))
        gives = field.gain(field.candidates, self.wanted)
        if gives <= 0:
            return []
        nothing = np.zeros_like(self.limited)
        level = Level(Layout(field), self.levels[-1], nothing, self.wanted, Work(self.work))
        fewest = level.fewest(gives)
        if fewest.values is not None:
            victims = level.replicas(fewest.values, nothing)
        if not fewest.proven:
            for victim in sorted(victims, key=lambda v: (-field.ledger.priority[v], -field.ledger.order[v])):
                fewer = [v for v in victims if v != victim]
                if field.gain(self._mask(fewer), self.wanted) == gives:
                    victims = fewer
        return victims

    def _preferred(self, victims: list[int]) -> list[int]:
        """Of equal choices the one with the first candidate that any has, then the next, and so on."""
        book = self.field.ledger
        highest = int(book.priority[victims].max())
        use = self.field.up_to(highest)
        if int(use.sum()) > MOST_IN_ORDER:
            return victims
        gives = self.field.gain(self._mask(victims), self.wanted)
        level = Level(Layout(self.field, apart=True), highest, self.limited, self.wanted, Work(self.work))
        columns = level.place_columns[np.argsort(book.order[level.places.victims])]
        if len(columns) == len(victims):
            return victims
        stages = level.stages
        stages.limit_column(level.got, gives, gives)
        stages.limit(level.count_row, len(victims), len(victims))
        total = int(level.weights.priority[victims].sum())
        stages.limit(level.sum_row, total, total)
        found: Ints | None = None
        for begin in range(0, len(columns), _BLOCK):
            block = columns[begin : begin + _BLOCK]
            cost = np.zeros(level.program.width)
            cost[block] = -(2.0 ** np.arange(len(block) - 1, -1, -1))
            best = stages.lowest(cost)
            if best.values is None or not best.proven:
                break
            found = best.values
            for column in block.tolist():
                stages.limit_column(column, int(found[column]), int(found[column]))
            if int(found[columns[: begin + _BLOCK]].sum()) == len(victims):
                break
        if found is None:
            return victims
        others = level.replicas(found, self.limited)
        as_good = len(others) == len(victims) and int(level.weights.priority[others].sum()) == total
        as_good &= self.field.gain(self._mask(others), self.wanted) == gives
        return others if as_good and not self.broken(others).any() else victims

    def _mask(self, victims: list[int]) -> Bools:
        mask = np.zeros(len(self.field.candidates), dtype=bool)
        mask[victims] = True
        return mask
