"""Who gives way: which replicas of lower priority to stop for more replicas of a model.

Advice only: nothing here stops a replica.
"""

from __future__ import annotations

import numpy as np

from sizing.domain.fleet import Fleet
from sizing.domain.preemption.explain import binding_rules, why_not_cheaper
from sizing.domain.preemption.field import field_of
from sizing.domain.preemption.limits import limits
from sizing.domain.preemption.nodes import NodePreemption, node_preemption
from sizing.domain.preemption.result import Bound, Preemption
from sizing.domain.preemption.search import Search
from sizing.domain.specs import ModelSpec, VariantSpec

QUICK_COLUMNS = 60
QUICK_VICTIMS = 1000

FOUND_KEPT = 16

__all__ = ["Bound", "NodePreemption", "Preemption", "limits", "node_preemption", "preempt"]


def preempt(fleet: Fleet, model: ModelSpec, variant: VariantSpec, wanted: int) -> Preemption:
    """The victims for `wanted` (≥ 1) replicas beyond the free room, over the whole cluster together."""
    # Rates that people type one after the other mostly come to the same number of replicas.
    asked = (model, variant, wanted)
    return fleet.kept("preemption", asked, lambda: _find(fleet, model, variant, wanted), FOUND_KEPT)


def _find(fleet: Fleet, model: ModelSpec, variant: VariantSpec, wanted: int) -> Preemption:
    field = field_of(fleet, model, variant)
    search = Search(field, wanted)
    chosen, proof = search.run()
    book = field.ledger
    chosen = sorted(chosen)  # by name, as the ledger is
    stopped = np.zeros(len(book.names), dtype=bool)
    stopped[chosen] = True
    gives = field.gain(stopped, wanted) if chosen else 0
    # What is claimed is counted again, without the solver.
    optimal = proof.complete and gives == proof.gives
    return Preemption(
        gives=gives,
        victims=tuple(book.held[victim].spec for victim in chosen),
        optimal=optimal,
        bound=None if optimal else Bound(proof.gives, proof.priority, proof.victims),
        reasons=binding_rules(field, model, wanted, proof.gives),
        why_not_cheaper=why_not_cheaper(search, chosen, gives, proof),
        quick=search.columns <= QUICK_COLUMNS and len(chosen) <= QUICK_VICTIMS,
    )
