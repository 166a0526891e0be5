"""The map of an answer: the nodes that it changes, before and after."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from django.urls import reverse
from django.utils.safestring import SafeString

from sizing.admin.picture import Kind, Row, draw, hues, legend, row_of
from sizing.domain.answer import Answer
from sizing.domain.claims import claim_mib
from sizing.domain.fleet import Fleet
from sizing.domain.picture import GpuPicture, NodePicture, node_picture
from sizing.domain.placing import Plan
from sizing.domain.preemption.ledger import nodes_of
from sizing.domain.specs import VariantSpec
from sizing.domain.wording import number, plural
from sizing.services.targets import node_ids

ROWS_SHOWN = 40
GPUS_SHOWN = 160
"""GPUs of all rows together, each drawn twice, so that the page stays small."""
NUMBERED_MOST = 16
"""New replicas on one node that are told apart."""


@dataclass(frozen=True, slots=True)
class MapRow:
    """A node that changes, in words: who stops there, which new replicas go where, and its GPUs that
    nobody holds, before and after."""

    name: str
    url: str
    stops: tuple[str, ...]
    new: tuple[str, ...]
    free_before: int
    free_after: int


@dataclass(frozen=True, slots=True)
class AnswerMap:
    """What the page shows of where the new replicas would go, and who would stop."""

    sentence: str
    before: SafeString
    after: SafeString
    legend: SafeString
    rows: tuple[MapRow, ...]
    more_nodes: int


@dataclass(frozen=True, slots=True)
class _Change:
    """A node before and after; `new` names by GPU index what would go there."""

    before: NodePicture
    after: NodePicture
    stops: tuple[str, ...]
    new: dict[int, str]
    arrivals: tuple[str, ...]


def map_part(answer: Answer, links: bool = False) -> dict[str, Any]:
    """The answer's `map`; None where no replica can be had. links: whether nodes' pages may be seen."""
    plan = answer.plan
    if not plan:
        return {"map": None}
    fleet = answer.fleet
    leaving = answer.leaving
    changed = (plan.shares > 0) | (nodes_of(fleet, leaving) if leaving else False)
    numbers = np.flatnonzero(changed).tolist()
    changes = [
        _change(fleet, plan, answer.count.variant, node, leaving)
        for node in _shown(numbers, fleet.hardware.gpu_count.tolist())
    ]
    ids = node_ids({change.before.name for change in changes}) if links else {}
    urls = {name: reverse("admin:sizing_node_change", args=[pk]) for name, pk in ids.items()}
    colors = hues(fleet.models)
    before = [row_of(c.before, url=urls.get(c.before.name, ""), hues=colors, stops=c.stops) for c in changes]
    after = [row_of(c.after, url=urls.get(c.after.name, ""), hues=colors, new=c.new) for c in changes]
    return {
        "map": AnswerMap(
            sentence=_sentence(answer, int((plan.shares > 0).sum())),
            before=_drawn(before, "before", "Now", "The GPUs of each of these nodes as they are."),
            after=_drawn(after, "after", "Then", "The same nodes with the new replicas in their places."),
            legend=legend(_kinds([*before, *after])),
            rows=tuple(_row(change, urls.get(change.before.name, "")) for change in changes),
            more_nodes=len(numbers) - len(changes),
        )
    }


def _shown(nodes: Sequence[int], gpu_count: Sequence[int]) -> list[int]:
    """The first nodes, as many as can be drawn; at least one."""
    shown: list[int] = []
    left = GPUS_SHOWN
    for node in nodes[:ROWS_SHOWN]:
        left -= gpu_count[node]
        if left < 0 and shown:
            break
        shown.append(node)
    return shown


def _change(fleet: Fleet, plan: Plan, variant: VariantSpec, node: int, leaving: frozenset[str]) -> _Change:
    before = node_picture(fleet, node)
    stops = tuple(sorted(fleet.holders_on(node) & leaving))
    claims = plan.claims(node)
    gpus = [
        _afterwards(gpu, claims.get(gpu.index, 0), variant, stops)
        for gpu in node_picture(plan.fleet, node).gpus
    ]
    after = replace(before, gpus=tuple(gpus))
    if int(plan.shares[node]) > NUMBERED_MOST:
        new = {gpu: f"{number(count)} new per GPU" for gpu, count in claims.items()}
        return _Change(before, after, stops, new, (f"{number(int(plan.shares[node]))} new replicas",))
    there: dict[int, list[int]] = {}
    arrivals = []
    for at, indexes in sorted(plan.on(node)):
        arrivals.append(f"new {number(at + 1)} on {_gpus(indexes)}")
        for index in indexes:
            there.setdefault(index, []).append(at + 1)
    new = {index: f"new {', '.join(map(number, numbers))}" for index, numbers in there.items()}
    return _Change(before, after, stops, new, tuple(arrivals))


def _afterwards(gpu: GpuPicture, claims: int, variant: VariantSpec, stops: Collection[str]) -> GpuPicture:
    """A GPU of the fleet without the victims, with so many claims more."""
    gpu = replace(gpu, holders=tuple(held for held in gpu.holders if held.replica.name not in stops))
    if not claims:
        return gpu
    held = gpu.free_mib if variant.whole_gpu else claims * claim_mib(variant, gpu.memory_mib or 0)
    return replace(gpu, free_mib=gpu.free_mib - held, whole=False)


def _sentence(answer: Answer, places: int) -> str:
    had, more, stop = answer.reach.had, answer.count.more, len(answer.reach.victims)
    new = (
        plural(had, "new replica") if had == more else f"{number(had)} of the {number(more)} missing replicas"
    )
    named = "" if had == 1 else f" (new 1 to {number(had)})"
    stopping = f"; {plural(stop, 'replica')} would stop for {'it' if had == 1 else 'them'}" if stop else ""
    return f"{new}{named} would go to {plural(places, 'node')}{stopping}."


def _drawn(rows: Sequence[Row], name: str, title: str, about: str) -> SafeString:
    return draw(rows, name=f"map-{name}", title=title, about=about)


def _kinds(rows: Iterable[Row]) -> set[Kind]:
    return {cell.kind for row in rows for cell in row.cells}


def _row(change: _Change, url: str) -> MapRow:
    return MapRow(
        name=change.before.name,
        url=url,
        stops=change.stops,
        new=change.arrivals,
        free_before=sum(gpu.whole for gpu in change.before.gpus),
        free_after=sum(gpu.whole for gpu in change.after.gpus),
    )


def _gpus(indexes: Sequence[int]) -> str:
    """`GPU 3`, `GPUs 0–3, 6`."""
    begins = [indexes[0], *(there for here, there in pairwise(indexes) if there != here + 1)]
    ends = [*(here for here, there in pairwise(indexes) if there != here + 1), indexes[-1]]
    runs = [f"{a}" if a == b else f"{a}–{b}" for a, b in zip(begins, ends, strict=True)]
    return f"{'GPU' if len(indexes) == 1 else 'GPUs'} {', '.join(runs)}"
