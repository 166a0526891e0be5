"""Cells as columns of the integer program: how often each option of each class of cells is used.

Kinds of cells with the same options (gain and cost) and no written model are one class, so that there
is no row and no column for a node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sizing.domain.hardware import Bools, Ints
from sizing.domain.preemption.options import Kind, Weights, distinct


@dataclass(frozen=True, eq=False)
class Part:
    """A kind of cells within a class: victims by cell, and the masks of its options in the class's order."""

    members: Ints
    masks: list[int]


@dataclass(frozen=True, eq=False)
class Classes:
    """Columns, each an option of a class; `limited` tells which classes need a row for their cells.

    `used_column`, `used_model`, `used` tell how many replicas of a written model an option stops.
    """

    class_of: Ints
    pool: Ints
    gain: Ints
    count: Ints
    sum: Ints
    upper: Ints
    used_column: Ints
    used_model: Ints
    used: Ints
    first: Ints
    parts: list[list[Part]]


def classes(kinds: list[Kind]) -> Classes:
    """Merge kinds into classes and number their options."""
    by_length: dict[int, list[tuple[Kind, Ints, Ints]]] = {}
    for kind in kinds:
        order = np.lexsort((kind.mask, kind.sum, kind.count, kind.gain, kind.kind))
        numbers, starts, lengths = np.unique(kind.kind[order], return_index=True, return_counts=True)
        for length in np.unique(lengths).tolist():
            here = lengths == length
            places = order[starts[here][:, None] + np.arange(length)]
            by_length.setdefault(length, []).append((kind, numbers[here], places))
    parts: list[list[Part]] = []
    columns: list[Ints] = []
    uppers: list[int] = []
    lengths_of: list[int] = []
    used: list[Ints] = []
    width = 0
    for length in sorted(by_length):
        tables, written, sources = [], [], []
        for kind, numbers, places in by_length[length]:
            table = np.stack((kind.gain[places], kind.count[places], kind.sum[places]), axis=2)
            tables.append(np.column_stack((kind.pool[numbers], table.reshape(len(numbers), -1))))
            written.append((kind.models[numbers] >= 0).any(axis=1))
            sources += [(kind, number, row) for number, row in zip(numbers.tolist(), places, strict=True)]
        table, apart = np.concatenate(tables), np.concatenate(written)
        # A kind with a written model keeps a number of its own.
        own = np.where(apart, np.arange(1, len(table) + 1), 0)
        first, class_of = distinct(np.column_stack((table, own)))
        at = len(parts)
        parts += [[] for _ in first]
        for (kind, number, row), class_number in zip(sources, class_of.tolist(), strict=True):
            parts[at + class_number].append(Part(kind.members[number], kind.mask[row].tolist()))
        body = table[first][:, 1:].reshape(len(first) * length, 3)
        columns.append(np.column_stack((np.repeat(table[first][:, 0], length), body)))
        uppers += [sum(len(part.members) for part in parts[at + c]) for c in range(len(first))]
        lengths_of += [length] * len(first)
        for c in np.flatnonzero(apart[first]).tolist():
            kind, number, row = sources[int(first[c])]
            models = kind.models[number]
            bits = ((kind.mask[row][:, None] >> np.arange(len(models))) & 1) * (models >= 0)
            option, place = np.nonzero(bits)
            used.append(np.column_stack((option + width + c * length, models[place])))
        width += len(first) * length
    flat = np.concatenate(columns) if columns else np.zeros((0, 4), dtype=np.int64)
    pairs = np.concatenate(used) if used else np.zeros((0, 2), dtype=np.int64)
    pairs, amount = np.unique(pairs, axis=0, return_counts=True)
    class_of = np.repeat(np.arange(len(parts)), lengths_of)
    return Classes(
        class_of=class_of,
        pool=flat[:, 0],
        gain=flat[:, 1],
        count=flat[:, 2],
        sum=flat[:, 3],
        upper=np.array(uppers, dtype=np.int64)[class_of],
        used_column=pairs[:, 0],
        used_model=pairs[:, 1],
        used=amount,
        first=np.searchsorted(class_of, np.arange(len(parts))),
        parts=parts,
    )


def expand(found: Classes, uses: Ints, weights: Weights, models: Ints, left: Ints) -> list[int]:
    """Replicas (of the ledger) for so many uses of each option.

    Within a class the cells whose victims come first among equals are taken; one that would take a model
    below what is `left` of its allowance (changed here; a model of -1 has no limit) is passed over while
    others remain.
    """
    victims: list[int] = []
    for number in np.unique(found.class_of[uses > 0]).tolist():
        first = int(found.first[number])
        parts = found.parts[number]
        taken = [np.zeros(len(part.members), dtype=bool) for part in parts]
        last = int(np.searchsorted(found.class_of, number, side="right"))
        for option in range(last - first):
            wanted = int(uses[first + option])
            if wanted:
                victims += _take(parts, taken, option, wanted, weights, models, left)
    return victims


def _take(
    parts: list[Part],
    taken: list[Bools],
    option: int,
    wanted: int,
    weights: Weights,
    models: Ints,
    left: Ints,
) -> list[int]:
    sets, keys, origin = [], [], []
    width = max(part.masks[option].bit_count() for part in parts)
    for number, part in enumerate(parts):
        places = [i for i in range(part.members.shape[1]) if part.masks[option] >> i & 1]
        free = np.flatnonzero(~taken[number])
        chosen = part.members[free][:, places]
        rank = np.sort(weights.order[chosen], axis=1)
        missing = width - len(places)
        rank = np.pad(rank, ((0, 0), (0, missing)), constant_values=np.iinfo(np.int64).max)
        keys.append(rank)
        sets.append(np.pad(chosen, ((0, 0), (0, missing)), constant_values=-1))
        origin.append(np.column_stack((np.full(len(free), number), free)))
    key, rows, where = np.concatenate(keys), np.concatenate(sets), np.concatenate(origin)
    order = np.lexsort(key.T[::-1]).tolist()
    victims: list[int] = []
    for strict in (True, False):
        for place in order:
            if not wanted:
                return victims
            number, cell = where[place].tolist()
            if taken[number][cell]:
                continue
            chosen = rows[place][rows[place] >= 0]
            lost = models[chosen]
            lost = lost[lost >= 0]
            if strict and len(lost) and (left[lost] < np.bincount(lost)[lost]).any():
                continue
            np.subtract.at(left, lost, 1)
            taken[number][cell] = True
            victims += chosen.tolist()
            wanted -= 1
    return victims
