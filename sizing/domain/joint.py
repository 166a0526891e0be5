"""Room of replicas over several nodes where nodes offer several GPU types under one host limit."""

from __future__ import annotations

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
    kinds, kind_of = np.unique(kind, return_inverse=True)
    machines, machine_of = np.unique(node, return_inverse=True)
    table = np.zeros((len(machines), len(kinds) + 1), dtype=np.int64)
    table[machine_of, kind_of] = np.minimum(shares, cap)
    table[machine_of, -1] = np.minimum(cap, np.int64(2**40))
    classes, many = np.unique(table, axis=0, return_counts=True)

    solver = Solver()
    infinity = highspy.kHighsInf

    def add_row(low: float, high: float, columns: list[int], values: list[float]) -> None:
        solver.addRow(low, high, len(columns), np.array(columns, dtype=np.int32), np.array(values))

    of_kind: list[list[int]] = [[] for _ in kinds]
    for number in range(len(kinds)):
        solver.addVar(0.0, float((classes[:, number] * many).sum() // nodes))
        solver.changeColIntegrality(number, highspy.HighsVarType.kInteger)
        solver.changeColCost(number, -1.0)
    column = len(kinds)
    for row, multiple in zip(classes.tolist(), many.tolist(), strict=True):
        here: list[int] = []
        for number, most in enumerate(row[:-1]):
            if most:
                solver.addVar(0.0, float(most * multiple))
                add_row(-infinity, 0.0, [column, number], [1.0, -float(multiple)])
                here.append(column)
                of_kind[number].append(column)
                column += 1
        add_row(-infinity, float(row[-1] * multiple), here, [1.0] * len(here))
    for number, columns in enumerate(of_kind):
        add_row(0.0, 0.0, [*columns, number], [1.0] * len(columns) + [-float(nodes)])
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise ArithmeticError(f"no optimum: {solver.modelStatusToString(solver.getModelStatus())}")
    return round(-solver.getInfo().objective_function_value)
