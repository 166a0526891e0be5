"""The fleet half of the board: the nodes as rows of GPU cells, or as groups where there are too many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any
from urllib.parse import urlencode
from weakref import WeakKeyDictionary

from django.contrib import admin
from django.core.paginator import Page, Paginator
from django.http import HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString

from sizing import snapshot
from sizing.admin.board.spread import shares, spread
from sizing.admin.board.targets import PAGE as TARGETS_PAGE
from sizing.admin.picture import Kind, draw, hues, legend, model_key, row_of
from sizing.domain.board import By, Counts, Group
from sizing.domain.fleet import Fleet
from sizing.domain.once import found_once
from sizing.domain.wording import names, number, plural
from sizing.models import ClusterImport, InventoryLoad, Node
from sizing.services.board import Board
from sizing.snapshot import Snapshot

WEIGHT_A_PAGE = 1200
"""As many nodes, by weight, are drawn as one can still look over: 400 GPUs that one replica each holds."""
GROUPS_A_PAGE = 40
ROWS_A_PIECE = 8
VIEWS_KEPT = 64
CHOICES_SHOWN = 200
NO_ZONE = "–"
"""Stands for no zone where a zone is asked for."""
GROUPINGS = ((By.ZONE_AND_TYPE, "zone, type"), (By.ZONE, "zone"), (By.TYPE, "GPU type"))
FILTERS = ("zone", "type", "model")
ASKED = (*FILTERS, "by", "open", "page", TARGETS_PAGE)
KINDS = (Kind.FREE, Kind.HELD, Kind.SHARED, Kind.OUTSIDE, Kind.UNHEALTHY)


@dataclass(frozen=True, slots=True)
class Shown:
    """A group on the page; `pictures` where its nodes are drawn, `url` where they are to be seen."""

    title: str
    words: str
    shares: SafeString
    spread: SafeString
    url: str = ""
    pictures: Sequence[SafeString] = ()


@dataclass(frozen=True, slots=True)
class Choices:
    """What a filter offers, and what was chosen; an empty value is no filter."""

    offered: Sequence[tuple[str, str]]
    chosen: str


def may_see_fleet(request: HttpRequest) -> bool:
    """Whether the caller may see nodes and the replicas on them."""
    return all(
        request.user.has_perm(f"sizing.view_{table}") or request.user.has_perm(f"sizing.change_{table}")
        for table in ("node", "replica")
    )


def fleet_part(request: HttpRequest) -> dict[str, Any]:
    """The context of the fleet's half. Everything in it is read in one query, whatever the fleet's size."""
    if not may_see_fleet(request):
        return {"fleet_allowed": False}
    now = snapshot.current()
    asked = {name: request.GET.get(name, "").strip() for name in ASKED}
    return {
        "fleet_allowed": True,
        "fleet_key": "-".join(map(str, now.revision or ())),
        **_kept(now, asked),
        **_ways_to_begin(request),
    }


_Views = tuple[dict[tuple[str, ...], dict[str, Any]], dict[tuple[str, ...], RLock]]

_drawn: WeakKeyDictionary[Fleet, _Views] = WeakKeyDictionary()
"""What was said of a fleet, by what was asked: a board is looked at more often than its fleet changes."""


def _kept(now: Snapshot, asked: dict[str, str]) -> dict[str, Any]:
    of_fleet, looking = _drawn.setdefault(now.fleet, ({}, {}))
    key = tuple(asked.values())
    if key not in of_fleet and len(of_fleet) >= VIEWS_KEPT:
        of_fleet.clear()
    return found_once(of_fleet, looking, key, lambda: _looked(now, asked))


def _looked(now: Snapshot, asked: dict[str, str]) -> dict[str, Any]:
    """What depends on the fleet and the question alone; it must not hold the fleet, which it is kept by."""
    by = By(asked["by"]) if asked["by"] in set(By) else By.ZONE_AND_TYPE
    board = Board(
        now,
        by,
        zone="" if asked["zone"] == NO_ZONE else asked["zone"] or None,
        gpu_type=asked["type"] or None,
        model=asked["model"] or None,
    )
    query = {name: asked[name] for name in (*FILTERS, TARGETS_PAGE) if asked[name]}
    if by is not By.ZONE_AND_TYPE:
        query["by"] = by
    total = board.survey.total
    return {
        "nodes_known": board.nodes,
        "nodes_with_gpus": board.nodes_with_gpus,
        "without_gpus": board.nodes - board.nodes_with_gpus,
        "holders": board.models[:CHOICES_SHOWN],
        "total": total,
        "figures": figures(total),
        "total_spread": spread(total),
        "total_shares": shares(total),
        "left_out": board.survey.left_out,
        "filtered": any(asked[name] for name in FILTERS),
        "clear_query": urlencode({"by": by}) if by is not By.ZONE_AND_TYPE else "",
        "zone_choices": _choices(
            [(zone or NO_ZONE, zone or "no zone") for zone in board.zones], asked["zone"]
        ),
        "type_choices": _choices([(name, name) for name in board.gpu_types], asked["type"]),
        "by_choices": Choices(GROUPINGS, by),
        "model_asked": asked["model"],
        "legend": legend(KINDS),
        "colors": _colors(board.models),
        **_groups_part(board, asked, query),
    }


def _choices(offered: list[tuple[str, str]], chosen: str) -> Choices:
    shown = offered[:CHOICES_SHOWN]
    if chosen and chosen not in (value for value, _label in shown):
        shown.append((chosen, chosen))
    return Choices(shown, chosen)


def figures(counts: Counts) -> list[tuple[str, str]]:
    """What there is, as name and number; those of which there are none are left out, but for free ones."""
    found = (
        ("nodes", counts.nodes),
        ("GPUs", counts.gpus),
        ("free", counts.free),
        ("held", counts.held),
        ("partly free", counts.parts),
        ("free on closed nodes", counts.shut),
        ("used outside", counts.outside),
        ("unhealthy", counts.unhealthy + counts.unhealthy_held),
        ("nodes closed", counts.closed),
    )
    return [(name, number(value)) for name, value in found if value or name == "free"]


def words(counts: Counts) -> str:
    """What a group has, in a line."""
    said = [f"{plural(counts.nodes, 'node')}, {plural(counts.gpus, 'GPU')}", f"{number(counts.free)} free"]
    if counts.free > counts.most:
        said[-1] += f", at most {number(counts.most)} on one node"
    unhealthy = counts.unhealthy + counts.unhealthy_held
    for value, what in (
        (counts.parts, "partly free"),
        (counts.shut, "free on closed nodes"),
        (counts.outside, "used outside"),
        (unhealthy, "unhealthy"),
    ):
        if value:
            said.append(f"{number(value)} {what}")
    if counts.closed:
        said.append(f"{plural(counts.closed, 'node')} closed")
    return " · ".join(said)


def title_of(group: Group) -> str:
    """A group's name, which is also how a link asks for it."""
    parts = [] if group.zone is None else [group.zone or "no zone"]
    if group.types is not None:
        parts.append(" + ".join(group.types))
    return " · ".join(parts)


def _groups_part(board: Board, asked: dict[str, str], query: dict[str, str]) -> dict[str, Any]:
    """All nodes where they are few; else the groups, or one of them with a page of its nodes."""
    groups = board.survey.groups
    weight = sum(int(board.weight[group.nodes].sum()) for group in groups)
    if weight <= WEIGHT_A_PAGE and len(groups) <= GROUPS_A_PAGE:
        drawn = [_open(board, group, group.nodes.tolist(), place) for place, group in enumerate(groups)]
        return {"groups": drawn}
    wanted = asked["open"]
    opened = groups[0] if len(groups) == 1 else next((g for g in groups if title_of(g) == wanted), None)
    if opened is None:
        page = Paginator(groups, GROUPS_A_PAGE).get_page(asked["page"])
        return {
            "folded": True,
            "groups_known": len(groups),
            "groups": [_folded(group, query) for group in page.object_list],
            **_pages(page, query, f"{_span(page.start_index(), page.end_index(), len(groups))} groups"),
        }
    if len(groups) > 1:
        query = query | {"open": wanted}
    begins = begin_of_pages(board.weight[opened.nodes].tolist())
    at = Paginator(begins, 1).get_page(asked["page"])
    nodes = opened.nodes[begins[at.number - 1] : begins[at.number] if at.has_next() else None].tolist()
    begin = begins[at.number - 1] + 1
    shown = _span(begin, begin + len(nodes) - 1, opened.counts.nodes)
    return {
        "all_groups": len(groups) if len(groups) > 1 else 0,
        "all_query": urlencode({name: value for name, value in query.items() if name != "open"}),
        "groups": [_open(board, opened, nodes)],
        **_pages(at, query, f"{shown} nodes"),
    }


def begin_of_pages(weights: Sequence[int]) -> list[int]:
    """Where each page of rows begins, so that none but a single row is heavier than a page may be."""
    begins, sum_so_far = [0], 0
    for place, weight in enumerate(weights):
        sum_so_far += weight
        if sum_so_far > WEIGHT_A_PAGE and place > begins[-1]:
            begins.append(place)
            sum_so_far = weight
    return begins


def _span(first: int, last: int, of: int) -> str:
    return f"{number(first)} to {number(last)} of {number(of)}"


def _folded(group: Group, query: dict[str, str]) -> Shown:
    title = title_of(group)
    url = f"?{urlencode(query | {'open': title})}#fleet"
    return Shown(title, words(group.counts), shares(group.counts), spread(group.counts), url)


def _open(board: Board, group: Group, nodes: Sequence[int], place: int = 0) -> Shown:
    hue = hues(board.models)
    page = reverse("admin:sizing_node_change", args=[0])  # once: of many nodes it takes long
    rows = [
        row_of(drawn.picture, url=page.replace("/0/", f"/{drawn.pk}/"), hues=hue)
        for drawn in board.drawn(nodes)
    ]
    title = title_of(group)
    # In pieces, so that they stand beside each other where there is room.
    pictures = [
        draw(rows[at : at + ROWS_A_PIECE], name=f"fleet-{place}-{at}", title=title, about=words(group.counts))
        for at in range(0, len(rows), ROWS_A_PIECE)
    ]
    return Shown(title, words(group.counts), SafeString(), spread(group.counts), pictures=pictures)


def _colors(models: Sequence[str]) -> list[tuple[SafeString, str]]:
    """Which color is whose: a color's key and the models that have it."""
    of_hue: dict[int, list[str]] = {}
    for name, hue in hues(models).items():
        of_hue.setdefault(hue, []).append(name)
    return [(model_key(hue), names(sharing)) for hue, sharing in sorted(of_hue.items())]


def _pages(page: Page[Any], query: dict[str, str], shown: str) -> dict[str, Any]:
    """Where the pages before and after are; nothing where there is one only."""
    if not page.has_other_pages():
        return {}

    def to(other: int) -> str:
        return f"?{urlencode(query | {'page': str(other)})}#fleet"

    return {
        "page_words": f"page {number(page.number)} of {number(page.paginator.num_pages)}: {shown}",
        "previous_page": to(page.previous_page_number()) if page.has_previous() else "",
        "next_page": to(page.next_page_number()) if page.has_next() else "",
    }


def _ways_to_begin(request: HttpRequest) -> dict[str, str]:
    """Where an empty desk is filled, for those who may."""
    return {
        f"begin_by_{word}": reverse(f"admin:sizing_{model._meta.model_name}_add")
        for word, model in (("load", InventoryLoad), ("import", ClusterImport), ("node", Node))
        if admin.site.get_model_admin(model).has_add_permission(request)
    }
