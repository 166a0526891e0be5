"""Room of replicas over several nodes where nodes offer several GPU types under one host limit."""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np

from sizing.domain.hardware import Ints
from sizing.domain.solver import Solver


def joint_room(node: Ints, kind: Ints, shares: Ints, cap: Ints, nodes: int) -> int:
    """The largest number of replicas over `nodes` different nodes each, all GPUs of one type.

    Each place is a node and type with the shares that it takes, and its node's limit over all types.
    Integer program: R_t replicas of type t; nodes that are alike form a class c of m_c nodes;
    x_ct shares of type t in it, `x_ct ≤ m_c·min(shares_ct, R_t)`, `Σ_t x_ct ≤ m_c·cap_c`,
    `Σ_c x_ct = nodes·R_t`. For whole R the rest is a transport problem, whose corners are whole even
    when classes are taken apart, so only R need be integer.
    """
    return sum(_solved(_Classes.of(node, kind, shares, cap), nodes, None)[0])


def joint_plan(node: Ints, kind: Ints, shares: Ints, cap: Ints, nodes: int, number: int) -> Ints:
    """By place: the shares that it takes of `number` replicas, or of all that there is room for if fewer."""
    found = _Classes.of(node, kind, shares, cap)
    _, of_class = _solved(found, nodes, number)
    taken = np.zeros((len(found.class_of), len(found.kinds)), dtype=np.int64)
    for row in range(len(found.many)):
        # Dealt around the nodes of the class, each type where the last one ended: so nobody gets more than
        # its share of each type, rounded up, nor of all together.
        machines = np.flatnonzero(found.class_of == row)
        seat, dealt = np.arange(len(machines)), 0
        for number_of_kind, total in enumerate(of_class[row]):
            rounds_before = (dealt - 1 - seat) // len(machines)
            dealt += total
            taken[machines, number_of_kind] = (dealt - 1 - seat) // len(machines) - rounds_before
    counts: Ints = taken[found.machine_of, found.kind_of]
    return counts


@dataclass(frozen=True, eq=False)
class _Classes:
    """Places as a table of nodes by types, in which nodes that are alike are one class.

    `table`: by class, the shares of each type and, last, the limit over all; `many`: nodes of the class.
    """

    kinds: Ints
    kind_of: Ints
    machine_of: Ints
    class_of: Ints
    table: Ints
    many: Ints

    @classmethod
    def of(cls, node: Ints, kind: Ints, shares: Ints, cap: Ints) -> _Classes:
        kinds, kind_of = np.unique(kind, return_inverse=True)
        machines, machine_of = np.unique(node, return_inverse=True)
        table = np.zeros((len(machines), len(kinds) + 1), dtype=np.int64)
        table[machine_of, kind_of] = np.minimum(shares, cap)
        table[machine_of, -1] = np.minimum(cap, np.int64(2**40))
        classes, class_of, many = np.unique(table, axis=0, return_inverse=True, return_counts=True)
        return cls(kinds, kind_of, machine_of, class_of.reshape(-1), classes, many)


def _solved(found: _Classes, nodes: int, number: int | None) -> tuple[list[int], list[list[int]]]:
    """The replicas of each type, and the shares of each type by class; of `number` replicas at most, and
    the shares are whole where that is given."""
    solver = Solver()
    infinity = highspy.kHighsInf

    def add_row(low: float, high: float, columns: list[int], values: list[float]) -> None:
        solver.addRow(low, high, len(columns), np.array(columns, dtype=np.int32), np.array(values))

    whole = highspy.HighsVarType.kInteger
    of_kind: list[list[int]] = [[] for _ in found.kinds]
    for kind in range(len(found.kinds)):
        solver.addVar(0.0, float((found.table[:, kind] * found.many).sum() // nodes))
        solver.changeColIntegrality(kind, whole)
        solver.changeColCost(kind, -1.0)
    if number is not None:
        add_row(-infinity, float(number), list(range(len(of_kind))), [1.0] * len(of_kind))
    column = len(found.kinds)
    places: dict[tuple[int, int], int] = {}
    for number_of_class, multiple in enumerate(found.many.tolist()):
        row = found.table[number_of_class].tolist()
        here: list[int] = []
        for kind, most in enumerate(row[:-1]):
            if most:
                solver.addVar(0.0, float(most * multiple))
                if number is not None:
                    solver.changeColIntegrality(column, whole)
                add_row(-infinity, 0.0, [column, kind], [1.0, -float(multiple)])
                here.append(column)
                of_kind[kind].append(column)
                places[number_of_class, kind] = column
                column += 1
        add_row(-infinity, float(row[-1] * multiple), here, [1.0] * len(here))
    for kind, columns in enumerate(of_kind):
        add_row(0.0, 0.0, [*columns, kind], [1.0] * len(columns) + [-float(nodes)])
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise ArithmeticError(f"no optimum: {solver.modelStatusToString(solver.getModelStatus())}")
    values = [round(value) for value in solver.getSolution().col_value]
    of_class = [
        [values[places[row, kind]] if (row, kind) in places else 0 for kind in range(len(found.kinds))]
        for row in range(len(found.many))
    ]
    return values[: len(found.kinds)], of_class
