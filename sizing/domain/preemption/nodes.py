"""What each node alone could give by stopping what may be stopped there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sizing.domain.fleet import Fleet
from sizing.domain.hardware import Bools, Ints
from sizing.domain.placement import node_shares, room
from sizing.domain.preemption.field import NEVER, Field, field_of
from sizing.domain.preemption.layout import Layout
from sizing.domain.preemption.level import Level
from sizing.domain.preemption.program import Work
from sizing.domain.preemption.search import WORK
from sizing.domain.specs import ModelSpec, VariantSpec

NodePreemption = dict[str, int] | str | None


def node_preemption(
    fleet: Fleet, model: ModelSpec, variant: VariantSpec, nodes: Ints | None = None
) -> list[NodePreemption]:
    """For these nodes, by number (None: all in order of name), each looked at alone: `{"gives": n}`, the
    further replicas (shares of a replica where it spans nodes) to be had by stopping others, or where there
    are none and the node takes none now the code of the rule that binds; None where no such rule matters.
    """
    field = field_of(fleet, model, variant)
    book = field.ledger
    now = node_shares(fleet, variant)

    def without(stopped: Bools) -> Ints:
        return node_shares(book.without(fleet, stopped), variant) - now

    gives = without(field.candidates)
    chosen = np.arange(len(gives)) if nodes is None else nodes
    asked = np.zeros(len(gives), dtype=bool)
    asked[chosen] = True
    over = _over_minimum(field) & (gives > 0) & asked
    if over.any():
        gives = np.where(over, np.minimum(_within_minima(field, over, now), gives), gives)
    lower = without(field.reachable) > 0
    anybody = without(field.equal_or_higher | field.reachable) > 0
    code = "preemption_never" if model.preemption_policy == NEVER else "protected_by_minimum"
    return [
        {"gives": n} if n else None if taken else code if low else "no_lower_priority" if some else None
        for n, taken, low, some in zip(
            gives[chosen].tolist(),
            now[chosen].tolist(),
            lower[chosen].tolist(),
            anybody[chosen].tolist(),
            strict=True,
        )
    ]


def _over_minimum(field: Field) -> Bools:
    """By node: stopping every candidate there would take some model below its minimum."""
    book, nodes = field.ledger, len(field.fleet.hardware.nodes)
    counted = (field.candidates & book.serving)[book.node_replica]
    models = max(len(book.models), 1)
    pairs, count = np.unique(
        book.node[counted] * models + book.model[book.node_replica[counted]], return_counts=True
    )
    over = np.zeros(nodes, dtype=bool)
    over[pairs[count > field.allowance[pairs % models]] // models] = True
    return over


def _within_minima(field: Field, over: Bools, now: Ints) -> Ints:
    """By node: the most that it gives alone with all minima kept.

    One program for all nodes: what a replica holds on each node stands as a replica of its own, and what a
    model has on each node as a model of its own, so that every node chooses by itself.
    """
    fleet, book = field.fleet, field.ledger
    part = np.arange(len(book.node))
    whose = book.node_replica
    span = len(fleet.hardware.nodes)
    key = whose * span + book.node
    order = np.argsort(key)
    gpu_key = book.gpu_replica * span + fleet.hardware.gpu_node[book.gpu]
    models = max(len(book.models), 1)
    own, model = np.unique(book.node * models + book.model[whose], return_inverse=True)
    parts = replace(
        book,
        names=[book.names[r] for r in whose.tolist()],
        held=[book.held[r] for r in whose.tolist()],
        models=[book.models[m] for m in (own % models).tolist()],
        model=model,
        priority=book.priority[whose],
        stoppable=book.stoppable[whose],
        serving=book.serving[whose],
        started=book.started[whose],
        order=part,
        gpu_replica=order[np.searchsorted(key, gpu_key, sorter=order)],
        node_replica=part,
    )
    alone = replace(field.variant, nodes=1, topology_key=None)
    alike = replace(
        field,
        variant=alone,
        ledger=parts,
        equal_or_higher=field.equal_or_higher[whose],
        lower=field.lower[whose],
        reachable=field.reachable[whose],
        candidates=field.candidates[whose] & over[book.node],
        allowance=field.allowance[own % models],
        room_now=room(fleet, alone),
    )
    limited = np.ones(len(own), dtype=bool)
    most = alike.gain(alike.candidates, 2**31)
    top = int(parts.priority[alike.candidates].max())
    level = Level(Layout(alike), top, limited, most, Work(WORK))
    best = level.most()
    stopped = np.zeros(len(part), dtype=bool)
    if best.values is not None:
        stopped[level.replicas(best.values, limited)] = True
    return node_shares(parts.without(fleet, stopped), field.variant) - now
