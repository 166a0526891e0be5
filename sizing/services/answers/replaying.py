"""An answer computed again, on the inventory that it rested on, by the code of today."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any

from sizing.domain.answer import answer as answered
from sizing.domain.catalog import Question, QuestionError
from sizing.models import Answer
from sizing.services.answers.keeping import read
from sizing.services.answers.noting import form_of
from sizing.services.errors import DeskError

MOST_DIFFERENCES = 100

NOTHING_KEPT = "the inventory of this answer was not kept, so it cannot be computed again"


@dataclass(frozen=True)
class Difference:
    """Something that is other than it was, by its place in the answer: `blocked[0]`; None: not there."""

    path: str
    before: Any
    now: Any


@dataclass(frozen=True)
class Replay:
    """What comes of a question today; `error` is why there is no answer to it any more."""

    result: dict[str, Any] | None
    differences: tuple[Difference, ...]
    error: str = ""

    @property
    def same(self) -> bool:
        """Whether it is the answer that was given."""
        return self.result is not None and not self.differences


def replay(row: Answer) -> Replay:
    """Ask again as of then: the same inventory, and the age of the measurement as it was.

    DeskError `conflict` where the inventory was not kept, or not in a form that this version reads.
    """
    if row.inventory is None:
        raise DeskError(NOTHING_KEPT, code="conflict", status=409)
    try:
        inventory = read(row.inventory)
    except ValueError as error:
        raise DeskError(str(error), code="conflict", status=409) from error
    try:
        found = answered(inventory.catalog, inventory.fleet(), question_of(row))
    except QuestionError as refused:
        return Replay(None, (), refused.message)
    # As it comes out of a database: text and back.
    result: dict[str, Any] = json.loads(json.dumps(form_of(found, row.asked_at)))
    return Replay(result, tuple(islice(_differences("", row.result, result), MOST_DIFFERENCES)))


def question_of(row: Answer) -> Question:
    """The question as it was asked."""
    return Question(
        row.model,
        Decimal(row.tokens_per_sec),
        row.profile or None,
        row.variant or None,
        Decimal(row.utilization),
        tuple(row.as_if),
    )


def _differences(path: str, before: Any, now: Any) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in {**now, **before}:  # in the order of the form: a database may have another
            yield from _differences(f"{path}.{key}" if path else key, before.get(key), now.get(key))
    elif isinstance(before, list) and isinstance(now, list):
        for at in range(max(len(before), len(now))):
            pair = (part[at] if at < len(part) else None for part in (before, now))
            yield from _differences(f"{path}[{at}]", *pair)
    elif before != now:
        yield Difference(path, before, now)
