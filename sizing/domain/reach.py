"""What can be had: the free room, and what stopping replicas of lower priority adds."""

from __future__ import annotations

from dataclasses import dataclass

from sizing.domain.catalog import Catalog, Question
from sizing.domain.fleet import Fleet
from sizing.domain.preemption import Preemption, preempt
from sizing.domain.sizing import Count, count
from sizing.domain.specs import ReplicaSpec

_MOST_WANTED = 2**31


@dataclass(frozen=True)
class Reach:
    """A question in replicas with the victims that would have to stop; `preemption` is None where none are
    asked for: it fits already, or `max_replicas` allows no more than what fits."""

    count: Count
    preemption: Preemption | None

    @property
    def by_preempting(self) -> int:
        """Replicas to be had by stopping others of lower priority."""
        return 0 if self.preemption is None else self.preemption.gives

    @property
    def victims(self) -> tuple[ReplicaSpec, ...]:
        """The replicas that would have to stop, by name."""
        return () if self.preemption is None else self.preemption.victims

    @property
    def room(self) -> int:
        """How many more replicas can be had."""
        return self.count.free_room + self.by_preempting

    @property
    def had(self) -> int:
        """How many of the missing replicas can be had."""
        return min(self.room, self.count.more)


def reach(catalog: Catalog, fleet: Fleet, question: Question) -> Reach:
    """Answer a question in replicas; QuestionError where it has no answer."""
    return reach_of(fleet, count(catalog, fleet, question))


def reach_of(fleet: Fleet, counted: Count, again: bool = False) -> Reach:
    """What of a question can be had. again: the model is likely to be asked about again."""
    wanted = min(counted.permitted - counted.free_room, _MOST_WANTED)
    found = preempt(fleet, counted.model, counted.variant, wanted, again=again) if wanted > 0 else None
    return Reach(counted, found)
