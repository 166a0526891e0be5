"""The cluster at one moment: the hardware, and what the replicas on it hold.

A fleet is immutable. A change gives another one that shares the hardware, so that "what if" costs
a copy of a few arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from threading import RLock
from typing import Any, TypeVar

import numpy as np

from sizing.domain.claims import claim_mib
from sizing.domain.hardware import Bools, Hardware, Ints
from sizing.domain.once import found_once, once
from sizing.domain.other_nodes import empty
from sizing.domain.overlay import Overlay
from sizing.domain.specs import (
    HOLDING_STATES,
    SERVING_STATES,
    WHOLE_GPU_OUTSIDE_LIMIT_MIB,
    ModelSpec,
    NodeSpec,
    ReplicaSpec,
    VariantSpec,
)

T = TypeVar("T")


_NOBODY: frozenset[str] = frozenset()
_ALL = slice(None)
_MOST_PATCHED = 100
_Places = Ints | slice


@dataclass(frozen=True, slots=True)
class Held:
    """A replica with the places of its GPUs in the hardware's arrays and the numbers of its nodes."""

    spec: ReplicaSpec
    gpus: tuple[int, ...]
    nodes: tuple[int, ...]


@dataclass
class _Usage:
    """What is held, by GPU and by node."""

    claimed: Ints
    holders: Ints
    cpu: Ints
    host_memory: Ints
    pods: Ints
    node_holders: Overlay[int, frozenset[str]]
    draining: frozenset[str]

    def copy(self) -> _Usage:
        return _Usage(
            self.claimed.copy(),
            self.holders.copy(),
            self.cpu.copy(),
            self.host_memory.copy(),
            self.pods.copy(),
            self.node_holders,
            self.draining,
        )


class Fleet:
    """Nodes, GPUs, models and replicas, and the free room that they leave."""

    def __init__(
        self,
        hardware: Hardware,
        models: Mapping[str, ModelSpec],
        replicas: Overlay[str, Held],
        by_model: dict[str, frozenset[str]],
        usage: _Usage,
        memo: dict[Hashable, Any] | None = None,
        origin: tuple[dict[Hashable, Any], frozenset[str]] | None = None,
    ) -> None:
        self.hardware = hardware
        self.models = models
        self._replicas = replicas
        self._by_model = by_model
        self._usage = usage
        self._memo: dict[Hashable, Any] = {} if memo is None else memo
        self._kept: dict[str, tuple[dict[Hashable, Any], dict[Hashable, RLock]]] = {}
        self._finding: dict[Hashable, RLock] = {}  # for the memo
        self._serving: dict[str, tuple[ReplicaSpec, ...]] = {}
        self._variants: dict[str, Counter[str]] = {}
        # The memo of a fleet before this one, and the names of the replicas in which they differ.
        self._origin = origin

    @property
    def replicas(self) -> Mapping[str, Held]:
        """Every replica by name."""
        return self._replicas

    @classmethod
    def build(
        cls, nodes: Iterable[NodeSpec], models: Iterable[ModelSpec], replicas: Iterable[ReplicaSpec]
    ) -> Fleet:
        """A fleet from specs; names must resolve (KeyError otherwise)."""
        return cls.on(Hardware(nodes), {m.name: m for m in models}, replicas)

    @classmethod
    def on(
        cls, hardware: Hardware, models: Mapping[str, ModelSpec], replicas: Iterable[ReplicaSpec]
    ) -> Fleet:
        """A fleet on hardware that is built already."""
        gpus, nodes = len(hardware.gpu_node), len(hardware.nodes)
        usage = _Usage(
            claimed=np.zeros(gpus, dtype=np.int64),
            holders=np.zeros(gpus, dtype=np.int64),
            cpu=np.zeros(nodes, dtype=np.int64),
            host_memory=np.zeros(nodes, dtype=np.int64),
            pods=np.zeros(nodes, dtype=np.int64),
            node_holders=Overlay({}),
            draining=frozenset(),
        )
        return cls(hardware, models, Overlay({}), {}, usage).with_replicas(added=replicas)

    def with_replicas(self, removed: Iterable[str] = (), added: Iterable[ReplicaSpec] = ()) -> Fleet:
        """The fleet without some replicas, by name, and with others, which replace those of their names."""
        usage = self._usage.copy()
        replicas: dict[str, Held | None] = {}
        by_model: dict[str, set[str]] = {}
        node_holders: dict[int, set[str]] = {}
        touched: list[int] = []

        def book(held: Held, sign: int) -> None:
            if held.spec.state not in HOLDING_STATES:
                return
            variant = self.models[held.spec.model].variant(held.spec.variant)
            memory = self.hardware.memory
            touched.extend(held.gpus)
            for gpu in held.gpus:
                usage.holders[gpu] += sign
                usage.claimed[gpu] += sign * _held_mib(variant, int(memory[gpu]))
            for node in held.nodes:
                usage.cpu[node] += sign * variant.cpu_millis
                usage.host_memory[node] += sign * variant.memory_mib
                usage.pods[node] += sign
                names = node_holders.get(node)
                if names is None:
                    names = node_holders[node] = set(self.holders_on(node))
                (names.add if sign > 0 else names.discard)(held.spec.name)

        def names_of(model: str) -> set[str]:
            if model not in by_model:
                by_model[model] = set(self._by_model.get(model, ()))
            return by_model[model]

        def take_away(name: str) -> None:
            held = replicas[name] if name in replicas else self._replicas.get(name)
            if held is not None:
                replicas[name] = None
                book(held, -1)
                names_of(held.spec.model).discard(name)

        for name in removed:
            take_away(name)
        for spec in added:
            take_away(spec.name)
            replicas[spec.name] = held = self._place(spec)
            book(held, +1)
            names_of(spec.model).add(spec.name)
        usage.node_holders = usage.node_holders.changed({n: frozenset(s) for n, s in node_holders.items()})
        leaving = {name for name, held in replicas.items() if held and held.spec.state == "draining"}
        usage.draining = (usage.draining - replicas.keys()) | leaving
        merged = self._by_model | {model: frozenset(names) for model, names in by_model.items()}
        now = self._replicas.changed(replicas)
        origin = self._origin_of(frozenset(replicas))
        changed = Fleet(self.hardware, self.models, now, merged, usage, origin=origin)
        changed._serving = {m: specs for m, specs in self._serving.items() if m not in by_model}
        changed._variants = {m: number for m, number in self._variants.items() if m not in by_model}
        return changed._carry_over(self, touched)

    def as_if(self, nodes: Iterable[int], told: bool = False, **flags: bool) -> Fleet:
        """The fleet as if some nodes, by number, were other than they are (see `Hardware.as_if`)."""
        return self._of_same_replicas(self.hardware.as_if(nodes, told, **flags))

    def with_nodes(self, nodes: Iterable[NodeSpec]) -> Fleet | None:
        """The fleet with some nodes as these specs say; None where that moves GPUs (see
        `Hardware.with_changed`)."""
        changed = list(nodes)
        hardware = self.hardware.with_changed(changed)
        if hardware is None:
            return None
        numbers = [hardware.node_number[node.name] for node in changed]
        there = [place for number in numbers for place in hardware.position[number].values()]
        return self._of_same_replicas(hardware)._carry_over(self, there)

    def _of_same_replicas(self, hardware: Hardware) -> Fleet:
        """What the replicas hold depends on the layout of the GPUs alone, so it stays."""
        other = Fleet(
            hardware, self.models, self._replicas, self._by_model, self._usage, self._memo, self._origin
        )
        other._serving, other._variants = dict(self._serving), dict(self._variants)
        return other

    def with_models(self, models: Mapping[str, ModelSpec]) -> Fleet:
        """The fleet as if its models had other limits; models that run must have the same variants."""
        memo, origin = (self._memo, self._origin) if self._ranks_same(models) else (None, None)
        other = Fleet(self.hardware, models, self._replicas, self._by_model, self._usage, memo, origin)
        other._serving, other._variants = dict(self._serving), dict(self._variants)
        return other._carry_over(self, [])

    def _ranks_same(self, models: Mapping[str, ModelSpec]) -> bool:
        """Whether models of these names have the priorities and variants that they have here."""
        same = models.keys() == self.models.keys()
        return same and all(
            (model.priority, model.variants) == (models[name].priority, models[name].variants)
            for name, model in self.models.items()
        )

    def on_catalog(self, models: Mapping[str, ModelSpec]) -> Fleet:
        """The fleet with these models as they are now; KeyError where replicas run what is gone."""
        running = (name for name, replicas in self._by_model.items() if replicas)
        if all(name in models and models[name].variants == self.models[name].variants for name in running):
            return self.with_models(models)
        return Fleet.on(self.hardware, models, [held.spec for held in self._replicas.values()])

    def with_empty_node(self, like: NodeSpec) -> Fleet:
        """The fleet with one more node of that kind (see `empty`), named after it: `gpu-a1 +1`.

        It stands behind all others, so that everything that is there keeps its place.
        """
        there = self.hardware.node_number
        name = next(name for i in count(1) if (name := f"{like.name} +{i}") not in there)
        node = replace(empty(like), name=name)
        usage = self._usage.copy()
        for what, more in (
            ("claimed", len(node.gpus)),
            ("holders", len(node.gpus)),
            ("cpu", 1),
            ("host_memory", 1),
            ("pods", 1),
        ):
            setattr(usage, what, np.append(getattr(usage, what), np.zeros(more, dtype=np.int64)))
        return Fleet(self.hardware.with_node(node), self.models, self._replicas, self._by_model, usage)

    def less(self, claimed: Ints, holders: Ints, cpu: Ints, host_memory: Ints, pods: Ints) -> Fleet:
        """The same replicas, as if so much less were held, by GPU and by node.

        What many replicas hold can be taken off in one step so, where only the room that is left matters.
        """
        usage = self._usage
        lighter = _Usage(
            usage.claimed - claimed,
            usage.holders - holders,
            usage.cpu - cpu,
            usage.host_memory - host_memory,
            usage.pods - pods,
            usage.node_holders,
            usage.draining,
        )
        return Fleet(
            self.hardware, self.models, self._replicas, self._by_model, lighter, self._memo, self._origin
        )

    def memo(
        self,
        key: Hashable,
        compute: Callable[[], T],
        patch: Callable[[T, frozenset[str]], T] | None = None,
    ) -> T:
        """A value that depends on the replicas, their places, and the names, priorities and variants of the
        models alone, computed once; callers must not write to it.

        patch: makes it from that of a fleet which differs in the replicas of some names only. At most one
        kind of value has it.
        """

        def find() -> T:
            if patch is None:
                return compute()
            origin, self._origin = self._origin, None
            before = None if origin is None else origin[0].get(key)
            return compute() if before is None or origin is None else patch(before, origin[1])

        return found_once(self._memo, self._finding, key, find)

    def kept(self, kind: str, key: Hashable, compute: Callable[[], T], most: int) -> T:
        """A value that depends on this fleet as it is, of which the last `most` of a kind are kept; callers
        must not write to it."""
        of_kind, finding = self._kept.setdefault(kind, ({}, {}))

        def find() -> T:
            found = compute()
            while len(of_kind) >= most:
                of_kind.pop(next(iter(list(of_kind)), None), None)  # a copy: others add meanwhile
            return found

        return found_once(of_kind, finding, key, find)

    def _origin_of(self, changed: frozenset[str]) -> tuple[dict[Hashable, Any], frozenset[str]] | None:
        """Where a fleet that differs from this one in a few replicas comes from."""
        memo, names = self._memo, changed
        if self._origin is not None:  # not used yet
            memo, names = self._origin[0], self._origin[1] | changed
        return (memo, names) if memo and len(names) <= _MOST_PATCHED else None

    def of_model(self, model: str) -> list[ReplicaSpec]:
        """All replicas of a model, by name."""
        return [self.replicas[name].spec for name in sorted(self._by_model.get(model, ()))]

    def serving(self, model: str) -> list[ReplicaSpec]:
        """The replicas of a model that count as current, by name."""
        found = self._serving.get(model)
        if found is None:
            found = tuple(spec for spec in self.of_model(model) if spec.state in SERVING_STATES)
            self._serving[model] = found
        return list(found)

    def serving_by_variant(self, model: str) -> Mapping[str, int]:
        """How many replicas of each variant of a model count as current; callers must not write to it."""
        found = self._variants.get(model)
        if found is None:
            found = self._variants[model] = Counter(spec.variant for spec in self.serving(model))
        return found

    def priority(self, replica: ReplicaSpec) -> int:
        """A replica's own priority, else its model's."""
        return self.models[replica.model].priority if replica.priority is None else replica.priority

    @property
    def draining(self) -> frozenset[str]:
        """Names of the replicas that are about to end and still hold their GPUs."""
        return self._usage.draining

    def troubled(self) -> frozenset[str]:
        """Names of the replicas on nodes that are closed or have an unhealthy GPU."""

        def compute() -> frozenset[str]:
            hardware = self.hardware
            nodes = {*np.flatnonzero(~hardware.running).tolist()}
            nodes |= {*hardware.gpu_node[~hardware.healthy].tolist()}
            return frozenset().union(*map(self.holders_on, nodes))

        return self.kept("troubled", None, compute, 1)

    def holders_on(self, node: int) -> frozenset[str]:
        """Names of the replicas that hold GPUs on a node."""
        return self._usage.node_holders.get(node, _NOBODY)

    def _place(self, spec: ReplicaSpec) -> Held:
        gpus: list[int] = []
        nodes: list[int] = []
        for name, indexes in spec.placement:
            node = self.hardware.node_number[name]
            nodes.append(node)
            gpus += [self.hardware.position[node][index] for index in indexes]
        return Held(spec, tuple(gpus), tuple(nodes))

    # What is left ----------------------------------------------------------------------------

    @once
    def free(self) -> Ints:
        """MiB left by GPU: memory − claims − used outside, never below 0; 0 where the memory is unknown."""
        return self._free(_ALL)

    @once
    def free_healthy(self) -> Ints:
        """`free` of healthy GPUs, else 0."""
        return self._free_healthy(_ALL)

    @once
    def unheld(self) -> Bools:
        """By GPU: nobody holds any of it."""
        return self._unheld(_ALL)

    @property
    def holders(self) -> Ints:
        """By GPU: how many replicas hold it; callers must not write to it."""
        return self._usage.holders

    @once
    def whole_free(self) -> Bools:
        """By GPU: a whole-GPU claim fits."""
        return self._whole_free(_ALL)

    def _free(self, at: _Places) -> Ints:
        h = self.hardware
        left = np.maximum(h.memory[at] - self._usage.claimed[at] - h.outside[at], 0)
        return np.where(h.known[at], left, 0)

    def _free_healthy(self, at: _Places) -> Ints:
        return np.where(self.hardware.healthy[at], self._free(at), 0)

    def _unheld(self, at: _Places) -> Bools:
        unheld: Bools = self._usage.holders[at] == 0
        return unheld

    def _whole_free(self, at: _Places) -> Bools:
        h = self.hardware
        whole: Bools = self._unheld(at) & h.healthy[at] & (h.outside[at] <= WHOLE_GPU_OUTSIDE_LIMIT_MIB)
        return whole

    def _carry_over(self, before: Fleet, touched: list[int]) -> Fleet:
        """Take what is known by GPU from the fleet before a change, and count anew where it touched."""
        at = np.array(sorted(set(touched)), dtype=np.int64)
        for name in ("free", "free_healthy", "unheld", "whole_free"):
            known = before.__dict__.get(name)  # where a cached property keeps its value
            if known is not None:
                values = known.copy()
                values[at] = getattr(self, f"_{name}")(at)
                self.__dict__[name] = values
        return self

    @once
    def whole_free_in_group(self) -> Ints:
        """By group: how many GPUs a whole-GPU claim fits on."""
        return self.hardware.per_group(self.whole_free)

    @once
    def cpu_left(self) -> Ints:
        """Host CPU by node, millicores, never below 0."""
        left: Ints = np.maximum(self.hardware.cpu - self._usage.cpu, 0)
        return left

    @once
    def host_memory_left(self) -> Ints:
        """Host memory by node, MiB, never below 0."""
        left: Ints = np.maximum(self.hardware.host_memory - self._usage.host_memory, 0)
        return left

    @once
    def pods_left(self) -> Ints:
        """Pods by node, never below 0."""
        left: Ints = np.maximum(self.hardware.pods - self._usage.pods, 0)
        return left


def _held_mib(variant: VariantSpec, memory_mib: int) -> int:
    """What a running replica holds of a GPU; all of it where the memory is unknown (-1)."""
    return 0 if memory_mib < 0 else claim_mib(variant, memory_mib)
