"""Places written out in full: a column for each victim, and rows for GPUs, shares and host limits."""

from __future__ import annotations

from math import gcd

import numpy as np

from sizing.domain.hardware import UNLIMITED, Bools, Ints
from sizing.domain.preemption.layout import Layout
from sizing.domain.preemption.program import INFINITY, Program

Terms = list[tuple[int, int]]
"""Columns with whole-number factors."""


class Places:
    """The rows of all places for the victims that may be used; `shares[g]` is the column of group g."""

    def __init__(self, layout: Layout, program: Program, use: Bools) -> None:
        self.layout = layout
        self.program = program
        hardware = layout.hardware
        group = hardware.gpu_group[layout.pair_gpu]
        written = np.zeros(len(hardware.group_node), dtype=bool)
        written[layout.place_groups] = True
        node_written = np.zeros(len(hardware.nodes), dtype=bool)
        node_written[hardware.group_node[layout.place_groups]] = True
        here = use[layout.pair_replica] & written[group]
        book = layout.field.ledger
        hosted = layout.hosted
        hosted = hosted[use[book.node_replica[hosted]] & node_written[book.node[hosted]]]
        self.victims: Ints = np.unique(np.concatenate((layout.pair_replica[here], book.node_replica[hosted])))
        columns = program.columns(np.ones(len(self.victims)))
        self.column = dict(zip(self.victims.tolist(), columns.tolist(), strict=True))
        self._pairs: dict[int, Terms] = {}
        for gpu, replica, mib in zip(
            layout.pair_gpu[here].tolist(),
            layout.pair_replica[here].tolist(),
            layout.pair_mib[here].tolist(),
            strict=True,
        ):
            self._pairs.setdefault(gpu, []).append((self.column[replica], mib))
        self._hosted: dict[int, list[tuple[int, int, int]]] = {}
        for node, replica, cpu, memory in zip(
            book.node[hosted].tolist(),
            book.node_replica[hosted].tolist(),
            book.node_cpu[hosted].tolist(),
            book.node_memory[hosted].tolist(),
            strict=True,
        ):
            self._hosted.setdefault(node, []).append((self.column[replica], cpu, memory))
        self.shares: dict[int, int] = {}
        by_node: dict[int, list[int]] = {}
        for number in layout.place_groups.tolist():
            by_node.setdefault(int(hardware.group_node[number]), []).append(number)
        for node, groups in by_node.items():
            for number in groups:
                self._write_group(number)
            if layout.bound[node]:
                self._write_host(node, groups)

    def _write_group(self, group: int) -> None:
        """The shares w of a group: gpus · w ≤ Σ min(slots, w)."""
        layout, program = self.layout, self.program
        hardware, gpus = layout.hardware, layout.variant.gpus
        most = int(layout.shares_most[group])
        share = int(program.columns(most)[0])
        self.shares[group] = share
        start = int(hardware.group_start[group])
        members = range(start, start + int(hardware.group_size[group]))
        fixed = 0
        terms: Terms = [(share, gpus)]
        few: dict[int, int] = {}
        for gpu in members:
            now = int(layout.slots_now[gpu])
            if not layout.changing[gpu] or gpu not in self._pairs:
                if gpus == 1 or now == 0:
                    fixed += now
                elif now >= most:
                    terms[0] = (share, terms[0][1] - 1)
                else:
                    few[now] = few.get(now, 0) + 1
            elif layout.plain_group[group]:
                fixed += now
                terms.append((self._pairs[gpu][0][0], now - int(layout.slots_most[gpu])))
            elif layout.whole:
                if len(self._pairs[gpu]) < int(layout.holders[gpu]):
                    continue  # somebody stays on it
                free = int(program.columns(1)[0])
                for column, _ in self._pairs[gpu]:
                    self._at_most(0, [(free, 1), (column, -1)])
                terms.append((free, -1))
            else:
                terms.append((self._slots_of(gpu, share, most), -1))
        for now, many in sorted(few.items()):
            some = int(program.columns(now * many)[0])
            self._at_most(0, [(some, 1), (share, -many)])
            terms.append((some, -1))
        if terms[0][1] > 0:
            self._at_most(fixed, terms)

    def _slots_of(self, gpu: int, share: int, most: int) -> int:
        """The slots of a GPU that count: claim · z ≤ what is left + Σ what victims give back, z ≤ w."""
        layout, program = self.layout, self.program
        slots = int(layout.slots_most[gpu])
        some = int(program.columns(min(slots, most) if layout.variant.gpus > 1 else slots)[0])
        claim = int(layout.claim_mib[gpu])
        back = [(column, -mib) for column, mib in self._pairs[gpu]]
        self._within([(some, claim)], back, int(layout.left_mib[gpu]), slots)
        if layout.variant.gpus > 1 and slots > 1:
            self._at_most(0, [(some, 1), (share, -1)])
        return some

    def _write_host(self, node: int, groups: list[int]) -> None:
        layout, hardware, variant = self.layout, self.layout.hardware, self.layout.variant
        victims = self._hosted.get(node, [])
        cpu, memory, pods = layout.host_left
        shares = [self.shares[group] for group in groups]
        most = int(layout.shares_most[groups].sum())
        resources = (
            (variant.cpu_millis, hardware.cpu[node], cpu[node], [(c, -held) for c, held, _ in victims]),
            (variant.memory_mib, hardware.host_memory[node], memory[node], [(c, -h) for c, _, h in victims]),
            (1, hardware.pods[node], pods[node], [(c, -1) for c, _, _ in victims]),
        )
        for need, there, left, back in resources:
            if need and there != UNLIMITED:
                self._within([(s, need) for s in shares], [t for t in back if t[1]], int(left), most)

    def _within(self, take: Terms, back: Terms, left: int, most: int) -> None:
        """Σ take ≤ max(left + Σ back, 0)."""
        if left >= 0:
            self._at_most(left, take + back)
            return
        # Overcommitted: nothing fits until that much is given back.
        opened = int(self.program.columns(1)[0])
        self._at_most(0, [*take, *back, (opened, -left)])
        self._at_most(0, [*((column, 1) for column, _ in take), (opened, -most)])

    def _at_most(self, limit: int, terms: Terms) -> None:
        """Σ terms ≤ limit, for whole-number columns."""
        factor = gcd(*(f for _, f in terms))
        if factor > 1:
            terms = [(c, f // factor) for c, f in terms]
            limit = limit // factor
        columns = [c for c, _ in terms]
        self.program.row(-INFINITY, limit, columns, [f for _, f in terms])
        # Mixed-integer rounding: a rest that is too small for a share must not count as a part of one.
        most = max(f for _, f in terms)
        whole, rest = divmod(limit, most) if most > 0 else (0, 0)
        if rest:
            self.program.row(-INFINITY, whole, columns, [_rounded(f, most, rest) for _, f in terms])


def _rounded(factor: int, most: int, rest: int) -> float:
    """The factor after dividing the row by `most` and rounding, where the limit leaves `rest / most`."""
    whole, over = divmod(factor, most)
    return whole + max(over - rest, 0) / (most - rest)
