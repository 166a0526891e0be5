"""Who gives way: which replicas of lower priority to stop for more replicas of a model.

Advice only: nothing here stops a replica.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np

from sizing.domain.fleet import Fleet
from sizing.domain.preemption.explain import binding_rules, why_not_cheaper
from sizing.domain.preemption.field import Field, field_of
from sizing.domain.preemption.layout import Layout
from sizing.domain.preemption.limits import limits
from sizing.domain.preemption.nodes import NodePreemption, node_preemption
from sizing.domain.preemption.result import Bound, Preemption
from sizing.domain.preemption.search import Search
from sizing.domain.specs import ModelSpec, VariantSpec

QUICK_COLUMNS = 60
QUICK_VICTIMS = 1000

FOUND_KEPT = 16

__all__ = ["Bound", "NodePreemption", "Preemption", "limits", "node_preemption", "preempt"]


_recent: deque[tuple[ModelSpec, Field, Layout | None]] = deque(maxlen=3)
"""What numbers that are typed one after the other share. Not kept by the fleet, which it refers to: such a
circle of megabytes would be freed late."""


def preempt(
    fleet: Fleet, model: ModelSpec, variant: VariantSpec, wanted: int, *, again: bool = False
) -> Preemption:
    """The victims for `wanted` (≥ 1) replicas beyond the free room, over the whole cluster together.

    again: the same is likely to be asked of this fleet with another number.
    """
    field, layout = _begin(fleet, model, variant, again)
    # Numbers that people type one after the other often come to the same search: as many replicas, or more
    # than stopping everybody gives.
    sought = max(min(wanted, field.most), 1)
    asked = (model, variant, sought)
    most, found = fleet.kept("preemption", asked, lambda: _found(field, sought, layout), FOUND_KEPT)
    return replace(found, reasons=binding_rules(field, model, wanted, most))


def _begin(fleet: Fleet, model: ModelSpec, variant: VariantSpec, again: bool) -> tuple[Field, Layout | None]:
    for known, field, layout in tuple(_recent):
        if field.fleet is fleet and field.variant == variant and known == model:
            return field, layout
    field = field_of(fleet, model, variant)
    if not again:
        return field, None
    layout = Layout(field) if field.most > 0 else None
    _recent.append((model, field, layout))
    return field, layout


def _found(field: Field, wanted: int, layout: Layout | None) -> tuple[int, Preemption]:
    """The victims, all but the rules that bind, and how many replicas are proven to be the most."""
    search = Search(field, wanted, layout=layout)
    chosen, proof = search.run()
    book = field.ledger
    chosen = sorted(chosen)  # by name, as the ledger is
    stopped = np.zeros(len(book.names), dtype=bool)
    stopped[chosen] = True
    gives = field.gain(stopped, wanted) if chosen else 0
    # What is claimed is counted again, without the solver.
    optimal = proof.complete and gives == proof.gives
    return proof.gives, Preemption(
        gives=gives,
        victims=tuple(book.held[victim].spec for victim in chosen),
        optimal=optimal,
        bound=None if optimal else Bound(proof.gives, proof.priority, proof.victims),
        reasons=(),
        why_not_cheaper=why_not_cheaper(search, chosen, gives, proof),
        quick=search.columns <= QUICK_COLUMNS and len(chosen) <= QUICK_VICTIMS,
    )
