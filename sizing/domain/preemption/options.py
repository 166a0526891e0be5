"""The sets of victims worth stopping in a cell, for all cells of the same kind at once.

Victims of a cell are alike when they have the same yield and priority, and the same model where that
model's minimum is written down. Cells that are alike victim by victim form a kind; a kind's options are
the sets from which nobody can be spared, lowest priority first among equal yields, without those that
another set beats at no more cost. Options with the same cost as the best all stay: they differ in who
is stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sizing.domain.hardware import Bools, Ints
from sizing.domain.preemption.layout import MOST_IN_CELL, Cells

_CHUNK = 4_000_000


@dataclass(frozen=True, eq=False)
class Kind:
    """Kinds of cells with equally many victims, and their options.

    `members[k]` are victim numbers (of the ledger), a row for each cell of kind k, in the same order as
    its `models` (-1: not written down). Options are flat: kind, mask over victims, shares gained, cost.
    """

    pool: Ints
    models: Ints
    members: list[Ints]
    kind: Ints
    mask: Ints
    gain: Ints
    count: Ints
    sum: Ints


@dataclass(frozen=True, eq=False)
class Weights:
    """By replica of the ledger: scaled priority (≥ 0), model whose minimum is written down (else -1),
    and rank among equals."""

    priority: Ints
    model: Ints
    order: Ints


def kinds(cells: Cells, use: Bools, weights: Weights) -> list[Kind]:
    """The kinds of all cells, with the victims that may be used (by replica of the ledger)."""
    chosen = use[cells.victim]
    victim, cell, gives = cells.victim[chosen], cells.victim_cell[chosen], cells.victim_yield[chosen]
    unit, remainder = cells.unit[cell], cells.remainder[cell]
    alone = (gives % unit == 0) & (remainder >= 0)
    found: list[Kind] = []
    if alone.any():
        found += _of_size(
            victim[alone][:, None],
            gives[alone][:, None],
            unit[alone],
            np.zeros(int(alone.sum()), dtype=np.int64),
            cells.pool[cell[alone]],
            weights,
        )
    victim, cell, gives = victim[~alone], cell[~alone], gives[~alone]
    within = np.lexsort((weights.order[victim], weights.priority[victim], weights.model[victim], gives, cell))
    victim, cell, gives = victim[within], cell[within], gives[within]
    numbers, starts, sizes = np.unique(cell, return_index=True, return_counts=True)
    enough = np.zeros(len(numbers), dtype=bool)
    if len(numbers):
        sums = np.add.reduceat(gives, starts)
        enough = cells.remainder[numbers] + sums >= cells.unit[numbers]
    for size in np.unique(sizes[enough]).tolist():
        here = enough & (sizes == size)
        places = starts[here][:, None] + np.arange(size)
        number = numbers[here]
        found += _of_size(
            victim[places],
            gives[places],
            cells.unit[number],
            cells.remainder[number],
            cells.pool[number],
            weights,
        )
    return found


def _of_size(
    victim: Ints, gives: Ints, unit: Ints, remainder: Ints, pool: Ints, weights: Weights
) -> Iterator[Kind]:
    """Kinds of cells that all have the same number of victims; rows are cells."""
    size = victim.shape[1]
    model, priority = weights.model[victim], weights.priority[victim]
    table = np.column_stack((pool, unit, remainder, gives, model, priority))
    first, kind_of = distinct(table)
    order = np.argsort(kind_of, kind="stable")
    edges = np.searchsorted(kind_of[order], np.arange(len(first) + 1))
    step = max(_CHUNK >> min(size, MOST_IN_CELL), 1)
    for begin in range(0, len(first), step):
        rows = first[begin : begin + step]
        kind, mask, gain = _minimal(gives[rows], model[rows], unit[rows], remainder[rows])
        bits = (mask[:, None] >> np.arange(size)) & 1
        count = bits.sum(axis=1)
        cost = (bits * priority[rows][kind]).sum(axis=1)
        written = (bits * (model[rows][kind] >= 0)) @ (1 << np.arange(size))
        keep = _unbeaten(kind, gain, count, cost, written)
        ends = edges[begin : begin + len(rows) + 1]
        yield Kind(
            pool=pool[rows],
            models=model[rows],
            members=[victim[order[a:b]] for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)],
            kind=kind[keep],
            mask=mask[keep],
            gain=gain[keep],
            count=count[keep],
            sum=cost[keep],
        )


def _minimal(gives: Ints, model: Ints, unit: Ints, remainder: Ints) -> tuple[Ints, Ints, Ints]:
    """Sets from which nobody can be spared: row, mask, gain."""
    size = gives.shape[1]
    if size > MOST_IN_CELL:  # all are needed at once
        rows = np.arange(len(gives))
        return rows, np.full(len(rows), (1 << size) - 1), np.ones(len(rows), dtype=np.int64)
    masks = np.arange(1 << size, dtype=np.int64)
    bits = (masks[:, None] >> np.arange(size)) & 1
    # Floats are exact here (sums of MiB), and their product is the fast one.
    total = remainder[:, None] + (gives.astype(float) @ bits.T.astype(float)).astype(np.int64)
    gain = total // unit[:, None]
    spare = total - gain * unit[:, None]
    good = gain >= 1
    for place in range(size):
        good &= (bits[:, place] == 0) | (spare < gives[:, place, None])
    for place in range(size - 1):
        alike = (gives[:, place] == gives[:, place + 1]) & (model[:, place] == model[:, place + 1])
        good &= ~(alike[:, None] & (bits[:, place + 1] > bits[:, place]))
    row, mask = np.nonzero(good)
    return row, masks[mask], gain[row, mask]


def _unbeaten(kind: Ints, gain: Ints, count: Ints, cost: Ints, written: Ints) -> Bools:
    """Options that no other of their kind beats: no less gain, fewer victims or equally many of a lower
    sum, and no written model used that the other does not use."""
    keep = np.ones(len(kind), dtype=bool)
    _, starts, sizes = np.unique(kind, return_index=True, return_counts=True)
    for size in np.unique(sizes[sizes > 1]).tolist():
        first = starts[sizes == size]
        step = max(_CHUNK // (size * size), 1)
        for begin in range(0, len(first), step):
            at = first[begin : begin + step, None] + np.arange(size)
            g, n, c, w = gain[at], count[at], cost[at], written[at]
            beats = g[:, :, None] >= g[:, None, :]
            fewer = n[:, :, None] < n[:, None, :]
            beats &= fewer | ((n[:, :, None] == n[:, None, :]) & (c[:, :, None] < c[:, None, :]))
            beats &= (w[:, :, None] & ~w[:, None, :]) == 0
            keep[at] = ~beats.any(axis=1)
    return keep


def distinct(table: Ints) -> tuple[Ints, Ints]:
    """First rows of each distinct row in ascending order, and for each row which of them it is."""
    columns = [column for column in table.T[::-1] if column.min() != column.max()]
    if not columns:
        return np.zeros(min(len(table), 1), dtype=np.int64), np.zeros(len(table), dtype=np.int64)
    order = np.lexsort(columns)
    sorted_columns = np.stack(columns)[:, order]
    new = np.ones(len(table), dtype=bool)
    new[1:] = (sorted_columns[:, 1:] != sorted_columns[:, :-1]).any(axis=0)
    kind_of = np.empty(len(table), dtype=np.int64)
    kind_of[order] = np.cumsum(new) - 1
    return order[new], kind_of
