"""Which rules bind, and why nobody of lower priority would do."""

from __future__ import annotations

import numpy as np

from sizing.domain.hardware import Bools
from sizing.domain.preemption.field import NEVER, Field
from sizing.domain.preemption.search import Proof, Search
from sizing.domain.specs import ModelSpec
from sizing.domain.wording import number, plural

MOST_SENTENCES = 5


def binding_rules(field: Field, model: ModelSpec, wanted: int, most: int) -> tuple[str, ...]:
    """Codes of the rules without which more than `most` of the wanted replicas could be had."""
    if most >= wanted:
        return ()
    lower = field.gain(field.reachable, wanted)
    rules = []
    if lower > most:
        rules.append("preemption_never" if model.preemption_policy == NEVER else "protected_by_minimum")
    if lower < wanted and field.gain(field.equal_or_higher | field.reachable, wanted) > lower:
        rules.append("no_lower_priority")
    return tuple(rules)


def why_not_cheaper(search: Search, victims: list[int], gives: int, proof: Proof) -> tuple[str, ...]:
    """A sentence for each priority below the highest victim's, lowest first, as far as it is proven."""
    if not victims or proof.priority is None:
        return ()
    field = search.field
    book = field.ledger
    highest = min(int(book.priority[victims].max()), proof.priority)
    lower = np.unique(book.priority[field.lower & (book.priority < highest)]).tolist()
    sentences = [_sentence(search, priority, gives) for priority in lower[:MOST_SENTENCES]]
    if len(lower) > MOST_SENTENCES:
        rest = plural(len(lower) - MOST_SENTENCES, "more priority", "more priorities")
        sentences.append(f"{rest} up to {number(lower[-1])}: too few as well")
    return tuple(sentences)


def _sentence(search: Search, priority: int, gives: int) -> str:
    field = search.field
    book = field.ledger
    there = field.lower & (book.priority == priority)
    count, reachable = int(there.sum()), int((there & field.reachable).sum())
    protected = _protected(field, there & field.reachable)
    start = f"priority {priority}: {plural(count, 'replica')}"
    closed = f"on nodes that are closed to {field.variant.name}"
    if reachable == 0:
        return f"{start}, {'' if count == 1 else 'all '}{closed}"
    if protected == count:
        return f"{start}, {'protected by its minimum' if count == 1 else 'all protected by their minimum'}"
    parts = []
    if protected:
        parts.append(f"{number(protected)} protected by their minimum")
    if reachable < count:
        parts.append(f"{number(count - reachable)} {closed}")
    if protected < reachable and priority in search.levels:
        most = min(search.bound(search.levels.index(priority)), gives - 1)
        had = "no room" if most <= 0 else f"room for at most {number(most)} of {number(gives)}"
        parts.append(f"stopping all that may be stopped up to this priority gives {had}")
    return f"{start}, {'; '.join(parts)}" if protected or reachable < count else f"{start}; {parts[0]}"


def _protected(field: Field, there: Bools) -> int:
    """How many of these replicas stay whatever is chosen, because their models keep their minimum."""
    book = field.ledger
    serving = np.bincount(book.model[there & book.serving], minlength=len(book.models))
    return int(np.maximum(serving - field.allowance, 0).sum())
