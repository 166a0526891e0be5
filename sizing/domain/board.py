"""The fleet at a glance: nodes in groups by zone and GPU type, what is free of them, and how it is spread.

Everything is counted over arrays: a board of ten thousand nodes is looked at all day.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from sizing.domain.fleet import Fleet
from sizing.domain.gpu_types import type_key
from sizing.domain.hardware import Bools, Hardware, Ints
from sizing.domain.picture import ZONE_LABEL
from sizing.domain.specs import HOLDING_STATES


class By(StrEnum):
    """What nodes are grouped by."""

    ZONE_AND_TYPE = "zone-type"
    ZONE = "zone"
    TYPE = "type"


@dataclass(frozen=True, slots=True)
class Counts:
    """What some nodes have. Each GPU is in exactly one of `held`, `free`, `shut`, `outside`, `unhealthy`."""

    nodes: int
    closed: int
    """Of the nodes, those that take nothing new: not ready, cordoned, or stale."""
    gpus: int
    held: int
    """By a replica at least, wherever and however healthy."""
    free: int
    """A whole-GPU claim fits, on a node that is not closed."""
    shut: int
    """Would be free, were its node not closed."""
    outside: int
    """Healthy, held by nobody, and used outside of replicas."""
    unhealthy: int
    """Held by nobody."""
    unhealthy_held: int
    """Of the held ones, those that are unhealthy."""
    parts: int
    """Of those held or used outside, those with memory left for others: healthy, on a node that is not
    closed."""
    widest: int
    """The most GPUs on one node."""
    spread: tuple[tuple[int, int], ...]
    """How many nodes that are not closed have how many free GPUs: (free GPUs, nodes), by free GPUs."""

    @property
    def most(self) -> int:
        """The most free GPUs on one node."""
        return self.spread[-1][0] if self.spread else 0


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes of one kind, by name. `zone` or `types` is None where it is not grouped by; `zone` is empty for
    nodes without one; `types` are the spellings of all GPU types that each of the nodes has."""

    zone: str | None
    types: tuple[str, ...] | None
    nodes: Ints
    counts: Counts


@dataclass(frozen=True, slots=True)
class Survey:
    """The nodes that were asked for, all together and in groups by zone, then type; no zone comes last.

    Where one GPU type was asked for, only GPUs of that type are counted; `left_out`: the others on these
    nodes.
    """

    total: Counts
    groups: tuple[Group, ...]
    left_out: int


def survey(
    fleet: Fleet,
    by: By = By.ZONE_AND_TYPE,
    *,
    zone: str | None = None,
    gpu_type: str | None = None,
    model: str | None = None,
) -> Survey:
    """The nodes with GPUs that are in a zone, have a GPU of a type, and hold a replica of a model."""
    kinds = _kinds(fleet.hardware)
    counted = _of_type(fleet.hardware, gpu_type)
    tally = _Tally(fleet, counted)
    chosen = tally.by_node[0] > 0
    if zone is not None:
        chosen = chosen & (kinds.zone == (kinds.zones.index(zone) if zone in kinds.zones else -1))
    if model is not None:
        chosen = chosen & _holding(fleet, model)
    numbers = np.flatnonzero(chosen)
    part = _parts(kinds, by)[numbers]
    order = np.argsort(part, kind="stable")
    starts = np.flatnonzero(np.diff(part[order], prepend=-1))
    found = [
        _group(kinds, by, int(part[nodes[0]]), numbers[nodes], tally)
        for nodes in np.split(order, starts[1:])
        if len(nodes)
    ]
    total = tally.of(numbers)
    left_out = int(fleet.hardware.gpu_count[numbers].sum()) - total.gpus
    return Survey(total, tuple(sorted(found, key=_place)), left_out)


def zones(hardware: Hardware) -> list[str]:
    """The zones that nodes with GPUs are in, by name; an empty one where some are in none."""
    kinds = _kinds(hardware)
    there = np.unique(kinds.zone[hardware.gpu_count > 0]).tolist()
    return sorted(kinds.zones[number] for number in there)


def gpu_types(hardware: Hardware) -> list[str]:
    """The GPU types that there are, by name."""
    return sorted(hardware.type_names)


@dataclass(frozen=True)
class _Kinds:
    """By node: the number of its zone and of its set of GPU types."""

    zones: list[str]
    zone: Ints
    types: list[tuple[str, ...]]
    type: Ints


def _kinds(hardware: Hardware) -> _Kinds:
    def compute() -> _Kinds:
        zone_numbers: dict[str, int] = {}
        zone = [
            zone_numbers.setdefault(node.labels.get(ZONE_LABEL, ""), len(zone_numbers))
            for node in hardware.nodes
        ]
        # Of a node with slices the same type may be in two groups, as a partition and as a whole.
        of_node: list[frozenset[int]] = [frozenset()] * len(hardware.nodes)
        for node, kind in zip(hardware.group_node.tolist(), hardware.group_type.tolist(), strict=True):
            of_node[node] |= {kind}
        type_numbers: dict[frozenset[int], int] = {}
        types = [type_numbers.setdefault(kinds, len(type_numbers)) for kinds in of_node]
        return _Kinds(
            list(zone_numbers),
            np.array(zone, dtype=np.int64),
            [tuple(sorted(hardware.type_names[kind] for kind in kinds)) for kinds in type_numbers],
            np.array(types, dtype=np.int64),
        )

    return hardware.memo(("board kinds",), compute)


def _of_type(hardware: Hardware, gpu_type: str | None) -> Bools:
    """By GPU: it is of the type, in whatever spelling; None: of any."""
    if gpu_type is None:
        return np.ones(len(hardware.gpu_type), dtype=bool)
    wanted = np.array([type_key(name) == type_key(gpu_type) for name in hardware.type_names], dtype=bool)
    there: Bools = wanted[hardware.gpu_type]
    return there


def _holding(fleet: Fleet, model: str) -> Bools:
    """By node: a replica of the model holds GPUs there."""

    def compute() -> Bools:
        there = np.zeros(len(fleet.hardware.nodes), dtype=bool)
        for spec in fleet.of_model(model):
            if spec.state in HOLDING_STATES:
                there[list(fleet.replicas[spec.name].nodes)] = True
        return there

    # What is no model's name is not kept: anybody may ask for any.
    return fleet.memo(("board holding", model), compute) if model in fleet.models else compute()


def _parts(kinds: _Kinds, by: By) -> Ints:
    """By node: the number of its group."""
    if by is By.ZONE:
        return kinds.zone
    if by is By.TYPE:
        return kinds.type
    parts: Ints = kinds.zone * len(kinds.types) + kinds.type
    return parts


def _group(kinds: _Kinds, by: By, part: int, nodes: Ints, tally: _Tally) -> Group:
    zone, types = divmod(part, max(len(kinds.types), 1)) if by is By.ZONE_AND_TYPE else (part, part)
    return Group(
        None if by is By.TYPE else kinds.zones[zone],
        None if by is By.ZONE else kinds.types[types],
        nodes,
        tally.of(nodes),
    )


def _place(group: Group) -> tuple[bool, str, tuple[str, ...]]:
    return group.zone == "", group.zone or "", group.types or ()


class _Tally:
    """The counts of some GPUs by node, to be summed over any nodes."""

    def __init__(self, fleet: Fleet, counted: Bools) -> None:
        hardware = fleet.hardware
        running = hardware.running[hardware.gpu_node]
        held, whole, healthy = ~fleet.unheld, fleet.whole_free, hardware.healthy

        def by_node(gpus: Bools) -> Ints:
            places = hardware.gpu_node[gpus & counted]
            return np.bincount(places, minlength=len(hardware.nodes)).astype(np.int64)

        self.closed = ~hardware.running
        self.free = by_node(whole & running)
        self.by_node = np.stack(
            [
                by_node(counted),
                by_node(held),
                self.free,
                by_node(whole & ~running),
                by_node(~held & healthy & ~whole),
                by_node(~held & ~healthy),
                by_node(held & ~healthy),
                by_node(~whole & healthy & running & (fleet.free > 0)),
            ]
        )

    def of(self, nodes: Ints) -> Counts:
        closed = self.closed[nodes]
        free, many = np.unique(self.free[nodes[~closed]], return_counts=True)
        gpus, held, free_gpus, shut, outside, unhealthy, unhealthy_held, parts = (
            self.by_node[:, nodes].sum(axis=1).tolist()
        )
        return Counts(
            nodes=len(nodes),
            closed=int(closed.sum()),
            gpus=gpus,
            held=held,
            free=free_gpus,
            shut=shut,
            outside=outside,
            unhealthy=unhealthy,
            unhealthy_held=unhealthy_held,
            parts=parts,
            widest=int(self.by_node[0, nodes].max(initial=0)),
            spread=tuple(zip(free.tolist(), many.tolist(), strict=True)),
        )
