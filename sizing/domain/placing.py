"""Where further replicas would go: a concrete, valid placement of as many as fit.

Shares (what a replica takes on one node) are first given to groups of GPUs, then dealt out to replicas,
and claims to GPUs in the same way. A deal of `n·r` items, at most r of each place, to r takers gives the
item j to the taker j mod r: so each gets n, of different places.

What is started is filled before an empty node is opened, and of nodes the fullest, and of GPUs the one
with the least free memory, comes first, as far as that costs no room: after n of r replicas there is room
for r - n more (but for types that compete for one host limit over several nodes). Among equals the order
is that of the names and indexes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from sizing.domain.fleet import Fleet
from sizing.domain.hardware import Ints
from sizing.domain.joint import joint_plan
from sizing.domain.once import once
from sizing.domain.placement import contested, group_shares, host_cap, largest_rounds, slots
from sizing.domain.specs import VariantSpec


@dataclass(frozen=True, slots=True)
class Placed:
    """One further replica: the GPU indexes that it would get, by node name, in order of the names."""

    placement: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, eq=False)
class _Deal:
    """So many items of each place, dealt out by `size` to takers, none of them two of one place."""

    counts: Ints
    size: int

    @property
    def takers(self) -> int:
        return int(self._ends[-1]) // self.size if len(self.counts) else 0

    @once
    def _ends(self) -> Ints:
        return np.cumsum(self.counts)

    def taker(self, place: int, ordinal: int) -> int:
        """Who gets an item of a place."""
        item = int(self._ends[place] - self.counts[place]) + ordinal
        return item // self.size if self._apart else item % self.takers

    @once
    def _apart(self) -> bool:
        """Whether no place gives twice, so that neighbors can stay together."""
        return bool(self.counts.max() == 1)

    def items(self, taker: int) -> list[tuple[int, int]]:
        """What a taker gets: places in order, and the how-many-th item of each."""
        dealt = np.arange(self.size)
        items = taker * self.size + dealt if self._apart else taker + self.takers * dealt
        places = np.searchsorted(self._ends, items, side="right")
        ordinals = items - self._ends[places] + self.counts[places]
        return list(zip(places.tolist(), ordinals.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class _Block:
    """Groups that replicas are spread over, and how many shares each group gives."""

    groups: Ints
    deal: _Deal


class Plan(Sequence[Placed]):
    """Further replicas one by one, each found when it is asked for, since they may be very many.

    `fleet` is the one that they are placed on, without them.
    """

    def __init__(self, fleet: Fleet, variant: VariantSpec, blocks: list[_Block]) -> None:
        self.fleet = fleet
        self._variant = variant
        self._blocks = blocks
        self._of_group: dict[int, tuple[Ints, _Deal]] = {}

    def __len__(self) -> int:
        return sum(block.deal.takers for block in self._blocks)

    @overload
    def __getitem__(self, at: int) -> Placed: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Placed, ...]: ...

    def __getitem__(self, at: int | slice) -> Placed | tuple[Placed, ...]:
        places = range(len(self))[at]
        if isinstance(places, range):
            return tuple(self._placed(number) for number in places)
        return self._placed(places)

    def __iter__(self) -> Iterator[Placed]:
        return map(self._placed, range(len(self)))

    @once
    def shares(self) -> Ints:
        """By number of each node: the shares of replicas that it would take."""
        hardware = self.fleet.hardware
        found = np.zeros(len(hardware.nodes), dtype=np.int64)
        for block in self._blocks:
            np.add.at(found, hardware.group_node[block.groups], block.deal.counts)
        return found

    def on(self, node: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The replicas with a share on a node, by number: each one's number, and its GPU indexes there."""
        before = 0
        for block in self._blocks:
            for place in np.flatnonzero(self.fleet.hardware.group_node[block.groups] == node).tolist():
                shares = int(block.deal.counts[place])
                for share in range(shares):
                    _, gpus = self._part(int(block.groups[place]), share, shares)
                    yield before + block.deal.taker(place, share), gpus
            before += block.deal.takers

    def claims(self, node: int) -> dict[int, int]:
        """By GPU index of a node: how many claims it would take."""
        hardware = self.fleet.hardware
        found: dict[int, int] = {}
        for block in self._blocks:
            for place in np.flatnonzero(hardware.group_node[block.groups] == node).tolist():
                gpus, deal = self._claims(int(block.groups[place]), int(block.deal.counts[place]))
                numbers = zip(gpus.tolist(), deal.counts.tolist(), strict=True)
                found |= {hardware.gpu_index[gpu]: count for gpu, count in numbers if count}
        return found

    def _placed(self, number: int) -> Placed:
        for block in self._blocks:
            if number < block.deal.takers:
                break
            number -= block.deal.takers
        parts = [
            self._part(int(block.groups[place]), share, int(block.deal.counts[place]))
            for place, share in block.deal.items(number)
        ]
        return Placed(tuple(sorted(parts)))

    def _part(self, group: int, share: int, shares: int) -> tuple[str, tuple[int, ...]]:
        """The GPUs of one of the shares that a group takes."""
        hardware = self.fleet.hardware
        gpus, deal = self._claims(group, shares)
        indexes = sorted(hardware.gpu_index[gpus[place]] for place, _ in deal.items(share))
        return hardware.nodes[hardware.group_node[group]].name, tuple(indexes)

    def _claims(self, group: int, shares: int) -> tuple[Ints, _Deal]:
        """The GPUs of a group, the fullest first, and how many of so many shares use each."""
        if group not in self._of_group:
            self._of_group[group] = self._find_claims(group, shares)
        return self._of_group[group]

    def _find_claims(self, group: int, shares: int) -> tuple[Ints, _Deal]:
        hardware, size = self.fleet.hardware, self._variant.gpus
        first = int(hardware.group_start[group])
        there = np.arange(first, first + int(hardware.group_size[group]))
        there = there[self._slots[there] > 0]
        there = there[np.argsort(self.fleet.free[there], kind="stable")]
        return there, _Deal(
            _chosen(self._slots[there], size, _rounds(self._slots[there], size), shares), size
        )

    @once
    def _slots(self) -> Ints:
        if self._variant.whole_gpu:
            return self.fleet.whole_free.astype(np.int64)
        return slots(self.fleet, self._variant)


def place(fleet: Fleet, variant: VariantSpec, number: int) -> Plan:
    """Where `number` (at most `room(fleet, variant)`) further replicas of the variant could go together."""
    shares = group_shares(fleet, variant)
    if number <= 0 or not shares.any():
        return Plan(fleet, variant, [])
    order = _preferred(fleet, variant, shares)
    blocks = _on_one_node if variant.nodes == 1 else _over_nodes
    return Plan(fleet, variant, blocks(fleet, variant, shares[order], order, number))


def _preferred(fleet: Fleet, variant: VariantSpec, shares: Ints) -> Ints:
    """The groups that take a share, in the order in which they are filled."""
    hardware = fleet.hardware
    taken = np.minimum(hardware.per_node(shares), host_cap(fleet, variant))
    started = hardware.per_node(hardware.per_group(~fleet.unheld)) > 0
    empty_gpus = hardware.per_node(fleet.whole_free_in_group)
    left = hardware.per_node(hardware.per_group(fleet.free_healthy))
    groups = np.flatnonzero((shares > 0) & (taken[hardware.group_node] > 0))
    node = hardware.group_node[groups]
    keys = (shares[groups], node, left[node], empty_gpus[node], taken[node], ~started[node])
    return groups[np.lexsort(keys)]  # the last key is the first one to count


def _on_one_node(fleet: Fleet, variant: VariantSpec, shares: Ints, groups: Ints, number: int) -> list[_Block]:
    node = fleet.hardware.group_node[groups]
    # The groups of a node stand together; what its host takes is left to the first of them.
    before = np.cumsum(shares) - shares
    first = np.flatnonzero(np.diff(node, prepend=-1))
    of_node = before - np.repeat(before[first], np.diff(first, append=len(node)))
    within = np.clip(host_cap(fleet, variant)[node] - of_node, 0, shares)
    return [_block(groups, _filled(within, number), 1)]


def _over_nodes(fleet: Fleet, variant: VariantSpec, shares: Ints, groups: Ints, number: int) -> list[_Block]:
    """A block for each type in each domain, those with the least room first."""
    hardware = fleet.hardware
    node, kind = hardware.group_node[groups], hardware.group_type[groups]
    cap = host_cap(fleet, variant)[node]
    domain = hardware.domain(variant)[node]
    jointly = np.isin(domain, np.unique(domain[contested(node, shares, cap)]))
    within = np.minimum(shares, cap)
    options: list[tuple[int, int, int, Ints]] = []
    for at, of_kind in sorted(set(zip(domain[~jointly].tolist(), kind[~jointly].tolist(), strict=True))):
        here = np.flatnonzero((domain == at) & (kind == of_kind))
        options.append((_rounds(within[here], variant.nodes), at, of_kind, here))
    blocks = []
    for room, _, _, here in sorted(options, key=lambda option: option[:3]):
        taken = min(room, number)
        counts = _chosen(within[here], variant.nodes, room, taken)
        blocks.append(_block(groups[here], counts, variant.nodes))
        number -= taken
    for at in np.unique(domain[jointly]).tolist():
        here = np.flatnonzero(domain == at)
        counts = joint_plan(node[here], kind[here], shares[here], cap[here], variant.nodes, number)
        for of_kind in np.unique(kind[here]).tolist():
            those = kind[here] == of_kind
            blocks.append(_block(groups[here][those], counts[those], variant.nodes))
            number -= blocks[-1].deal.takers
    return blocks


def _block(groups: Ints, counts: Ints, size: int) -> _Block:
    used = counts > 0
    return _Block(groups[used], _Deal(counts[used], size))


def _rounds(slots: Ints, size: int) -> int:
    """How many takers of `size` items each, of different places, these slots have room for."""
    return int(largest_rounds(slots, np.array([0]), np.zeros(len(slots), dtype=np.int64), size)[0])


def _chosen(slots: Ints, size: int, room: int, takers: int) -> Ints:
    """By place, in order of preference: the items that it gives to so many takers of the `room` that there
    is, so that there is room for all others after them.

    What a place has beyond one item for each later taker costs these nothing; the rest may be taken as
    far as `Σ min(slots, later)` is more than the later ones need.
    """
    later = room - takers
    spare = np.clip(slots - later, 0, takers)
    costly = _filled(np.minimum(slots, takers) - spare, int(np.minimum(slots, later).sum()) - size * later)
    return _filled(spare + costly, size * takers)


def _filled(most: Ints, total: int) -> Ints:
    """Up to `most` of each place in order, `total` in all."""
    filled: Ints = np.clip(total - (np.cumsum(most) - most), 0, most)
    return filled
