"""What one node takes of a variant, and what keeps it from taking more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sizing.domain.blocked import say
from sizing.domain.fleet import Fleet
from sizing.domain.hardware import Hardware
from sizing.domain.preemption import node_preemption
from sizing.domain.preemption.nodes import NodePreemption
from sizing.domain.reasons import LADDER, RUNG, survey
from sizing.domain.specs import ModelSpec, VariantSpec

_OPEN = {"ready": True, "schedulable": True, "stale": False}
MENDED: Mapping[str, Mapping[str, bool]] = {
    "node_not_ready": _OPEN,
    "node_cordoned": _OPEN,
    "node_stale": _OPEN,
    "gpu_unhealthy": {"healthy": True},
    "used_outside": {"outside": False},
}
"""Codes that name what can be mended on the node itself, and the node as if it were."""


@dataclass(frozen=True, slots=True)
class Taking:
    """One variant on one node, before any preemption and before `max_replicas`.

    `fits`: replicas (of a variant over several nodes: shares of one) that the node takes alone. `mended`:
    how many it would take if what its code names were mended; 0 where that is none, or cannot be.
    """

    model: ModelSpec
    variant: VariantSpec
    code: str
    say: str
    fits: int
    numbers: dict[str, int | None]
    mended: int

    @property
    def rung(self) -> int:
        """How near it is to fitting: the place of its code in the ladder."""
        return RUNG[self.code]


class OneNode:
    """A node of a fleet, to be asked about many variants: what needs no other node is asked of it alone."""

    def __init__(self, fleet: Fleet, node: int) -> None:
        self.fleet = fleet
        self.node = node
        self.alone = alone(fleet, node)

    def taking(self, model: ModelSpec, variant: VariantSpec) -> Taking:
        """What it takes of a variant; found from the node alone unless a replica spans several."""
        fleet, place = (self.alone, 0) if variant.nodes == 1 else (self.fleet, self.node)
        found = survey(fleet, variant)
        code = LADDER[found.rung[place]]
        mended = 0
        if code in MENDED:
            mended = int(survey(fleet.as_if([place], **MENDED[code]), variant).taken[place])
        return Taking(
            model=model,
            variant=variant,
            code=code,
            say=say(found, int(found.rung[place]), np.array([place])),
            fits=int(found.taken[place]),
            numbers=found.numbers(place),
            mended=mended,
        )

    def preemption(self, model: ModelSpec, variant: VariantSpec) -> NodePreemption:
        """What stopping others on this node gives; the minima of models are those of the whole fleet."""
        return node_preemption(self.fleet, model, variant, np.array([self.node]))[0]


def alone(fleet: Fleet, node: int) -> Fleet:
    """The fleet with this node only, and of its replicas what they hold here."""
    spec = fleet.hardware.nodes[node]
    here = []
    for name in sorted(fleet.holders_on(node)):
        replica = fleet.replicas[name].spec
        placement = tuple(part for part in replica.placement if part[0] == spec.name)
        here.append(replace(replica, placement=placement))
    return Fleet.on(Hardware([spec]), fleet.models, here)
