"""The smallest changes that would help, each tried by really asking again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from sizing.domain.catalog import Catalog, Question, QuestionError
from sizing.domain.fleet import Fleet
from sizing.domain.placement import room
from sizing.domain.reasons import RUNG, Survey, survey
from sizing.domain.sizing import Count, count
from sizing.domain.wording import number

MOST_CHANGES = 5
NODES_TRIED = 3


@dataclass(frozen=True)
class Change:
    """A change to the cluster, the model or the question, and how many more replicas it gives."""

    text: str
    gain: int
    note: str = ""

    def __str__(self) -> str:
        return f"{self.text}: +{number(self.gain)}" + (f" ({self.note})" if self.note else "")


# Cheapest first: a setting, a flag of a node, a process, a machine to mend.
_NODE_CHANGES: tuple[tuple[str, str, dict[str, bool]], ...] = (
    ("node_cordoned", "uncordon {}", {"schedulable": True}),
    ("used_outside", "stop what runs outside replicas on {}", {"outside": False}),
    ("node_not_ready", "bring {} back to ready", {"ready": True}),
    ("node_stale", "let {} be seen again", {"stale": False}),
    ("gpu_unhealthy", "repair the unhealthy GPUs of {}", {"healthy": True}),
)


def smallest_changes(
    catalog: Catalog, fleet: Fleet, question: Question, counted: Count, now: Survey
) -> list[Change]:
    """At most five changes that give more room, cheapest kind first."""
    found = [
        *_raise_limit(counted),
        *_other_variants(catalog, fleet, question, counted),
        *_node_changes(fleet, counted, now),
    ]
    return found[:MOST_CHANGES]


def _raise_limit(counted: Count) -> Iterator[Change]:
    wanted = min(counted.more, counted.fitting)
    if counted.allowed is not None and wanted > counted.allowed:
        limit = counted.model.max_replicas
        yield Change(
            f"raise max_replicas from {limit} to {counted.current + wanted}", wanted - counted.free_room
        )


def _other_variants(catalog: Catalog, fleet: Fleet, question: Question, counted: Count) -> Iterator[Change]:
    profile = counted.measurement.profile
    for variant in counted.model.variants:
        if variant.name == counted.variant.name:
            continue
        try:
            other = count(catalog, fleet, replace(question, profile=profile, variant=variant.name))
        except QuestionError:
            continue
        gain = min(other.more, other.free_room)
        if gain > 0:
            note = "" if gain == other.more else f"of {number(other.more)} that it needs"
            yield Change(f"variant {variant.name}", gain, note)


def _node_changes(fleet: Fleet, counted: Count, now: Survey) -> Iterator[Change]:
    if counted.allowed is not None and counted.allowed <= counted.fitting:
        return
    for code, text, flags in _NODE_CHANGES:
        nodes = np.flatnonzero(now.rung == RUNG[code])
        if not len(nodes):
            continue
        # One look at all of them together finds the ones worth asking about alone.
        together = survey(fleet.as_if(nodes.tolist(), **flags), now.variant)
        best = nodes[np.argsort(-together.taken[nodes], kind="stable")][:NODES_TRIED]
        for node in best.tolist():
            gain = room(fleet.as_if([node], **flags), now.variant) - counted.fitting
            if counted.allowed is not None:
                gain = min(gain, counted.allowed - counted.fitting)
            if gain > 0:
                yield Change(text.format(fleet.hardware.nodes[node].name), gain)
