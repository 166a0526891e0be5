"""The smallest changes that would help, each tried by really asking again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice
from typing import Any

import numpy as np

from sizing.domain.blocked import protected
from sizing.domain.catalog import Catalog, Question, QuestionError
from sizing.domain.fleet import Fleet
from sizing.domain.moves import moves
from sizing.domain.other_nodes import empty
from sizing.domain.placement import room
from sizing.domain.reach import Reach, reach
from sizing.domain.reasons import RUNG, Survey, survey
from sizing.domain.sizing import count
from sizing.domain.specs import ModelSpec, NodeSpec
from sizing.domain.supposing import FLAGS, MOST_SUPPOSED, supposed_too, supposition
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
    """A change to the cluster, a model or the question, and how many more missing replicas it gives.

    `as_if` or `variant`: what asking the question with the change adds to it.
    """

    text: str
    gain: int
    note: str = ""
    as_if: tuple[str, ...] = ()
    variant: str | None = None

    def __str__(self) -> str:
        return f"{self.text}: +{number(self.gain)}" + (f" ({self.note})" if self.note else "")

    def as_dict(self) -> dict[str, Any]:
        """The public form, with the one of `as_if` and `variant` that there is."""
        form: dict[str, Any] = {"text": self.text, "gain": self.gain, "note": self.note}
        return form | ({"variant": self.variant} if self.variant else {"as_if": list(self.as_if)})

    def asked(self, question: Question) -> Question:
        """The question with the change."""
        as_if = supposed_too(question.as_if, self.as_if)
        return replace(question, variant=self.variant or question.variant, as_if=as_if)


# A node's code, what it takes in words, and as a supposition. Cheapest first: a flag of a node, a
# process, a machine to mend.
_FLAGS = (
    ("node_cordoned", "uncordon {}", "uncordon"),
    ("used_outside", "stop what runs outside replicas on {}", "nothing_outside"),
    ("node_not_ready", "bring {} back to ready", "ready"),
    ("node_stale", "let {} be seen again", "seen"),
    ("gpu_unhealthy", "repair the unhealthy GPUs of {}", "healthy"),
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

    def draining(self) -> Change | None:
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
        # Of more than may be supposed the question cannot be asked again.
        ended = [supposition("ended", name) for name in leaving[: MOST_SUPPOSED + 1]]
        as_if = tuple(ended) if len(ended) <= MOST_SUPPOSED else ()
        return Change(f"when draining {names_of(leaving)} {verb}", most, as_if=as_if)

    def _raise_limit(self) -> Iterator[Change]:
        counted = self.now.count
        if counted.permitted == counted.more:
            return
        gain = self._with_model(replace(counted.model, max_replicas=None))
        if gain > 0:
            limit = counted.current + self.now.had + gain
            old = number(counted.model.max_replicas or 0)
            as_if = supposition("max_replicas", str(limit))
            yield Change(f"raise max_replicas from {old} to {number(limit)}", gain, as_if=(as_if,))

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
                least = model.min_replicas - 1
                as_if = supposition("min_replicas", model.name, str(least))
                text = f"lower min_replicas of {model.name} to {number(least)}"
                yield Change(text, gain, as_if=(as_if,))

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
                note = "" if other.had == other.count.more else self._serves(other)
                yield Change(f"variant {variant.name}", other.had, note, variant=variant.name)

    def _serves(self, other: Reach) -> str:
        """What the replicas of another variant serve of all that is missing."""
        now = self.now.count
        served = other.had * other.count.measurement.tok_per_sec
        missing = now.more * now.measurement.tok_per_sec
        return f"serves {number(served)} of the {number(missing)} tok/s that are missing"

    def _served(self) -> Decimal:
        """Tokens per second of the missing replicas that can be had now."""
        return self.now.had * self.now.count.measurement.tok_per_sec

    def _nodes_as_if(self, kinds: tuple[tuple[str, str, str], ...]) -> Iterator[Change]:
        if self._limit_binds():
            return
        for code, text, kind in kinds:
            flags = FLAGS[kind]
            nodes = np.flatnonzero(self.found.rung == RUNG[code])
            if not len(nodes):
                continue
            # One look at all of them together finds the ones worth asking about alone.
            together = survey(self.fleet.as_if(nodes.tolist(), **flags), self.found.variant)
            best = nodes[np.argsort(-together.taken[nodes], kind="stable")][:NODES_TRIED]
            for node in best.tolist():
                gain = self._gain(self.fleet.as_if([node], **flags))
                if gain > 0:
                    name = self.fleet.hardware.nodes[node].name
                    yield Change(text.format(name), gain, as_if=(supposition(kind, name),))

    def _moves(self) -> Iterator[Change]:
        if self._limit_binds():
            return
        for replica, source, target, fleet in islice(moves(self.fleet, self.found), MOVES_TRIED):
            gain = self._gain(fleet)
            if gain > 0:
                as_if = supposition("move", replica.name, target)
                yield Change(f"move {replica.name} from {source} to {target}", gain, as_if=(as_if,))
                return

    def _new_nodes(self) -> Iterator[Change]:
        if self._limit_binds():
            return
        for node in self._shapes()[:NEW_NODES_TRIED]:
            gain = self._gain_of_node(node)
            if gain > 0:
                kinds = Counter(gpu.type for gpu in node.gpus)
                gpus = " and ".join(f"{number(n)} {kind}" for kind, n in sorted(kinds.items()))
                as_if = supposition("more_like", node.name)
                yield Change(f"one more node like {node.name} ({gpus})", gain, as_if=(as_if,))

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
