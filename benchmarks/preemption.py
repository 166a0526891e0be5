"""How long it takes to find who gives way, beside a plain integer program of the same question.

Usage: python -m benchmarks.preemption [nodes]

The plain program has a column for each replica that may be stopped and a row for each node, and goes
through the same stages. It stops at a limit of work, so that the whole run takes minutes; `>` marks it.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import replace
from time import perf_counter

import highspy
import numpy as np

from benchmarks.fleets import whole_fleet
from sizing.domain.fleet import Fleet
from sizing.domain.preemption import preempt
from sizing.domain.preemption.field import Field, field_of
from sizing.domain.preemption.program import INFINITY, Outcome, Program, Stages, Work
from sizing.domain.preemption.search import Search
from sizing.domain.specs import ModelSpec, VariantSpec

PLAIN_WORK = 40_000_000
MINIMA = {"loose": None, "tight": 2, "middle": 39}
SIZES = (1, 1, 1, 2, 2, 4, 8)
"""GPUs of the replicas that run, as often as they are drawn."""

CASES = (
    *(("loose", gpus, 1_000) for gpus in (1, 2, 4, 8)),
    ("loose", 4, 8_000),
    *(("tight", gpus, 1_000) for gpus in (1, 2, 4, 8)),
    ("middle", 4, 1_000),
    ("middle", 8, 1_000),
)
SMALL_CASES = (("loose", 1, 100), ("loose", 4, 100), ("loose", 8, 100), ("tight", 4, 100), ("middle", 8, 100))

Key = tuple[int, int, int, int]
"""Gain, highest priority, victims, sum of their priorities."""


def cluster(nodes: int, minima: str) -> tuple[Fleet, ModelSpec]:
    """A full cluster, whose models may lose any number down to small minima, or very few replicas."""
    chance = random.Random(7)
    machines, models, replicas = whole_fleet(nodes, sizes=SIZES)
    has = Counter(replica.model for replica in replicas)
    most = MINIMA[minima]
    if most is not None:
        models = [replace(m, min_replicas=max(has[m.name] - chance.randint(0, most), 0)) for m in models]
    asking = ModelSpec(
        "asking", priority=10, variants=tuple(VariantSpec(f"g{g}", gpus=g) for g in (1, 2, 4, 8))
    )
    return Fleet.build(machines, [*models, asking], replicas), asking


def plain(field: Field, wanted: int) -> tuple[Key, bool]:
    """The same stages on one program with a row for each node; and whether they all ended."""
    search = Search(field, wanted)
    work = Work(PLAIN_WORK)
    gains, at, ended = search.bound(len(search.levels) - 1), 0, True
    while gains > 0:
        while search.bound(at) < gains:
            at += 1
        program, columns, got, cost = _plain_program(field, search, at, wanted)
        stages = program.start(work)
        most = -np.eye(1, program.width, got)[0]
        gain = solved(stages, most)
        if gain.values is None or not gain.proven:
            return (0, 0, 0, 0), False
        if gain.values[got] < gains:
            if at < len(search.levels) - 1:
                at += 1
            else:
                gains, at = int(gain.values[got]), 0
            continue
        stages.limit_column(got, gains, gains)
        count = np.zeros(program.width)
        count[columns] = 1
        fewest = solved(stages, count)
        if fewest.values is None:
            return (gains, search.levels[at], 0, 0), False
        number = int(fewest.values[columns].sum())
        ended &= fewest.proven
        stages.limit(0, number, number)
        sums = np.zeros(program.width)
        sums[columns] = cost
        least = solved(stages, sums)
        values = fewest.values if least.values is None else least.values
        return (gains, search.levels[at], number, int(values[columns] @ cost)), ended and least.proven
    return (0, 0, 0, 0), True


def solved(stages: Stages, cost: np.ndarray) -> Outcome:
    """One stage as the solver does it by itself, with its presolve."""
    solver = stages.solver
    solver.setOptionValue("presolve", "choose")
    solver.setOptionValue("mip_allow_restart", True)
    solver.changeColsCost(stages.width, np.arange(stages.width, dtype=np.int32), cost)
    solver.clearSolver()
    solver.run()
    info = solver.getInfo()
    if info.primal_solution_status != 2:
        return Outcome(None, info.mip_dual_bound, False)
    values = np.rint(np.array(solver.getSolution().col_value)).astype(np.int64)
    proven = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return Outcome(values, info.mip_dual_bound, proven)


def _plain_program(
    field: Field, search: Search, at: int, wanted: int
) -> tuple[Program, np.ndarray, int, np.ndarray]:
    book, fleet = field.ledger, field.fleet
    victims = np.flatnonzero(field.up_to(search.levels[at]))
    size = np.bincount(book.gpu_replica, minlength=len(book.names))[victims]
    node = book.node[np.searchsorted(book.node_replica, victims)]
    free = fleet.hardware.per_node(fleet.whole_free_in_group)
    gpus = field.variant.gpus
    program = Program()
    columns = program.columns(np.ones(len(victims)))
    shares = program.columns(np.full(len(free), 2**10))
    got = int(program.columns(wanted)[0])
    program.row(-INFINITY, INFINITY, columns, 1)
    row = np.concatenate((node, np.arange(len(free))))
    value = np.concatenate((-size, np.full(len(free), gpus)))
    program.rows(np.full(len(free), -INFINITY), free, row, np.concatenate((columns, shares)), value)
    program.row(field.room_now, INFINITY, np.append(shares, got), np.append(np.ones(len(free)), -1))
    models, of_model = np.unique(book.model[victims], return_inverse=True)
    program.rows(np.full(len(models), -INFINITY), field.allowance[models], of_model, columns, 1)
    return program, columns, got, book.priority[victims]


def report(nodes: int, cases: tuple[tuple[str, int, int], ...]) -> None:
    """A line for each case."""
    fleets = {minima: cluster(nodes, minima) for minima in sorted({case[0] for case in cases})}
    print(f"\n{nodes:,} nodes, {len(next(iter(fleets.values()))[0].replicas):,} replicas")
    found = f"{'gives':>7}{'highest':>9}{'victims':>9}{'sum':>7}"
    print(f"{'minima':<8}{'GPUs':>5}{'missing':>9}{found}{'first':>10}{'again':>10}{'plain':>11}{'ratio':>8}")
    for minima, gpus, missing in cases:
        fleet, asking = fleets[minima]
        fleet = fleet.with_replicas()  # nothing is computed yet
        variant = asking.variant(f"g{gpus}")
        took = []
        for _ in range(3):
            begin = perf_counter()
            answer = preempt(fleet, asking, variant, missing)
            took.append(perf_counter() - begin)
        priorities = [fleet.models[victim.model].priority for victim in answer.victims]
        key = (answer.gives, max(priorities, default=0), len(priorities), sum(priorities))
        field = field_of(fleet, asking, variant)
        begin = perf_counter()
        plain_key, ended = plain(field, missing)
        plain_took = perf_counter() - begin
        differs = ended and answer.optimal and key != plain_key
        again = min(took[1:])
        numbers = f"{key[0]:>7,}{key[1]:>9}{key[2]:>9,}{key[3]:>7,}{took[0]:>8.2f} s{again:>8.2f} s"
        rest = f"{'' if ended else '> '}{plain_took:.1f} s"
        ratio = f"{plain_took / took[0]:.0f}x"
        proven = "" if answer.optimal else f"  not proven: {answer.bound}"
        proven += f"  plain finds {plain_key}" if differs else ""
        print(f"{minima:<8}{gpus:>5}{missing:>9,}{numbers}{rest:>11}{ratio:>8}{proven}", flush=True)


def main() -> None:
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    report(min(nodes, 1_000), SMALL_CASES)
    if nodes > 1_000:
        report(nodes, CASES)


if __name__ == "__main__":
    main()
