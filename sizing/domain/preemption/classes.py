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
        starts = np.cumsum([0, *(len(part.members) for part in parts)])
        taken = np.zeros(int(starts[-1]), dtype=bool)
        last = int(np.searchsorted(found.class_of, number, side="right"))
        for option in range(last - first):
            wanted = int(uses[first + option])
            if wanted:
                cells, sets = _in_order(parts, starts, taken, option, weights)
                chosen = first_allowed(sets, wanted, models, left)
                taken[cells[chosen]] = True
                sets = sets[chosen]
                victims += sets[sets >= 0].tolist()
    return victims


def _in_order(
    parts: list[Part], starts: Ints, taken: Bools, option: int, weights: Weights
) -> tuple[Ints, Ints]:
    """The cells of a class that are not taken, those first whose victims come first among equals, and the
    victims of each one's option, filled up with -1."""
    cells, sets, keys = [], [], []
    width = max(part.masks[option].bit_count() for part in parts)
    for part, start in zip(parts, starts.tolist(), strict=False):
        places = [i for i in range(part.members.shape[1]) if part.masks[option] >> i & 1]
        free = np.flatnonzero(~taken[start : start + len(part.members)])
        chosen = part.members[free][:, places]
        key = np.full((len(free), width), np.iinfo(np.int64).max)
        key[:, : len(places)] = np.sort(weights.order[chosen], axis=1)
        of_option = np.full((len(free), width), -1)
        of_option[:, : len(places)] = chosen
        keys.append(key)
        sets.append(of_option)
        cells.append(free + start)
    order = np.lexsort(np.concatenate(keys).T[::-1])
    return np.concatenate(cells)[order], np.concatenate(sets)[order]


def first_allowed(sets: Ints, wanted: int, models: Ints, left: Ints) -> Ints:
    """The places of the first so many sets; those that would take a model below what is `left` of its
    allowance only where there are no others."""
    lost = np.where(sets >= 0, models[sets], -1)
    there = np.bincount(lost[lost >= 0], minlength=len(left))
    short = there > left
    if not short[lost[lost >= 0]].any():
        chosen = np.arange(min(wanted, len(sets)))
    else:
        chosen = _passing_over(np.where(short[lost] & (lost >= 0), lost, -1), wanted, left.tolist())
    used = lost[chosen]
    np.subtract.at(left, used[used >= 0], 1)
    return chosen


def _passing_over(lost: Ints, wanted: int, left: list[int]) -> Ints:
    """`first_allowed`, one after the other, for sets that lose replicas of the models that may run short."""
    chosen: list[int] = []
    passed_over: list[int] = []
    for place, of_set in enumerate(lost.tolist()):
        if len(chosen) == wanted:
            break
        done = 0
        for model in of_set:
            if model >= 0:
                if left[model] <= 0:
                    break
                left[model] -= 1
            done += 1
        if done == len(of_set):
            chosen.append(place)
            continue
        for model in of_set[:done]:
            if model >= 0:
                left[model] += 1
        passed_over.append(place)
    return np.array(chosen + passed_over[: wanted - len(chosen)], dtype=np.int64)
