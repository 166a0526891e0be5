"""What a question of preemption answers."""

from __future__ import annotations

from dataclasses import dataclass

from sizing.domain.specs import ReplicaSpec


@dataclass(frozen=True)
class Bound:
    """What is proven where the optimum is not: no choice gives more than `gives` replicas, and with as many
    as were found none has a lower highest priority than `priority` or fewer than `victims` victims.
    None: nothing is known."""

    gives: int
    priority: int | None
    victims: int | None


@dataclass(frozen=True)
class Preemption:
    """Who would have to stop for more replicas.

    `gives`: replicas to be had by stopping the victims, at most those wanted. `victims` are in order of
    name. `optimal`: proven that there are no more replicas to be had, and for as many no lower highest
    priority, then no fewer victims, then no lower sum of priorities; else `bound` tells what is proven.
    `reasons`: codes of the rules that bind where not all can be had. `why_not_cheaper`: a sentence for each
    lower priority that does not suffice. `quick`: it was so easy to find that asking again costs little.
    """

    gives: int
    victims: tuple[ReplicaSpec, ...]
    optimal: bool
    bound: Bound | None
    reasons: tuple[str, ...]
    why_not_cheaper: tuple[str, ...]
    quick: bool = True
