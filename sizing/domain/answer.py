"""The answer to a question: what is needed, what runs, what fits, and what is in the way."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np

from sizing.domain.blocked import blocked_sentences, say
from sizing.domain.catalog import Catalog, Question, unmet_words
from sizing.domain.changes import Change, Trial
from sizing.domain.fleet import Fleet
from sizing.domain.preemption import Preemption, node_preemption
from sizing.domain.reach import Reach, reach
from sizing.domain.reasons import LADDER, Survey, survey
from sizing.domain.sizing import Count
from sizing.domain.specs import SERVING_STATES, MeasurementSpec, ReplicaSpec
from sizing.domain.staleness import why_stale
from sizing.domain.wording import NAMES_SHOWN

_CLOCKS = timedelta(minutes=5)
_FUTURE = "the measurement of {} is dated in the future, so its age is not known"


@dataclass(frozen=True)
class Answer:
    """A question with its count on one fleet; `as_dict` gives the public form."""

    catalog: Catalog
    fleet: Fleet
    question: Question
    reach: Reach

    @property
    def count(self) -> Count:
        """The question in replicas."""
        return self.reach.count

    @property
    def preemption(self) -> Preemption | None:
        """Who would have to stop; None where nobody is asked to."""
        return self.reach.preemption

    @property
    def by_preempting(self) -> int:
        """Replicas to be had by stopping others of lower priority."""
        return self.reach.by_preempting

    @property
    def room(self) -> int:
        """How many more replicas can be had."""
        return self.reach.room

    @property
    def fits(self) -> bool:
        """Whether the missing replicas can be had."""
        return self.count.more <= self.room

    @property
    def survey(self) -> Survey:
        """Every node's code and quantities; found anew each time, for answers are kept and this is large."""
        return survey(self.fleet, self.count.variant)

    @property
    def changes(self) -> list[Change]:
        """The smallest changes that would help; none where it fits."""
        return self._explained[1]

    @property
    def blocked(self) -> list[str]:
        """Why it does not fit, in sentences; empty where it does."""
        return self._explained[0]

    @cached_property
    def _explained(self) -> tuple[list[str], list[Change]]:
        if self.fits:
            return [], []
        found = self.survey
        trial = Trial(self.catalog, self.fleet, self.question, self.reach, found)
        sentences = blocked_sentences(self.fleet, self.count, found, self.preemption)
        draining = trial.draining()
        changes = trial.smallest_changes()
        return [*sentences, *([draining] if draining else []), *map(str, changes)], changes

    @cached_property
    def reasons(self) -> list[str]:
        """Codes of rules of the model that bind."""
        if self.fits:
            return []
        counted = self.count
        capped = counted.permitted < counted.more
        rules = () if self.preemption is None else self.preemption.reasons
        return ["max_replicas", *rules] if capped else list(rules)

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """An entry for every node, by name."""
        found = self.survey
        stopping = node_preemption(self.fleet, self.count.model, self.count.variant)
        after = self._after()
        return [
            {
                "node": node.name,
                "code": code,
                "fits": fits,
                "numbers": found.numbers(place),
                "holders": sorted(self.fleet.holders_on(place)),
                "preemption": stopping[place],
                "after": after.get(place),
                "say": say(found, int(found.rung[place]), np.array([place])),
            }
            for place, (node, code, fits) in enumerate(
                zip(self.fleet.hardware.nodes, found.codes, found.fits, strict=True)
            )
        ]

    def _after(self) -> dict[int, dict[str, Any]]:
        """By number of each node that victims sit on: who stops there, and what it takes then."""
        if not self.reach.victims:
            return {}
        stops: dict[int, list[str]] = {}
        for victim in self.reach.victims:
            for node in self.fleet.replicas[victim.name].nodes:
                stops.setdefault(node, []).append(victim.name)
        then = survey(
            self.fleet.with_replicas(removed=[v.name for v in self.reach.victims]), self.count.variant
        )
        return {
            node: {
                "stops": names,
                "code": LADDER[then.rung[node]],
                "fits": int(then.taken[node]),
                "numbers": then.numbers(node),
            }
            for node, names in stops.items()
        }

    def stale(self, now: datetime) -> str | None:
        """Why the measurement is stale, or None."""
        measured = self.count.measurement
        profile = self.catalog.profiles[measured.profile]
        return why_stale(measured, self.count.variant, profile, self.fleet, now)

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
            result["changes"] = [asdict(change) for change in self.changes]
        if self.reach.victims:
            result["preempts"] = sorted({victim.model for victim in self.reach.victims})
        result |= {
            "preemption": self._preemption_form(),
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
                *_measurement_warnings(measured, stale),
                *self._unmet_warning(),
                *([_FUTURE.format(counted.variant.name)] if measured.measured_at > now + _CLOCKS else []),
                *counted.warnings,
            ],
        }
        if explain_nodes:
            result["nodes"] = self.nodes
        return result

    def _unmet_warning(self) -> list[str]:
        measured = self.count.measurement
        unmet = self.catalog.unmet.get((measured.model, measured.variant, measured.profile))
        return [f"{unmet_words(unmet)}; the figure is older"] if unmet else []

    def _preemption_form(self) -> dict[str, Any] | None:
        if self.preemption is None:
            return None
        found, models = self.preemption, self.fleet.models
        stopped = Counter(victim.model for victim in found.victims)
        serving = Counter(v.model for v in found.victims if v.state in SERVING_STATES)
        form: dict[str, Any] = {
            "victims": [
                {
                    "replica": victim.name,
                    "model": victim.model,
                    "priority": self.fleet.priority(victim),
                    "nodes": [node for node, _ in victim.placement],
                    "tok_per_sec": self._lost(victim),
                }
                for victim in found.victims
            ],
            "models": [
                {
                    "model": name,
                    "stopped": count,
                    "left": len(self.fleet.serving(name)) - serving[name],
                    "min_replicas": models[name].min_replicas,
                }
                for name, count in sorted(stopped.items())
            ],
            "optimal": found.optimal,
            "why": list(found.why_not_cheaper),
        }
        if found.bound is not None:
            form["bound"] = asdict(found.bound)
        return form

    def _lost(self, victim: ReplicaSpec) -> float | None:
        """What a victim serves, measured on its model's profile, else on the one asked; None: unknown."""
        profiles = (self.fleet.models[victim.model].default_profile, self.count.measurement.profile)
        for profile in profiles:
            measured = self.catalog.measured.get((victim.model, victim.variant, profile or ""))
            if measured is not None and victim.state in SERVING_STATES:
                return float(measured.tok_per_sec)
        return 0.0 if victim.state not in SERVING_STATES else None


def answer(catalog: Catalog, fleet: Fleet, question: Question) -> Answer:
    """Answer a question; QuestionError where it has no answer."""
    return Answer(catalog, fleet, question, reach(catalog, fleet, question))


def _measurement_warnings(measured: MeasurementSpec, stale: str | None) -> list[str]:
    named = f"the measurement of {measured.variant}"
    warnings = []
    if stale is not None:
        warnings.append(f"{named} is stale: {stale}")
    if measured.bound == "floor":
        warnings.append(f"{named} is a floor: no load tried failed the SLO, so fewer replicas may do")
    warnings += [f"{named}: {warning}" for warning in measured.warnings[:NAMES_SHOWN]]
    if len(measured.warnings) > NAMES_SHOWN:
        warnings.append(f"{named} has {len(measured.warnings) - NAMES_SHOWN:,} more warnings")
    return warnings


def _timestamp(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
