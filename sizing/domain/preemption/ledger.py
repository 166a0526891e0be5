"""What every replica holds, as arrays: which replicas, and how much of what they give back."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from sizing.domain.claims import claim_mib
from sizing.domain.fleet import Fleet, Held
from sizing.domain.hardware import Bools, Ints
from sizing.domain.specs import HOLDING_STATES, SERVING_STATES, ModelSpec

STOPPABLE_STATES = SERVING_STATES | {"failed"}
"""States in which a replica may be stopped for another model's."""


@dataclass(frozen=True, eq=False)
class Ledger:
    """All replicas that hold anything, in order of name (by code point).

    `order` ranks them for a choice among equals: later started first (an unknown start is the oldest),
    then by name. The flat arrays have an entry for each GPU and each node that a replica holds.
    """

    names: list[str]
    held: list[Held]
    models: list[ModelSpec]
    model: Ints
    priority: Ints
    stoppable: Bools
    serving: Bools
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


def total(place: Ints, values: Ints, length: int) -> Ints:
    """Exact sums of whole numbers by place."""
    sums = np.zeros(length, dtype=np.int64)
    np.add.at(sums, place, values)
    return sums


def ledger(fleet: Fleet) -> Ledger:
    """The fleet's ledger, made once for the same replicas."""
    return fleet.memo("ledger", lambda: _ledger(fleet))


def _ledger(fleet: Fleet) -> Ledger:
    names = sorted(name for name, held in fleet.replicas.items() if held.spec.state in HOLDING_STATES)
    held = [fleet.replicas[name] for name in names]
    specs = [h.spec for h in held]
    models = [fleet.models[name] for name in sorted(fleet.models)]
    number = {model.name: i for i, model in enumerate(models)}
    model = _ints([number[s.model] for s in specs])
    priority = _ints([m.priority for m in models])
    started = np.array([-np.inf if s.started_at is None else s.started_at.timestamp() for s in specs])
    order = np.empty(len(specs), dtype=np.int64)
    order[np.lexsort((np.arange(len(specs)), -started))] = np.arange(len(specs))
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
        priority=priority[model],
        stoppable=np.array([s.state in STOPPABLE_STATES for s in specs], dtype=bool),
        serving=np.array([s.state in SERVING_STATES for s in specs], dtype=bool),
        order=order,
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
