"""The smallest changes that would help, each tried by really asking again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice

import numpy as np

from sizing.domain.blocked import protected
from sizing.domain.catalog import Catalog, Question, QuestionError
from sizing.domain.fleet import Fleet, empty
from sizing.domain.moves import moves
from sizing.domain.placement import room
from sizing.domain.reach import Reach, reach
from sizing.domain.reasons import RUNG, Survey, survey
from sizing.domain.sizing import count
from sizing.domain.specs import ModelSpec, NodeSpec
from sizing.domain.wording import names as names_of
from sizing.domain.wording import number

MOST_CHANGES = 5
NODES_TRIED = 3
DRAINING_TRIED = 8
MINIMA_TRIED = 12
MOVES_TRIED = 3
NEW_NODES_TRIED = 2


@dataclass(frozen=True)
class Change:
    """A change to the cluster, a model or the question, and how many more missing replicas it gives."""

    text: str
    gain: int
    note: str = ""

    def __str__(self) -> str:
        return f"{self.text}: +{number(self.gain)}" + (f" ({self.note})" if self.note else "")


# Cheapest first: a flag of a node, a process, a machine to mend.
_FLAGS: tuple[tuple[str, str, dict[str, bool]], ...] = (
    ("node_cordoned", "uncordon {}", {"schedulable": True}),
    ("used_outside", "stop what runs outside replicas on {}", {"outside": False}),
    ("node_not_ready", "bring {} back to ready", {"ready": True}),
    ("node_stale", "let {} be seen again", {"stale": False}),
    ("gpu_unhealthy", "repair the unhealthy GPUs of {}", {"healthy": True}),
)


@dataclass(frozen=True)
class Trial:
    """Asks again with something changed."""

    catalog: Catalog
    fleet: Fleet
    question: Question
    now: Reach
    found: Survey

    def smallest_changes(self) -> list[Change]:
        """At most five changes that give more of the missing replicas, cheapest kind first: settings, the
        question, nodes as they could be, one replica elsewhere, one more node."""
        return list(islice(self._changes(), MOST_CHANGES))

    def _changes(self) -> Iterator[Change]:
        yield from self._raise_limit()
        yield from self._lower_minimum()
        yield from self._other_variants()
        yield from self._nodes_as_if(_FLAGS[:1])
        yield from self._moves()
        yield from self._nodes_as_if(_FLAGS[1:])
        yield from self._new_nodes()

    @property
    def _thorough(self) -> bool:
        """Whether asking again who would have to stop is quick; else the same victims are kept, so that a
        change is credited with the least that it gives."""
        return self.now.preemption is None or self.now.preemption.quick

    def _gain(self, fleet: Fleet, catalog: Catalog | None = None) -> int:
        """How many more of the missing replicas can be had on another fleet."""
        counted = self.now.count
        question = replace(self.question, profile=counted.measurement.profile, variant=counted.variant.name)
        catalog = catalog or self.catalog
        if self._thorough:
            return reach(catalog, fleet, question).had - self.now.had
        # Who runs elsewhere now is not stopped.
        same = [v.name for v in self.now.victims if fleet.replicas[v.name].spec == v]
        return count(catalog, fleet.with_replicas(removed=same), question).had - self.now.had

    def _with_model(self, changed: ModelSpec) -> int:
        models = {**self.fleet.models, changed.name: changed}
        catalog = replace(self.catalog, models={**self.catalog.models, changed.name: changed})
        return self._gain(self.fleet.with_models(models), catalog)

    def draining(self) -> str | None:
        """What the end of draining replicas gives, and of which; None where it gives nothing."""
        leaving = sorted(self.fleet.draining)
        most = self._gain(self.fleet.with_replicas(removed=leaving)) if leaving else 0
        if most <= 0:
            return None
        for name in leaving[:DRAINING_TRIED]:
            others = [other for other in leaving if other != name]
            if self._gain(self.fleet.with_replicas(removed=others)) == most:
                leaving = others
        verb = "ends" if len(leaving) == 1 else "end"
        return f"when draining {names_of(leaving)} {verb}: +{number(most)}"

    def _raise_limit(self) -> Iterator[Change]:
        counted = self.now.count
        if counted.permitted == counted.more:
            return
        gain = self._with_model(replace(counted.model, max_replicas=None))
        if gain > 0:
            limit = counted.current + self.now.had + gain
            old = number(counted.model.max_replicas or 0)
            yield Change(f"raise max_replicas from {old} to {number(limit)}", gain)

    def _lower_minimum(self) -> Iterator[Change]:
        if self.now.preemption is None or "protected_by_minimum" not in self.now.preemption.reasons:
            return
        if not self._thorough:
            return
        fleet = self.fleet
        names = [name for name, _ in protected(fleet, self.now.count, self.now.victims)]
        lowest = {name: min(fleet.priority(one) for one in fleet.serving(name)) for name in names}
        for name in sorted(names, key=lambda name: (lowest[name], name))[:MINIMA_TRIED]:
            model = fleet.models[name]
            gain = self._with_model(replace(model, min_replicas=model.min_replicas - 1))
            if gain > 0:
                least = number(model.min_replicas - 1)
                yield Change(f"lower min_replicas of {model.name} to {least}", gain)

    def _other_variants(self) -> Iterator[Change]:
        counted = self.now.count
        for variant in counted.model.variants:
            if variant.name == counted.variant.name:
                continue
            question = replace(self.question, profile=counted.measurement.profile, variant=variant.name)
            try:
                if self._thorough:
                    other = reach(self.catalog, self.fleet, question)
                else:
                    other = Reach(count(self.catalog, self.fleet, question), None)
            except QuestionError:
                continue
            # Another variant serves another rate, so what counts is how much of the wish is served.
            if other.had * other.count.measurement.tok_per_sec > self._served():
                note = "" if other.had == other.count.more else f"of {number(other.count.more)} that it needs"
                yield Change(f"variant {variant.name}", other.had, note)

    def _served(self) -> Decimal:
        """Tokens per second of the missing replicas that can be had now."""
        return self.now.had * self.now.count.measurement.tok_per_sec

    def _nodes_as_if(self, kinds: tuple[tuple[str, str, dict[str, bool]], ...]) -> Iterator[Change]:
        if self._limit_binds():
            return
        for code, text, flags in kinds:
            nodes = np.flatnonzero(self.found.rung == RUNG[code])
            if not len(nodes):
                continue
            # One look at all of them together finds the ones worth asking about alone.
            together = survey(self.fleet.as_if(nodes.tolist(), **flags), self.found.variant)
            best = nodes[np.argsort(-together.taken[nodes], kind="stable")][:NODES_TRIED]
            for node in best.tolist():
                gain = self._gain(self.fleet.as_if([node], **flags))
                if gain > 0:
                    yield Change(text.format(self.fleet.hardware.nodes[node].name), gain)

    def _moves(self) -> Iterator[Change]:
        if self._limit_binds():
            return
        for replica, source, target, fleet in islice(moves(self.fleet, self.found), MOVES_TRIED):
            gain = self._gain(fleet)
            if gain > 0:
                yield Change(f"move {replica.name} from {source} to {target}", gain)
                return

    def _new_nodes(self) -> Iterator[Change]:
        if self._limit_binds():
            return
        for node in self._shapes()[:NEW_NODES_TRIED]:
            gain = self._gain_of_node(node)
            if gain > 0:
                kinds = Counter(gpu.type for gpu in node.gpus)
                gpus = " and ".join(f"{number(n)} {kind}" for kind, n in sorted(kinds.items()))
                yield Change(f"one more node like {node.name} ({gpus})", gain)

    def _gain_of_node(self, node: NodeSpec) -> int:
        counted = self.now.count
        if counted.variant.nodes > 1:
            return self._gain(self.fleet.with_empty_node(node))
        # Replicas on one node each: what another node takes comes on top of what the others do.
        alone = Fleet.build([empty(node)], [counted.model], [])
        return min(room(alone, counted.variant), counted.permitted - self.now.had)

    def _shapes(self) -> list[NodeSpec]:
        """A node for each kind of GPUs that the variant may use where it runs, the most usual kind first."""
        hardware, variant = self.fleet.hardware, self.found.variant
        usable = hardware.selected(variant) & hardware.tolerated(variant)
        usable &= self.found.rung > RUNG["too_few_gpus"]
        places = np.flatnonzero(usable)
        mixes, first, many = np.unique(hardware.mix[places], return_index=True, return_counts=True)
        usual = sorted(range(len(mixes)), key=lambda at: (-many[at], mixes[at]))
        return [hardware.nodes[places[first[at]]] for at in usual]

    def _limit_binds(self) -> bool:
        """Whether `max_replicas` leaves nothing for more nodes to give."""
        return self.now.count.permitted <= self.now.had
