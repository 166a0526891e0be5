"""The nodes of an answer: counted by code, and told one by one, a page of them at a time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sizing.domain.blocked import say
from sizing.domain.fleet import Fleet
from sizing.domain.hardware import Ints
from sizing.domain.once import once
from sizing.domain.preemption import node_preemption
from sizing.domain.preemption.nodes import NodePreemption
from sizing.domain.reasons import LADDER, OPEN, RUNG, Survey, survey
from sizing.domain.sizing import Count


@dataclass(frozen=True, eq=False)
class NodeTable:
    """Every node as one answer sees it, in order of name. Replicas named in `leaving` would stop, and `freed`
    is the fleet without them. Large: keep it no longer than needed."""

    fleet: Fleet
    count: Count
    leaving: frozenset[str]
    freed: Fleet

    @once
    def survey(self) -> Survey:
        """Every node's code and quantities."""
        return survey(self.fleet, self.count.variant)

    def counts(self) -> list[tuple[str, int, int]]:
        """Each code that there is, with its nodes and the shares of replicas that they take: `open` first,
        then by number of nodes, most first, then by code."""
        rung = self.survey.rung
        nodes = np.bincount(rung, minlength=len(LADDER))
        fits = np.zeros(len(LADDER), dtype=np.int64)
        np.add.at(fits, rung, self.survey.taken)
        there = sorted(np.flatnonzero(nodes).tolist(), key=lambda r: (r != OPEN, -nodes[r], LADDER[r]))
        return [(LADDER[r], int(nodes[r]), int(fits[r])) for r in there]

    def rows(
        self,
        codes: Collection[str] | None = None,
        start: int = 0,
        stop: int | None = None,
        *,
        preemption: bool = True,
    ) -> list[dict[str, Any]]:
        """Entries of the nodes with these codes (None: of all), by name, from `start` up to `stop`.

        preemption: whether to find what stopping others on each alone would give, which looks at every
        replica of the fleet; else that entry is None.
        """
        chosen = self._numbers(codes)[start:stop]
        found, nodes = self.survey, self.fleet.hardware.nodes
        stopping: Sequence[NodePreemption] = [None] * len(chosen)
        if preemption:
            stopping = node_preemption(self.fleet, self.count.model, self.count.variant, chosen)
        return [
            {
                "node": nodes[place].name,
                "code": LADDER[found.rung[place]],
                "fits": int(found.taken[place]),
                "numbers": found.numbers(place),
                "holders": sorted(self.fleet.holders_on(place)),
                "preemption": gives,
                "after": self._after(place),
                "say": say(found, int(found.rung[place]), np.array([place])),
            }
            for place, gives in zip(chosen.tolist(), stopping, strict=True)
        ]

    def _numbers(self, codes: Collection[str] | None) -> Ints:
        if codes is None:
            return np.arange(len(self.fleet.hardware.nodes))
        wanted = np.array([RUNG[code] for code in codes if code in RUNG], dtype=np.int64)
        return np.flatnonzero(np.isin(self.survey.rung, wanted))

    @once
    def _then(self) -> Survey:
        """What `survey` finds once the victims have stopped."""
        return survey(self.freed, self.count.variant)

    def _after(self, node: int) -> dict[str, Any] | None:
        """Who stops on a node, and what it takes then; None where nobody does."""
        stops = self.leaving & self.fleet.holders_on(node)
        if not stops:
            return None
        return {
            "stops": sorted(stops),
            "code": LADDER[self._then.rung[node]],
            "fits": int(self._then.taken[node]),
            "numbers": self._then.numbers(node),
        }
