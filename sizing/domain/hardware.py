"""The machines as arrays: what does not change when a replica starts or stops.

GPUs stand in order of node name, then type, then index, so that the GPUs of one node and type are a
contiguous *group*. Every number that an answer needs is a reduction over groups or nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from copy import copy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sizing.domain.claims import claim_mib, fraction_below_need
from sizing.domain.gpu_types import type_key
from sizing.domain.once import once
from sizing.domain.other_nodes import as_if
from sizing.domain.specs import NodeSpec, Taint, VariantSpec
from sizing.domain.taints import untolerated

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
T = TypeVar("T")

UNLIMITED = np.int64(2**62)
"""Stands for a host quantity that is not accounted."""

_MEMO_LIMIT = 2048

_BY_GPU = ("memory", "known", "outside", "healthy", "partition")
_HOST = ("cpu", "host_memory", "pods")
_OF_OPEN_NODES = ("open", "group open")
"""What is kept of hardware and depends on which nodes take something new."""

_UNUSED_SETS = 64
"""Of taints that no node has any more; with more than these it is built anew."""

_BY_NODE = (
    "gpu_count",
    "ready",
    "schedulable",
    "stale",
    "running",
    "cpu",
    "host_memory",
    "pods",
)


class Hardware:
    """Nodes and GPUs as arrays, in order of node name (by code point)."""

    def __init__(self, nodes: Iterable[NodeSpec]) -> None:
        self.nodes: tuple[NodeSpec, ...] = tuple(sorted(nodes, key=lambda n: n.name))
        self.node_number = {node.name: i for i, node in enumerate(self.nodes)}
        self.type_names: list[str] = []
        self._type_number: dict[str, int] = {}
        self._memo: dict[tuple[Hashable, ...], Any] = {}
        self._build_gpus()
        self._build_nodes()

    def _build_gpus(self) -> None:
        node: list[int] = []
        kind: list[int] = []
        memory: list[int] = []
        outside: list[int] = []
        healthy: list[bool] = []
        partition: list[bool] = []
        self.position: list[dict[int, int]] = []
        self.gpu_index: list[int] = []
        for number, spec in enumerate(self.nodes):
            places: dict[int, int] = {}
            for gpu in sorted(spec.gpus, key=lambda g: (type_key(g.type), g.partition, g.index)):
                places[gpu.index] = len(node)
                self.gpu_index.append(gpu.index)
                node.append(number)
                kind.append(self._number_of_type(gpu.type))
                memory.append(-1 if gpu.memory_mib is None else gpu.memory_mib)
                outside.append(gpu.used_outside_mib)
                healthy.append(gpu.healthy)
                partition.append(gpu.partition)
            self.position.append(places)
        self.gpu_node: Ints = np.array(node, dtype=np.int64)
        self.gpu_type: Ints = np.array(kind, dtype=np.int64)
        self.memory: Ints = np.array(memory, dtype=np.int64)
        self.known: Bools = self.memory >= 0
        self.outside: Ints = np.array(outside, dtype=np.int64)
        self.healthy: Bools = np.array(healthy, dtype=bool)
        self.partition: Bools = np.array(partition, dtype=bool)
        self.memory_sizes, self.memory_class = np.unique(self.memory, return_inverse=True)
        self._build_groups()

    def _build_groups(self) -> None:
        key = (self.gpu_node * max(len(self.type_names), 1) + self.gpu_type) * 2 + self.partition
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        self.group_start: Ints = starts.astype(np.int64)
        self.group_size: Ints = np.diff(starts, append=len(key)).astype(np.int64)
        sizes = set(self.group_size.tolist())
        self.group_width: int = sizes.pop() if len(sizes) == 1 else 0
        """GPUs of each group where all have as many, else 0."""
        self.group_node: Ints = self.gpu_node[starts]
        self.group_type: Ints = self.gpu_type[starts]
        self.group_partition: Bools = self.partition[starts]
        self.gpu_group: Ints = np.repeat(np.arange(len(starts)), self.group_size)
        first = np.flatnonzero(np.diff(self.group_node, prepend=-1))
        self.node_first_group: Ints = first.astype(np.int64)
        self.gpu_nodes: Ints = self.group_node[first]
        """Numbers of the nodes that have GPUs; `node_first_group` is their first group."""
        self.one_type_each = len(starts) == len(first)

    def _build_nodes(self) -> None:
        def host(values: Iterable[int | None]) -> Ints:
            return np.array([UNLIMITED if v is None else v for v in values], dtype=np.int64)

        self.gpu_count: Ints = np.bincount(self.gpu_node, minlength=len(self.nodes)).astype(np.int64)
        self.ready: Bools = np.array([n.ready for n in self.nodes], dtype=bool)
        self.schedulable: Bools = np.array([n.schedulable for n in self.nodes], dtype=bool)
        self.stale: Bools = np.array([n.stale for n in self.nodes], dtype=bool)
        self.cpu: Ints = host(n.cpu_millis for n in self.nodes)
        self.host_memory: Ints = host(n.memory_mib for n in self.nodes)
        self.pods: Ints = host(n.pods for n in self.nodes)
        self.running: Bools = self.ready & self.schedulable & ~self.stale
        taint_sets: dict[tuple[Taint, ...], int] = {}
        self.taint_set: Ints = np.array(
            [taint_sets.setdefault(n.taints, len(taint_sets)) for n in self.nodes], dtype=np.int64
        )
        self.taint_sets = list(taint_sets)
        self._build_labels()

    def _build_labels(self) -> None:
        self._nodes_by_label: dict[tuple[str, str], list[int]] = {}
        self._label_keys: dict[str, list[int]] = {}
        for number, node in enumerate(self.nodes):
            for key, value in node.labels.items():
                self._nodes_by_label.setdefault((key, value), []).append(number)
                self._label_keys.setdefault(key, []).append(number)

    def _number_of_type(self, name: str) -> int:
        key = type_key(name)
        if key not in self._type_number:
            self._type_number[key] = len(self.type_names)
            self.type_names.append(name)
        return self._type_number[key]

    @once
    def mix(self) -> Ints:
        """By node: the number of its mix of GPU types and counts; nodes with the same GPUs have the same."""
        mixes: dict[tuple[tuple[int, int], ...], int] = {}
        of_node: dict[int, list[tuple[int, int]]] = {}
        for node, kind, size in zip(
            self.group_node.tolist(), self.group_type.tolist(), self.group_size.tolist(), strict=True
        ):
            of_node.setdefault(node, []).append((kind, size))
        return np.array(
            [mixes.setdefault(tuple(of_node.get(n, ())), len(mixes)) for n in range(len(self.nodes))],
            dtype=np.int64,
        )

    def memo(self, key: tuple[Hashable, ...], compute: Callable[[], T]) -> T:
        """A value that depends on the hardware alone, computed once; callers must not write to it.

        The first word of the key says what it is. Only what `_OF_OPEN_NODES` names may depend on the nodes'
        flags, on what runs outside and on which GPUs are healthy.
        """
        found: T | None = self._memo.get(key)
        if found is None:
            if len(self._memo) >= _MEMO_LIMIT:
                self._memo.clear()
            found = self._memo[key] = compute()
        return found

    def as_if(self, nodes: Iterable[int], told: bool = False, **flags: bool) -> Hardware:
        """The hardware as if some nodes were other than they are.

        `ready`, `schedulable`, `stale`: flags of the nodes; `healthy=True`: all their GPUs are;
        `outside=False`: nothing runs outside on them. `told`: their specs say so too; else they stay as
        they were, which is quicker.
        """
        numbers = list(nodes)
        other = copy(self)
        other._memo = {}
        for name in ("ready", "schedulable", "stale"):
            if name in flags:
                array = getattr(self, name).copy()
                array[numbers] = flags[name]
                setattr(other, name, array)
        other.running = other.ready & other.schedulable & ~other.stale
        if "healthy" in flags or "outside" in flags:
            there = np.isin(self.gpu_node, numbers)
            if "healthy" in flags:
                other.healthy = np.where(there, flags["healthy"], self.healthy)
            if not flags.get("outside", True):
                other.outside = np.where(there, 0, self.outside)
        if told:
            specs = list(self.nodes)
            for number in numbers:
                specs[number] = as_if(specs[number], flags)
            other.nodes = tuple(specs)
        return other

    def with_changed(self, nodes: Iterable[NodeSpec]) -> Hardware | None:
        """The hardware with some nodes as these specs say, for what changes every minute; None where one is
        new, or has other GPUs than before, so that not everything would keep its place."""
        changed = {}
        for node in nodes:
            number = self.node_number.get(node.name)
            if number is None or _layout(node) != _layout(self.nodes[number]):
                return None
            changed[number] = node
        other = copy(self)
        specs = list(self.nodes)
        for number, node in changed.items():
            specs[number] = node
        other.nodes = tuple(specs)
        if any(node.labels != self.nodes[n].labels for n, node in changed.items()):
            other._memo = {}
            other._build_labels()
        else:
            other._memo = {k: v for k, v in self._memo.items() if k[0] not in _OF_OPEN_NODES}
        for name in ("ready", "schedulable", "stale", "running", "outside", "healthy", "taint_set", *_HOST):
            setattr(other, name, getattr(self, name).copy())
        other.taint_sets = list(self.taint_sets)
        for number, node in changed.items():
            other._take_over(number, node)
        return other if len(other.taint_sets) <= len(other.nodes) + _UNUSED_SETS else None

    def _take_over(self, number: int, node: NodeSpec) -> None:
        self.ready[number], self.schedulable[number] = node.ready, node.schedulable
        self.stale[number] = node.stale
        self.running[number] = node.ready and node.schedulable and not node.stale
        for name, value in zip(_HOST, (node.cpu_millis, node.memory_mib, node.pods), strict=True):
            getattr(self, name)[number] = UNLIMITED if value is None else value
        for gpu in node.gpus:
            place = self.position[number][gpu.index]
            self.outside[place], self.healthy[place] = gpu.used_outside_mib, gpu.healthy
        if node.taints != self.taint_sets[self.taint_set[number]]:
            if node.taints not in self.taint_sets:
                self.taint_sets.append(node.taints)
            self.taint_set[number] = self.taint_sets.index(node.taints)
            self._memo = {k: v for k, v in self._memo.items() if k[0] != "tolerated"}

    def with_node(self, node: NodeSpec) -> Hardware:
        """The hardware with one more node. It stands behind all others, whatever its name, so that everything
        that is there keeps its place."""
        other, one, number = copy(self), Hardware([node]), len(self.nodes)
        other._memo = {}
        for name in ("mix", "_once"):  # what was found of the hardware as it is
            other.__dict__.pop(name, None)
        other.nodes = (*self.nodes, node)
        other.node_number = self.node_number | {node.name: number}
        first = len(self.gpu_node)
        other.position = [*self.position, {index: first + at for index, at in one.position[0].items()}]
        other.gpu_index = [*self.gpu_index, *one.gpu_index]
        other.type_names, other._type_number = list(self.type_names), dict(self._type_number)
        kinds = np.array([other._number_of_type(name) for name in one.type_names], dtype=np.int64)
        other.gpu_type = np.append(self.gpu_type, kinds[one.gpu_type])
        other.gpu_node = np.append(self.gpu_node, one.gpu_node + number)
        for name in _BY_GPU + _BY_NODE:
            setattr(other, name, np.append(getattr(self, name), getattr(one, name)))
        other.memory_sizes, other.memory_class = np.unique(other.memory, return_inverse=True)
        other._build_groups()
        # A set of taints that is there already may be there twice.
        other.taint_set = np.append(self.taint_set, len(self.taint_sets))
        other.taint_sets = [*self.taint_sets, node.taints]
        labels = node.labels.items()
        by_label, by_key = self._nodes_by_label, self._label_keys
        other._nodes_by_label = by_label | {pair: [*by_label.get(pair, ()), number] for pair in labels}
        other._label_keys = by_key | {key: [*by_key.get(key, ()), number] for key, _ in labels}
        return other

    # What a variant may use -----------------------------------------------------------------

    def type_allowed(self, variant: VariantSpec) -> Bools:
        """By type number: whether the variant names it, or names none."""
        if not variant.gpu_types:
            return np.ones(len(self.type_names), dtype=bool)
        wanted = {type_key(t) for t in variant.gpu_types}
        return np.array([type_key(t) in wanted for t in self.type_names], dtype=bool)

    def partition_allowed(self, variant: VariantSpec) -> bool:
        """Whether the variant may run on a partition of an allowed type."""
        return variant.gpus == 1 and variant.nodes == 1 and bool(variant.gpu_types)

    def group_usable(self, variant: VariantSpec) -> Bools:
        """By group: its type is allowed, and it is no partition where those are not."""

        def compute() -> Bools:
            usable = self.type_allowed(variant)[self.group_type]
            return usable if self.partition_allowed(variant) else usable & ~self.group_partition

        return self.memo(("group", variant.gpu_types, self.partition_allowed(variant)), compute)

    def selected(self, variant: VariantSpec) -> Bools:
        """By node: it carries the selector's labels, and the topology label where it is needed."""
        topology = variant.topology_key if variant.nodes > 1 else None

        def compute() -> Bools:
            mask = np.ones(len(self.nodes), dtype=bool)
            for pair in variant.node_selector:
                mask &= self._mask(self._nodes_by_label.get(pair, []))
            if topology is not None:
                mask &= self._mask(self._label_keys.get(topology, []))
            return mask

        return self.memo(("selected", variant.node_selector, topology), compute)

    def tolerated(self, variant: VariantSpec) -> Bools:
        """By node: the variant tolerates all of its closing taints."""

        def compute() -> Bools:
            by_set = [not untolerated(s, variant.tolerations) for s in self.taint_sets]
            return np.array(by_set, dtype=bool)[self.taint_set]

        return self.memo(("tolerated", variant.tolerations), compute)

    def open_nodes(self, variant: VariantSpec) -> Bools:
        """By node: ready, not cordoned, not stale, selected and tolerated."""

        def compute() -> Bools:
            return self.running & self.selected(variant) & self.tolerated(variant)

        topology = variant.topology_key if variant.nodes > 1 else None
        return self.memo(("open", variant.node_selector, topology, variant.tolerations), compute)

    def group_open(self, variant: VariantSpec) -> Bools:
        """By group: usable, on an open node."""

        def compute() -> Bools:
            return self.group_usable(variant) & self.open_nodes(variant)[self.group_node]

        topology = variant.topology_key if variant.nodes > 1 else None
        key = (variant.node_selector, topology, variant.tolerations, variant.gpu_types)
        return self.memo(("group open", *key, self.partition_allowed(variant)), compute)

    def domain(self, variant: VariantSpec) -> Ints:
        """By node: the number of its topology domain (0 for all without a `topology_key`)."""
        topology = variant.topology_key if variant.nodes > 1 else None

        def compute() -> Ints:
            if topology is None:
                return np.zeros(len(self.nodes), dtype=np.int64)
            numbers: dict[str | None, int] = {}
            return np.array(
                [numbers.setdefault(n.labels.get(topology), len(numbers)) for n in self.nodes],
                dtype=np.int64,
            )

        return self.memo(("domain", topology), compute)

    def claims(self, variant: VariantSpec) -> Ints:
        """By GPU, for a claim of a size or a fraction: the claim in MiB; 0 where the memory is unknown,
        and 0 where the fraction is below the size that the variant needs."""

        def compute() -> Ints:
            by_size = [
                0 if size < 0 or fraction_below_need(variant, size) else claim_mib(variant, size)
                for size in self.memory_sizes.tolist()
            ]
            return np.array(by_size, dtype=np.int64)[self.memory_class]

        return self.memo(("claims", variant.gpu_memory_mib, variant.gpu_memory_fraction), compute)

    def _mask(self, numbers: list[int]) -> Bools:
        mask = np.zeros(len(self.nodes), dtype=bool)
        mask[numbers] = True
        return mask

    # Sums ---------------------------------------------------------------------------------------

    def per_group(self, values: NDArray[Any]) -> Ints:
        """Sums of a value by GPU, by group."""
        if not len(self.group_start):
            return np.zeros(0, dtype=np.int64)
        if self.group_width:
            # A table's rows are summed twice as fast as segments are.
            table = values.astype(np.int64, copy=False).reshape(-1, self.group_width)
            rows: Ints = np.einsum("ij->i", table)
            return rows
        sums: Ints = np.add.reduceat(values, self.group_start, dtype=np.int64)
        return sums

    def per_node(self, values: Ints) -> Ints:
        """Sums of a value by group, by node."""
        sums = np.zeros(len(self.nodes), dtype=np.int64)
        if len(self.node_first_group):
            sums[self.gpu_nodes] = (
                values if self.one_type_each else np.add.reduceat(values, self.node_first_group)
            )
        return sums

    def most_per_node(self, values: Ints) -> Ints:
        """The largest value of a node's groups; 0 where it has none."""
        most = np.zeros(len(self.nodes), dtype=np.int64)
        if len(self.node_first_group):
            most[self.gpu_nodes] = (
                values if self.one_type_each else np.maximum.reduceat(values, self.node_first_group)
            )
        return most


def _layout(node: NodeSpec) -> set[tuple[int, str, int | None, bool]]:
    """What gives the GPUs of a node their places."""
    return {(gpu.index, gpu.type, gpu.memory_mib, gpu.partition) for gpu in node.gpus}
