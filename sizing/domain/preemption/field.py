"""Who may be stopped for a model, and how many of each model."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sizing.domain.fleet import Fleet
from sizing.domain.hardware import Bools, Ints
from sizing.domain.once import once
from sizing.domain.placement import room
from sizing.domain.preemption.ledger import Ledger, ledger
from sizing.domain.specs import ModelSpec, VariantSpec

NEVER = "Never"


@dataclass(frozen=True, eq=False)
class Field:
    """A question of preemption, before any choice.

    By replica of the ledger: `lower` are stoppable replicas of lower priority of other models, `reachable`
    those of them that sit on open nodes only, `candidates` those that some choice may stop;
    `equal_or_higher` are the other stoppable replicas on open nodes, the model's own among them.
    By model: `allowance`, how many starting or ready replicas it may lose.
    """

    fleet: Fleet
    variant: VariantSpec
    ledger: Ledger
    lower: Bools
    reachable: Bools
    candidates: Bools
    equal_or_higher: Bools
    allowance: Ints
    room_now: int
    gains: dict[int, int] = field(default_factory=dict, init=False)
    """By priority: what stopping all candidates up to it gives, as far as it was asked for."""

    def gain(self, stopped: Bools, most: int) -> int:
        """How many more replicas there is room for without these, up to so many."""
        return min(self._gain(stopped), most)

    def _gain(self, stopped: Bools) -> int:
        return room(self.ledger.without(self.fleet, stopped), self.variant) - self.room_now

    @once
    def most(self) -> int:
        """What stopping all candidates gives, whatever their minima are."""
        return self._gain(self.candidates)

    def gain_up_to(self, priority: int, most: int) -> int:
        """What stopping all candidates of at most this priority gives, up to so many."""
        if priority not in self.gains:
            self.gains[priority] = self._gain(self.up_to(priority))
        return min(self.gains[priority], most)

    @once
    def allowed(self) -> Bools:
        """As many candidates as may be stopped at once, the first among equals of each model."""
        book = self.ledger
        counted = np.flatnonzero(self.candidates & book.serving)
        counted = counted[np.lexsort((book.order[counted], book.model[counted]))]
        model = book.model[counted]
        place = np.arange(len(counted)) - np.searchsorted(model, model)
        allowed = self.candidates & ~book.serving
        allowed[counted[place < self.allowance[model]]] = True
        return allowed

    def up_to(self, priority: int) -> Bools:
        """The candidates of at most this priority."""
        return self.candidates & (self.ledger.priority <= priority)


def field_of(fleet: Fleet, model: ModelSpec, variant: VariantSpec) -> Field:
    """Find who may be stopped for the model's replicas of this variant."""
    book = ledger(fleet)
    names = [m.name for m in book.models]
    own = names.index(model.name) if model.name in names else -1
    serving = np.bincount(book.model[book.serving], minlength=len(names))
    minimum = np.array([m.min_replicas for m in book.models], dtype=np.int64)
    allowance = np.maximum(serving - minimum, 0).astype(np.int64)
    lower = book.stoppable & (book.model != own) & (book.priority < model.priority)
    on_open = _on_open_nodes(fleet, variant, book)
    reachable = lower & on_open
    allowed = model.preemption_policy != NEVER
    candidates = reachable & allowed & (~book.serving | (allowance[book.model] > 0))
    return Field(
        fleet=fleet,
        variant=variant,
        ledger=book,
        lower=lower,
        reachable=reachable,
        candidates=candidates,
        equal_or_higher=book.stoppable & ~lower & on_open,
        allowance=allowance,
        room_now=room(fleet, variant),
    )


def _on_open_nodes(fleet: Fleet, variant: VariantSpec, book: Ledger) -> Bools:
    """By replica: it sits on nodes, and all of them are open for the variant."""
    open_node = fleet.hardware.open_nodes(variant)[book.node]
    on = np.bincount(book.node_replica, minlength=len(book.names))
    on_open = np.bincount(book.node_replica[open_node], minlength=len(book.names))
    result: Bools = (on > 0) & (on == on_open)
    return result
