"""Replicas that could run on another node, so that what is free comes together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sizing.domain.fleet import Fleet, Held
from sizing.domain.placement import node_shares, takes_claim
from sizing.domain.reasons import RUNG, Survey
from sizing.domain.specs import SERVING_STATES, ReplicaSpec, VariantSpec

SOURCES_TRIED = 3
REPLICAS_TRIED = 3


def moves(fleet: Fleet, now: Survey) -> Iterator[tuple[ReplicaSpec, str, str, Fleet]]:
    """Replicas on one node that fit on another, nearest nodes first: the replica, where it runs, where it
    would, and the fleet then."""
    scattered = np.flatnonzero(now.rung == RUNG["too_few_free_gpus"])
    nearest = scattered[np.argsort(-now.free_gpus[scattered], kind="stable")][:SOURCES_TRIED]
    for source in nearest.tolist():
        missing = now.variant.gpus - int(now.free_gpus[source])
        here = [fleet.replicas[name] for name in sorted(fleet.holders_on(source))]
        # A draining replica ends by itself, and a failed one is started anew.
        movable = [h for h in here if len(h.nodes) == 1 and h.spec.state in SERVING_STATES]
        enough = sorted((h for h in movable if len(h.gpus) >= missing), key=lambda h: len(h.gpus))
        for held in enough[:REPLICAS_TRIED]:
            found = _moved(fleet, held, source, now)
            if found is not None:
                target, other = found
                names = fleet.hardware.nodes
                yield held.spec, names[source].name, names[target].name, other


def moved(fleet: Fleet, held: Held, target: int) -> Fleet | None:
    """The fleet with a replica of one node on another node; None where that does not take it."""
    variant = fleet.models[held.spec.model].variant(held.spec.variant)
    without = fleet.with_replicas(removed=[held.spec.name])
    return _placed(without, held, variant, target) if node_shares(without, variant)[target] else None


def _moved(fleet: Fleet, held: Held, source: int, now: Survey) -> tuple[int, Fleet] | None:
    """The fleet with the replica on the fullest other node that takes it."""
    variant = fleet.models[held.spec.model].variant(held.spec.variant)
    if variant.nodes > 1:
        return None
    without = fleet.with_replicas(removed=[held.spec.name])
    taken = node_shares(without, variant)
    taken[source] = 0
    # A node that takes one of those asked for is left to them.
    takes = np.flatnonzero((taken > 0) & (now.taken == 0))
    if not len(takes):
        return None
    target = int(takes[np.argmin(taken[takes])])
    return target, _placed(without, held, variant, target)


def _placed(without: Fleet, held: Held, variant: VariantSpec, target: int) -> Fleet:
    place = ((without.hardware.nodes[target].name, _gpus_for(without, variant, target)),)
    return without.with_replicas(added=[replace(held.spec, placement=place)])


def _gpus_for(fleet: Fleet, variant: VariantSpec, node: int) -> tuple[int, ...]:
    """Indexes of GPUs of one type of a node that hold one more replica, the fullest first."""
    hardware = fleet.hardware
    usable = (
        takes_claim(fleet, variant)
        & hardware.group_usable(variant)[hardware.gpu_group]
        & (hardware.gpu_node == node)
    )
    for group in np.unique(hardware.gpu_group[usable]).tolist():
        there = np.flatnonzero(usable & (hardware.gpu_group == group))
        if len(there) >= variant.gpus:
            chosen = there[np.argsort(fleet.free[there], kind="stable")][: variant.gpus]
            return tuple(sorted(hardware.gpu_index[gpu] for gpu in chosen.tolist()))
    raise AssertionError("the node takes a share, so one group has the GPUs")
