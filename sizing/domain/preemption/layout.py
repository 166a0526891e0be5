"""How a cluster falls apart for one question: cells whose gains add up, and places written out in full.

A *cell* is a unit, a remainder and some victims with yields; stopping a set of them gains
`(remainder + Σ yields) // unit` shares, whatever happens elsewhere. A *place* is a group of GPUs, or a whole
node where its host limits bind, that gets rows of its own in the integer program. A *pool* is where
replicas are put together from shares: the whole cluster for one node each, else a type in a
topology domain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sizing.domain.fleet import Fleet
from sizing.domain.hardware import Bools, Ints
from sizing.domain.once import once
from sizing.domain.placement import group_shares, host_cap, largest_rounds, slots
from sizing.domain.preemption.field import Field
from sizing.domain.preemption.ledger import total

MOST_IN_CELL = 10
"""Victims of a cell whose subsets are all tried; a larger cell becomes a place."""

MOST_AT_ONCE = 60
"""Victims of a cell that are all needed at once; masks have 63 bits."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells, and their victims as flat arrays: replica of the ledger, cell, yield (> 0)."""

    unit: Ints
    remainder: Ints
    pool: Ints
    victim: Ints
    victim_cell: Ints
    victim_yield: Ints


class Layout:
    """The cells, places and pools of a question."""

    def __init__(self, field: Field, apart: bool = False) -> None:
        """`apart`: no cells, so that every victim has a column of its own."""
        self.field = field
        self.apart = apart
        self.fleet = field.fleet
        self.hardware = hardware = field.fleet.hardware
        self.variant = variant = field.variant
        self.whole = variant.whole_gpu
        self.emptied = field.ledger.without(self.fleet, field.candidates)
        usable = hardware.group_open(variant)[hardware.gpu_group]
        self.slots_now = np.where(usable, self._slots(self.fleet), 0)
        self.slots_most = np.where(usable, self._slots(self.emptied), 0)
        self.shares_now = group_shares(self.fleet, variant)
        self.shares_most = group_shares(self.emptied, variant)
        self.cap_now = host_cap(self.fleet, variant)
        self._find_victims()
        self.bound = self._bound_nodes()
        use = field.candidates[field.ledger.node_replica] & self.bound[field.ledger.node]
        self.hosted: Ints = np.flatnonzero(use)
        self._find_pools()
        self._cut()

    def _slots(self, fleet: Fleet) -> Ints:
        return fleet.whole_free.astype(np.int64) if self.whole else slots(fleet, self.variant)

    # Pools ----------------------------------------------------------------------------------------

    def _find_pools(self) -> None:
        """By group its pool, and by pool whether its shares simply add up.

        They do for replicas on one node. For k nodes a node's shares count up to R; where R is at
        least the most shares of any node already, or no node can have more than one, that never cuts.
        """
        hardware, nodes = self.hardware, self.variant.nodes
        if nodes == 1:
            self.pool: Ints = np.zeros(len(hardware.group_node), dtype=np.int64)
            self.pool_adds: Bools = np.ones(1, dtype=bool)
            return
        domain = hardware.domain(self.variant)[hardware.group_node]
        key = domain * max(len(hardware.type_names), 1) + hardware.group_type
        _, self.pool = np.unique(key, return_inverse=True)
        pools = int(self.pool.max()) + 1 if len(self.pool) else 0
        if not pools:
            self.pool_adds = np.zeros(0, dtype=bool)
            return
        order = np.argsort(self.pool, kind="stable")
        capped = np.minimum(self.shares_now, self.cap_now[hardware.group_node])
        starts = np.searchsorted(self.pool[order], np.arange(pools))
        rounds = largest_rounds(capped[order], starts, self.pool[order], nodes)
        most = np.zeros(pools, dtype=np.int64)
        np.maximum.at(most, self.pool, self.shares_most)
        self.pool_adds = most <= np.maximum(rounds, 1)
        # Types that compete for a node's host limit tie the pools of their domain together.
        kinds = hardware.per_node((self.shares_most > 0).astype(np.int64))
        tied = (self.bound & (kinds > 1))[hardware.group_node]
        self.pool_adds[np.isin(np.arange(pools), self.pool[np.isin(domain, domain[tied])])] = False

    # Victims --------------------------------------------------------------------------------------

    def _find_victims(self) -> None:
        """The GPUs that change, with their candidates; a yield is the slots that one of them gives alone."""
        book, candidates = self.field.ledger, self.field.candidates
        self.changing: Bools = self.slots_most > self.slots_now
        use = candidates[book.gpu_replica] & self.changing[book.gpu]
        self.pair_replica, self.pair_gpu = book.gpu_replica[use], book.gpu[use]
        self.pair_mib = book.gpu_mib[use]
        self.holders: Ints = np.bincount(self.pair_gpu, minlength=len(self.changing))

    def _bound_nodes(self) -> Bools:
        """By node: host CPU, memory or pods may keep out shares that its GPUs have room for.

        They never do where all shares fit into what is left now, nor where what is left suffices for the
        slots that are free, and what each victim gives back for the slots that it gives; what is left
        beyond that may make up for victims that give back too little.
        """
        book, hardware, variant = self.field.ledger, self.hardware, self.variant
        nodes = len(hardware.nodes)
        together = hardware.per_node(self.shares_most)
        bound: Bools = together > self.cap_now
        if not bound.any():
            return bound
        free = hardware.per_node(hardware.per_group(self.slots_now))
        gain = (self.slots_most - self.slots_now)[self.pair_gpu]
        here = np.flatnonzero(self.field.candidates[book.node_replica])
        key = book.node_replica[here] * nodes + book.node[here]
        order = np.argsort(key)
        pair_key = self.pair_replica * nodes + hardware.gpu_node[self.pair_gpu]
        gives = total(order[np.searchsorted(key, pair_key, sorter=order)], gain, len(here))
        short = np.zeros(nodes, dtype=bool)
        for need, left, back in (
            (variant.cpu_millis, self.host_left[0], book.node_cpu[here]),
            (variant.memory_mib, self.host_left[1], book.node_memory[here]),
            (1, self.host_left[2], np.ones(len(here), dtype=np.int64)),
        ):
            if need:
                lacking = total(book.node[here], np.maximum(need * gives - variant.gpus * back, 0), nodes)
                fits = np.maximum(left, 0) // need >= together
                short |= ~fits & (variant.gpus * left - need * free < lacking)
        return bound & short

    def _cut(self) -> None:
        hardware = self.hardware
        groups, replicas = len(hardware.group_node), len(self.field.candidates)
        group = hardware.gpu_group
        bound_group = self.bound[hardware.group_node]
        one_gpu = self.variant.gpus == 1
        # A victim that gives something in two places ties them together.
        pair_group = group[self.pair_gpu]
        touched = np.concatenate(
            (
                np.where(bound_group[pair_group], groups + hardware.group_node[pair_group], pair_group),
                groups + self.field.ledger.node[self.hosted],
            )
        )
        span = groups + len(hardware.nodes)
        pairs = np.unique(
            np.concatenate((self.pair_replica, self.field.ledger.node_replica[self.hosted])) * span + touched
        )
        spread = np.bincount(pairs // span, minlength=replicas) > 1
        plain_gpu = (self.holders <= 1) if one_gpu else (self.holders <= 1) & (self.slots_most <= 1)
        plain = np.ones(groups, dtype=bool)
        if one_gpu:
            np.logical_and.at(plain, group[self.changing], plain_gpu[self.changing])
        else:
            np.logical_and.at(plain, group, plain_gpu)
        self.plain_group: Bools = plain
        tied = bound_group | ~self.pool_adds[self.pool] | self.apart
        tied[pair_group[spread[self.pair_replica]]] = True
        single_gpu = np.bincount(self.pair_replica, minlength=replicas) == 1
        by_gpu = np.zeros(groups, dtype=bool)
        if one_gpu:
            by_gpu = ~plain
            by_gpu[pair_group[~single_gpu[self.pair_replica]]] = False
        in_cells = self._cells(~tied & plain, ~tied & by_gpu, ~tied & ~plain & ~by_gpu & self._all_or_none())
        changing_group = hardware.per_group(self.changing) > 0
        outside = ~in_cells & (self.shares_most > 0)
        self.place_groups: Ints = np.flatnonzero(outside & (changing_group | bound_group))
        self.fixed_groups: Ints = np.flatnonzero(outside & ~changing_group & ~bound_group)

    def _all_or_none(self) -> Bools:
        """By group: one more share of whole GPUs, and only when every GPU that may change is free."""
        if not self.whole or self.variant.gpus == 1:
            return np.zeros(len(self.shares_now), dtype=bool)
        most = self.hardware.per_group(self.slots_most)
        exact = most == self.variant.gpus * (self.shares_now + 1)
        result: Bools = exact & (self.shares_most == self.shares_now + 1)
        return result

    def _cells(self, by_group: Bools, by_gpu: Bools, at_once: Bools) -> Bools:
        """Make the cells of these groups, and tell which groups lie in cells.

        `by_group`: a cell for each group, in GPUs. `by_gpu`: one for each GPU, in MiB or holders.
        `at_once`: one for each group, in victims, all of which are needed.
        """
        hardware = self.hardware
        group = hardware.gpu_group[self.pair_gpu]
        span = max(len(by_group), 1)
        free = hardware.per_group(self.slots_now)

        def of_groups(use: Bools) -> tuple[Ints, Ints, Ints, Ints]:
            """Groups, and for each of their victims its cell, the replica and the slots that it gives."""
            here = use[group]
            gain = (self.slots_most - self.slots_now)[self.pair_gpu[here]]
            keys, inverse = np.unique(self.pair_replica[here] * span + group[here], return_inverse=True)
            victim, of_group = np.divmod(keys, span)
            groups, cell = np.unique(of_group, return_inverse=True)
            return groups, cell, victim, total(inverse, gain, len(keys))

        # Plain groups: GPUs count, each with one holder, so a victim's slots add up.
        first, first_cell, first_victim, first_yield = of_groups(by_group)
        # Single GPUs that are shared: MiB count (or holders, for the whole GPU).
        here = by_gpu[group]
        gpus, second_cell = np.unique(self.pair_gpu[here], return_inverse=True)
        if self.whole:
            unit, left = self.holders[gpus], np.zeros(len(gpus), dtype=np.int64)
            second_yield = np.ones(len(second_cell), dtype=np.int64)
        else:
            unit, left = self.claim_mib[gpus], self.left_mib[gpus]
            second_yield = self.pair_mib[here]
        # All or none: victims count.
        third, third_cell, third_victim, _ = of_groups(at_once)
        at, then = len(first), len(first) + len(gpus)
        cell_group = np.concatenate((first, hardware.gpu_group[gpus], third))
        units = np.concatenate(
            (np.full(at, self.variant.gpus), unit, np.bincount(third_cell, minlength=len(third)))
        ).astype(np.int64)
        cells = Cells(
            unit=units,
            remainder=np.concatenate((free[first], left, np.zeros(len(third), dtype=np.int64))),
            pool=self.pool[cell_group],
            victim=np.concatenate((first_victim, self.pair_replica[here], third_victim)),
            victim_cell=np.concatenate((first_cell, second_cell + at, third_cell + then)),
            victim_yield=np.concatenate((first_yield, second_yield, np.ones_like(third_victim))),
        )
        in_cells = by_group | by_gpu | at_once
        # A multiple of the unit is a cell of its own later, so it does not count here.
        whole_units = cells.victim_yield % np.maximum(units[cells.victim_cell], 1) == 0
        whole_units &= cells.remainder[cells.victim_cell] >= 0
        size = np.bincount(cells.victim_cell[~whole_units], minlength=len(units))
        most = np.where(np.arange(len(units)) < then, MOST_IN_CELL, MOST_AT_ONCE)
        in_cells[cell_group[size > most]] = False
        self.cells = _only(cells, in_cells[cell_group])
        return in_cells

    @once
    def host_left(self) -> tuple[Ints, Ints, Ints]:
        """By node: host CPU, memory and pods that are left, below 0 where it is overcommitted; huge where a
        quantity is not accounted."""
        book, hardware = self.field.ledger, self.hardware
        nodes = len(hardware.nodes)
        cpu, memory, pods = (
            np.minimum(a, 2**40) for a in (hardware.cpu, hardware.host_memory, hardware.pods)
        )
        return (
            cpu - total(book.node, book.node_cpu, nodes),
            memory - total(book.node, book.node_memory, nodes),
            pods - np.bincount(book.node, minlength=nodes),
        )

    @once
    def claim_mib(self) -> Ints:
        """By GPU: what a replica that shares GPUs claims there; 0 where none fits."""
        variant = self.variant
        if variant.gpu_memory_fraction is None:
            return np.full(len(self.hardware.memory), variant.gpu_memory_mib, dtype=np.int64)
        return self.hardware.claims(variant)

    @once
    def left_mib(self) -> Ints:
        """By GPU: memory − claims − used outside, below 0 where it is overcommitted."""
        book, hardware = self.field.ledger, self.hardware
        claimed = total(book.gpu, book.gpu_mib, len(hardware.memory))
        left: Ints = hardware.memory - claimed - hardware.outside
        return left


def _only(cells: Cells, keep: Bools) -> Cells:
    number = np.cumsum(keep) - 1
    victims = keep[cells.victim_cell]
    return Cells(
        unit=cells.unit[keep],
        remainder=np.where(
            cells.remainder[keep] > 0, cells.remainder[keep] % cells.unit[keep], cells.remainder[keep]
        ),
        pool=cells.pool[keep],
        victim=cells.victim[victims],
        victim_cell=number[cells.victim_cell[victims]],
        victim_yield=cells.victim_yield[victims],
    )
