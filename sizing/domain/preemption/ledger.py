"""What every replica holds, as arrays: which replicas, and how much of what they give back."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sizing.domain.claims import claim_mib
from sizing.domain.fleet import Fleet, Held
from sizing.domain.hardware import Bools, Ints
from sizing.domain.specs import HOLDING_STATES, SERVING_STATES, ModelSpec

Floats = NDArray[np.float64]
T = TypeVar("T")

_FEW = 500
"""So many names are looked up faster one by one."""

STOPPABLE_STATES = SERVING_STATES | {"failed"}
"""States in which a replica may be stopped for another model's."""


@dataclass(frozen=True, eq=False)
class Ledger:
    """All replicas that hold anything, in order of name (by code point), each with its own priority.

    `started` are seconds since 1970, minus infinity where unknown. `order` ranks them for a choice among
    equals: later started first (an unknown start is the oldest), then by name. The flat arrays have an
    entry for each GPU and each node that a replica holds.
    """

    names: list[str]
    held: list[Held]
    models: list[ModelSpec]
    model: Ints
    priority: Ints
    stoppable: Bools
    serving: Bools
    started: Floats
    order: Ints
    gpu_replica: Ints
    gpu: Ints
    gpu_mib: Ints
    node_replica: Ints
    node: Ints
    node_cpu: Ints
    node_memory: Ints

    def without(self, fleet: Fleet, stopped: Bools) -> Fleet:
        """The fleet as if these replicas held nothing."""
        gpus, nodes = len(fleet.hardware.gpu_node), len(fleet.hardware.nodes)
        there = stopped[self.gpu_replica]
        here = stopped[self.node_replica]
        node = self.node[here]
        return fleet.less(
            claimed=total(self.gpu[there], self.gpu_mib[there], gpus),
            holders=np.bincount(self.gpu[there], minlength=gpus),
            cpu=total(node, self.node_cpu[here], nodes),
            host_memory=total(node, self.node_memory[here], nodes),
            pods=np.bincount(node, minlength=nodes),
        )


def without(fleet: Fleet, replicas: Iterable[str]) -> Fleet:
    """The fleet as if replicas of these names held nothing; quick also where they are many."""
    gone = set(replicas)
    return ledger(fleet).without(fleet, _marked(fleet, gone)) if gone else fleet


def nodes_of(fleet: Fleet, replicas: Iterable[str]) -> Bools:
    """By node: one of these replicas holds something there."""
    book = ledger(fleet)
    there = np.zeros(len(fleet.hardware.nodes), dtype=bool)
    there[book.node[_marked(fleet, set(replicas))[book.node_replica]]] = True
    return there


def _marked(fleet: Fleet, names: set[str]) -> Bools:
    """By replica of the ledger: its name is among these."""
    book = ledger(fleet)
    if len(names) > _FEW:
        return np.array([name in names for name in book.names], dtype=bool)
    marked = np.zeros(len(book.names), dtype=bool)
    for name in names:
        place = bisect_left(book.names, name)
        if place < len(book.names) and book.names[place] == name:
            marked[place] = True
    return marked


def total(place: Ints, values: Ints, length: int) -> Ints:
    """Exact sums of whole numbers by place."""
    sums = np.zeros(length, dtype=np.int64)
    np.add.at(sums, place, values)
    return sums


def ledger(fleet: Fleet) -> Ledger:
    """The fleet's ledger, made once for the same replicas; where few of them changed, from the one before."""
    found = fleet.memo(
        "ledger", lambda: ledger_of(fleet, fleet.replicas), lambda old, names: patched(fleet, old, names)
    )
    models = _models(fleet)
    return found if found.models == models else replace(found, models=models)  # they have other limits


def _models(fleet: Fleet) -> list[ModelSpec]:
    return [fleet.models[name] for name in sorted(fleet.models)]


def patched(fleet: Fleet, old: Ledger, names: Iterable[str]) -> Ledger:
    """The fleet's ledger from one that differs in the replicas of these names only."""
    places = {name: bisect_left(old.names, name) for name in names}
    gone = [at for name, at in places.items() if at < len(old.names) and old.names[at] == name]
    kept = np.ones(len(old.names), dtype=bool)
    kept[gone] = False
    new = ledger_of(fleet, {name: fleet.replicas[name] for name in places if name in fleet.replicas})
    names_kept = _without(old.names, gone)
    # Places among the kept at which the new ones come in, which keeps the order of names.
    come_in = np.array([bisect_left(names_kept, name) for name in new.names], dtype=np.int64)
    old_rank = np.full(len(old.names), -1, dtype=np.int64)
    there = np.arange(len(names_kept))
    old_rank[kept] = there + np.searchsorted(come_in, there, side="right")
    new_rank = come_in + np.arange(len(come_in))

    def by_replica(name: str) -> NDArray[Any]:
        return np.insert(getattr(old, name)[kept], come_in, getattr(new, name))

    def flat(replica: str, *names: str) -> list[Ints]:
        left = kept[getattr(old, replica)]
        whose = np.concatenate((old_rank[getattr(old, replica)[left]], new_rank[getattr(new, replica)]))
        order = np.argsort(whose, kind="stable")
        others = (np.concatenate((getattr(old, n)[left], getattr(new, n)))[order] for n in names)
        return [whose[order], *others]

    gpu_replica, gpu, gpu_mib = flat("gpu_replica", "gpu", "gpu_mib")
    node_replica, node, node_cpu, node_memory = flat("node_replica", "node", "node_cpu", "node_memory")
    started = by_replica("started")
    return Ledger(
        names=_with(names_kept, come_in, new.names),
        held=_with(_without(old.held, gone), come_in, new.held),
        models=new.models,
        model=by_replica("model"),
        priority=by_replica("priority"),
        stoppable=by_replica("stoppable"),
        serving=by_replica("serving"),
        started=started,
        order=_order(started),
        gpu_replica=gpu_replica,
        gpu=gpu,
        gpu_mib=gpu_mib,
        node_replica=node_replica,
        node=node,
        node_cpu=node_cpu,
        node_memory=node_memory,
    )


def _without(values: list[T], gone: list[int]) -> list[T]:
    left = list(values)
    for at in sorted(gone, reverse=True):
        del left[at]
    return left


def _with(values: list[T], come_in: Ints, new: list[T]) -> list[T]:
    for at, value in zip(reversed(come_in.tolist()), reversed(new), strict=True):
        values.insert(at, value)
    return values


def _order(started: Floats) -> Ints:
    """The rank of each replica: later started first, then by name, in whose order they stand."""
    order = np.empty(len(started), dtype=np.int64)
    order[np.lexsort((np.arange(len(started)), -started))] = np.arange(len(started))
    return order


def ledger_of(fleet: Fleet, replicas: Mapping[str, Held]) -> Ledger:
    """The ledger of some replicas of a fleet."""
    names = sorted(name for name, held in replicas.items() if held.spec.state in HOLDING_STATES)
    held = [replicas[name] for name in names]
    specs = [h.spec for h in held]
    models = _models(fleet)
    number = {model.name: i for i, model in enumerate(models)}
    model = _ints([number[s.model] for s in specs])
    started = np.array([-np.inf if s.started_at is None else s.started_at.timestamp() for s in specs])
    replica = np.arange(len(specs))
    gpu_replica = np.repeat(replica, [len(h.gpus) for h in held])
    gpu = _ints(list(chain.from_iterable(h.gpus for h in held)))
    node_replica = np.repeat(replica, [len(h.nodes) for h in held])
    variants: dict[tuple[str, str], int] = {}
    variant = _ints([variants.setdefault((s.model, s.variant), len(variants)) for s in specs])
    known = [fleet.models[m].variant(v) for m, v in variants]
    memories = fleet.hardware.memory_sizes.tolist()
    claims = np.array([[claim_mib(v, size) if size >= 0 else 0 for size in memories] for v in known])
    claims = claims.reshape(len(known), len(memories)).astype(np.int64)
    cpu, memory = _ints([v.cpu_millis for v in known]), _ints([v.memory_mib for v in known])
    return Ledger(
        names=names,
        held=held,
        models=models,
        model=model,
        priority=_ints([fleet.priority(s) for s in specs]),
        stoppable=np.array([s.state in STOPPABLE_STATES for s in specs], dtype=bool),
        serving=np.array([s.state in SERVING_STATES for s in specs], dtype=bool),
        started=started,
        order=_order(started),
        gpu_replica=gpu_replica,
        gpu=gpu,
        gpu_mib=claims[variant[gpu_replica], fleet.hardware.memory_class[gpu]],
        node_replica=node_replica,
        node=_ints(list(chain.from_iterable(h.nodes for h in held))),
        node_cpu=cpu[variant[node_replica]],
        node_memory=memory[variant[node_replica]],
    )


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)
