"""The answer to a question: what is needed, what runs, what fits, and what is in the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sizing.domain.blocked import blocked_sentences
from sizing.domain.catalog import Catalog, Question, unmet_words
from sizing.domain.changes import Change, Trial
from sizing.domain.fleet import Fleet
from sizing.domain.node_table import NodeTable
from sizing.domain.once import once
from sizing.domain.placing import Plan, place
from sizing.domain.preemption import Preemption
from sizing.domain.preemption.ledger import without
from sizing.domain.reach import Reach, reach_of
from sizing.domain.reasons import Survey, survey
from sizing.domain.sizing import Count, count
from sizing.domain.specs import SERVING_STATES, MeasurementSpec, ReplicaSpec
from sizing.domain.staleness import cause_of, too_old
from sizing.domain.supposing import suppose
from sizing.domain.wording import NAMES_SHOWN

T = TypeVar("T")

_CLOCKS = timedelta(minutes=5)
_FUTURE = "the measurement of {} is dated in the future, so its age is not known"


@dataclass(frozen=True)
class Answer:
    """A question with its count in replicas on one fleet; `as_dict` gives the public form."""

    catalog: Catalog
    fleet: Fleet
    question: Question
    count: Count

    @once
    def reach(self) -> Reach:
        """What of it can be had, and who would have to stop; looked for when it is asked for."""
        return reach_of(self.fleet, self.count, again=True)

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
    def awaited(self) -> Change | None:
        """What draining replicas will give once they end; None where nothing, and where it fits. It has no
        `as_if` where they are too many to ask with."""
        return self._explained[2]

    @property
    def blocked(self) -> list[str]:
        """Why it does not fit, in sentences; empty where it does."""
        return self._explained[0]

    @once
    def _explained(self) -> tuple[list[str], list[Change], Change | None]:
        if self.fits:
            return [], [], None
        found = self.survey
        trial = Trial(self.catalog, self.fleet, self.question, self.reach, found)
        sentences = blocked_sentences(self.fleet, self.count, found, self.preemption)
        draining = trial.draining()
        changes = trial.smallest_changes()
        told = [draining, *changes] if draining else changes
        return [*sentences, *map(str, told)], changes, draining

    @once
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
        return self.node_rows()

    def node_table(self) -> NodeTable:
        """The nodes, to count and to page through; found anew each time, as `survey` is."""
        return NodeTable(self.fleet, self.count, self.leaving, self._freed)

    def node_counts(self) -> list[tuple[str, int, int]]:
        """Each code that there is, its nodes, and what they take (see `NodeTable.counts`)."""
        return self.node_table().counts()

    def node_rows(
        self, codes: Collection[str] | None = None, start: int = 0, stop: int | None = None
    ) -> list[dict[str, Any]]:
        """Entries of the nodes with these codes (None: of all), by name, from `start` up to `stop`."""
        return self.node_table().rows(codes, start, stop)

    @property
    def plan(self) -> Plan:
        """Where the missing replicas that can be had would go once the victims have stopped."""
        return place(self._freed, self.count.variant, self.reach.had)

    @property
    def leaving(self) -> frozenset[str]:
        """The names of the victims, kept for the parts of one page."""
        victims = self.reach.victims
        return self._of_page("leaving", lambda: frozenset(victim.name for victim in victims))

    @property
    def _freed(self) -> Fleet:
        """The fleet once the victims have stopped, kept for the parts of one page."""
        if not self.reach.victims:
            return self.fleet
        return self._of_page("freed", lambda: without(self.fleet, self.leaving))

    def _of_page(self, kind: str, compute: Callable[[], T]) -> T:
        asked = (self.count.model, self.count.variant, self.count.more)
        return self.fleet.kept(kind, asked, compute, 1)

    def stale(self, now: datetime) -> str | None:
        """Why the measurement is stale, or None."""
        measured = self.count.measurement
        return self._outdated or too_old(measured.measured_at, self.catalog.profiles[measured.profile], now)

    @once
    def _outdated(self) -> str | None:
        """What changed since the measurement: it looks at every running replica, so it is kept."""
        return cause_of(self.count.measurement, self.count.variant, self.fleet)

    def age_s(self, now: datetime) -> int:
        """Age of the measurement in whole seconds."""
        return max(int((now - self.count.measurement.measured_at).total_seconds()), 0)

    def as_dict(
        self, now: datetime, explain_nodes: bool = False, victims: int | None = None
    ) -> dict[str, Any]:
        """The public form at a moment; lists of the original interface are left out where empty.

        victims: how many are told one by one (None: all).
        """
        counted, measured = self.count, self.count.measurement
        stale = self.stale(now)
        result: dict[str, Any] = {
            "model": counted.model.name,
            "tok_per_sec": float(self.question.tokens_per_sec),
            "per_replica_tok_per_sec": float(measured.tok_per_sec),
            "profile": measured.profile,
            "variant": counted.variant.name,
            "utilization": float(self.question.utilization),
            **({"as_if": list(self.question.as_if)} if self.question.as_if else {}),
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
            result["changes"] = [change.as_dict() for change in self.changes]
        if self.reach.victims:
            result["preempts"] = [told["model"] for told in self._stopped]
        result |= {
            "preemption": self._preemption_form(victims),
            "current_tok_per_sec": float(counted.current_tok_per_sec),
            "measurement": {
                "measured_at": _timestamp(measured.measured_at),
                "age_s": self.age_s(now),
                "stale": stale is not None,
                "source": measured.source,
                "bound": measured.bound,
            },
            "reasons": list(self.reasons),
            "warnings": self.warnings(now),
        }
        if explain_nodes:
            result["nodes"] = self.nodes
        return result

    def warnings(self, now: datetime) -> list[str]:
        """What is odd about the measurement and about what runs, at a moment."""
        measured = self.count.measurement
        return [
            *_measurement_warnings(measured, self.stale(now)),
            *self._unmet_warning(),
            *([_FUTURE.format(measured.variant)] if measured.measured_at > now + _CLOCKS else []),
            *self.count.warnings,
        ]

    def _unmet_warning(self) -> list[str]:
        measured = self.count.measurement
        unmet = self.catalog.unmet.get((measured.model, measured.variant, measured.profile))
        return [f"{unmet_words(unmet)}; the figure is older"] if unmet else []

    def _preemption_form(self, most: int | None) -> dict[str, Any] | None:
        if self.preemption is None:
            return None
        found = self.preemption
        form: dict[str, Any] = {
            "victims": [
                {
                    "replica": victim.name,
                    "model": victim.model,
                    "priority": self.fleet.priority(victim),
                    "nodes": [node for node, _ in victim.placement],
                    "tok_per_sec": self._lost(victim),
                }
                for victim in found.victims[:most]
            ],
            "models": [dict(told) for told in self._stopped],
            "optimal": found.optimal,
            "why": list(found.why_not_cheaper),
        }
        if found.bound is not None:
            form["bound"] = asdict(found.bound)
        return form

    @once
    def _stopped(self) -> list[dict[str, Any]]:
        """The models that would lose replicas, by name; kept, for it looks at all of their replicas."""
        victims, models = self.reach.victims, self.fleet.models
        stopped = Counter(victim.model for victim in victims)
        serving = Counter(victim.model for victim in victims if victim.state in SERVING_STATES)
        return [
            {
                "model": name,
                "stopped": count,
                "left": len(self.fleet.serving(name)) - serving[name],
                "min_replicas": models[name].min_replicas,
            }
            for name, count in sorted(stopped.items())
        ]

    def _lost(self, victim: ReplicaSpec) -> float | None:
        """What a victim serves, measured on its model's profile, else on the one asked; None: unknown."""
        profiles = (self.fleet.models[victim.model].default_profile, self.count.measurement.profile)
        for profile in profiles:
            measured = self.catalog.measured.get((victim.model, victim.variant, profile or ""))
            if measured is not None and victim.state in SERVING_STATES:
                return float(measured.tok_per_sec)
        return 0.0 if victim.state not in SERVING_STATES else None


def answer(catalog: Catalog, fleet: Fleet, question: Question) -> Answer:
    """Answer a question, as if what it supposes were so; QuestionError where it has no answer."""
    catalog, fleet = suppose(catalog, fleet, question)
    return Answer(catalog, fleet, question, count(catalog, fleet, question))


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
