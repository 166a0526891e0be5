"""Who gives way: which replicas of lower priority to stop for more replicas of a model.

Advice only: nothing here stops a replica.
"""

from __future__ import annotations

from sizing.domain.fleet import Fleet
from sizing.domain.placement import room
from sizing.domain.preemption.explain import binding_rules, why_not_cheaper
from sizing.domain.preemption.field import field_of
from sizing.domain.preemption.nodes import NodePreemption, node_preemption
from sizing.domain.preemption.result import Bound, Preemption
from sizing.domain.preemption.search import Search
from sizing.domain.specs import ModelSpec, VariantSpec

QUICK_COLUMNS = 60
QUICK_VICTIMS = 1000

__all__ = ["Bound", "NodePreemption", "Preemption", "node_preemption", "preempt"]


def preempt(fleet: Fleet, model: ModelSpec, variant: VariantSpec, wanted: int) -> Preemption:
    """The victims for `wanted` (≥ 1) replicas beyond the free room, over the whole cluster together."""
    field = field_of(fleet, model, variant)
    search = Search(field, wanted)
    chosen, proof = search.run()
    book = field.ledger
    names = sorted(book.names[victim] for victim in chosen)
    gives = 0
    if names:
        gives = min(room(fleet.with_replicas(removed=names), variant) - field.room_now, wanted)
    # What is claimed is counted again, without the solver.
    optimal = proof.complete and gives == proof.gives
    return Preemption(
        gives=gives,
        victims=tuple(fleet.replicas[name].spec for name in names),
        optimal=optimal,
        bound=None if optimal else Bound(proof.gives, proof.priority, proof.victims),
        reasons=binding_rules(field, model, wanted, proof.gives),
        why_not_cheaper=why_not_cheaper(search, chosen, gives, proof),
        quick=search.columns <= QUICK_COLUMNS and len(names) <= QUICK_VICTIMS,
    )
