"""The answer to a question: what is needed, what runs, what fits, and what is in the way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np

from sizing.domain.blocked import blocked_sentences, say
from sizing.domain.catalog import Catalog, Question
from sizing.domain.changes import Change, smallest_changes
from sizing.domain.fleet import Fleet
from sizing.domain.reasons import Survey, survey
from sizing.domain.sizing import Count, count
from sizing.domain.specs import STALE_BY_AGE
from sizing.domain.wording import number

_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True)
class Answer:
    """A question with its count on one fleet; `as_dict` gives the public form."""

    catalog: Catalog
    fleet: Fleet
    question: Question
    count: Count

    by_preempting: int = 0
    """Replicas to be had by stopping others of lower priority."""

    @property
    def room(self) -> int:
        """How many more replicas can be had."""
        return self.count.free_room + self.by_preempting

    @property
    def fits(self) -> bool:
        """Whether the missing replicas can be had."""
        return self.count.more <= self.room

    @cached_property
    def survey(self) -> Survey:
        """Every node's code and quantities."""
        return survey(self.fleet, self.count.variant)

    @cached_property
    def changes(self) -> list[Change]:
        """The smallest changes that would help; none where it fits."""
        if self.fits:
            return []
        return smallest_changes(self.catalog, self.fleet, self.question, self.count, self.survey)

    @cached_property
    def blocked(self) -> list[str]:
        """Why it does not fit, in sentences; empty where it does."""
        if self.fits:
            return []
        sentences = blocked_sentences(self.fleet, self.count, self.survey, min(self.room, self.count.more))
        return sentences + [str(change) for change in self.changes]

    @cached_property
    def reasons(self) -> list[str]:
        """Codes of rules of the model that bind."""
        counted = self.count
        if not self.fits and counted.allowed is not None and counted.allowed < counted.more:
            return ["max_replicas"]
        return []

    @cached_property
    def nodes(self) -> list[dict[str, Any]]:
        """An entry for every node, by name."""
        found = self.survey
        return [
            {
                "node": node.name,
                "code": code,
                "fits": fits,
                "numbers": found.numbers(place),
                "holders": sorted(self.fleet.holders_on(place)),
                "preemption": None,
                "say": say(found, int(found.rung[place]), np.array([place])),
            }
            for place, (node, code, fits) in enumerate(
                zip(self.fleet.hardware.nodes, found.codes, found.fits, strict=True)
            )
        ]

    def stale(self, now: datetime) -> str | None:
        """Why the measurement is stale, or None."""
        measured = self.count.measurement
        if measured.stale_reason not in ("", STALE_BY_AGE):
            return measured.stale_reason
        every = self.catalog.profiles[measured.profile].refresh_every_h
        if every is None or self.age_s(now) < every * _SECONDS_PER_HOUR:
            return None
        return f"older than {number(every)} h"

    def age_s(self, now: datetime) -> int:
        """Age of the measurement in whole seconds."""
        return max(int((now - self.count.measurement.measured_at).total_seconds()), 0)

    def as_dict(self, now: datetime, explain_nodes: bool = False) -> dict[str, Any]:
        """The public form at a moment; lists of the original interface are left out where empty."""
        counted, measured = self.count, self.count.measurement
        stale = self.stale(now)
        result: dict[str, Any] = {
            "model": counted.model.name,
            "tok_per_sec": float(self.question.tokens_per_sec),
            "per_replica_tok_per_sec": float(measured.tok_per_sec),
            "profile": measured.profile,
            "variant": counted.variant.name,
            "utilization": float(self.question.utilization),
            "needed": counted.needed,
            "current": counted.current,
            "more": counted.more,
            "surplus": counted.surplus,
            "room": self.room,
            "free_room": counted.free_room,
            "by_preempting": self.by_preempting,
            "fits": self.fits,
        }
        if self.blocked:
            result["blocked"] = list(self.blocked)
        result |= {
            "current_tok_per_sec": float(counted.current_tok_per_sec),
            "measurement": {
                "measured_at": _timestamp(measured.measured_at),
                "age_s": self.age_s(now),
                "stale": stale is not None,
                "source": measured.source,
                "bound": measured.bound,
            },
            "reasons": list(self.reasons),
            "warnings": [
                *_measurement_warnings(counted.variant.name, measured.bound, stale),
                *counted.warnings,
            ],
        }
        if explain_nodes:
            result["nodes"] = self.nodes
        return result


def answer(catalog: Catalog, fleet: Fleet, question: Question) -> Answer:
    """Answer a question; QuestionError where it has no answer."""
    return Answer(catalog, fleet, question, count(catalog, fleet, question))


def _measurement_warnings(variant: str, bound: str | None, stale: str | None) -> list[str]:
    warnings = []
    if stale is not None:
        warnings.append(f"the measurement of {variant} is stale: {stale}")
    if bound == "floor":
        warnings.append(
            f"the measurement of {variant} is a floor: no load tried failed the SLO, so fewer replicas may do"
        )
    return warnings


def _timestamp(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
