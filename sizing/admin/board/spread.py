"""How GPUs are held and how what is free is spread over nodes, drawn small; numbers are written out."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from sizing.domain.board import Counts
from sizing.domain.wording import plural

COLUMN, GAP = 38, 3
TOP, BARS, BOTTOM = 13, 20, 14
"""Heights: the numbers of nodes, the bars below them, the numbers of free GPUs."""
SINGLE_MOST = 8
"""Up to so many GPUs on a node each number of free ones has a column of its own; above, each doubling has."""
LONG = 1000


@dataclass(frozen=True, slots=True)
class _Column:
    low: int
    high: int
    nodes: int

    @property
    def label(self) -> str:
        return f"{self.low}" if self.low == self.high else f"{self.low}–{self.high}"


def spread(counts: Counts) -> SafeString:
    """How many nodes have how many free GPUs; nothing where no node is open."""
    columns = _columns(counts)
    most = max((column.nodes for column in columns), default=0)
    if not most:
        return SafeString()
    drawn = []
    for place, column in enumerate(columns):
        x, middle = place * COLUMN, place * COLUMN + (COLUMN - GAP) / 2
        high = max(column.nodes / most * BARS, 1.5) if column.nodes else 0.5
        kind = "none" if column.high == 0 else "some"
        drawn.append(
            f'<rect class="board-spread-{kind}" x="{x}" y="{TOP + BARS - high:.1f}" width="{COLUMN - GAP}"'
            f' height="{high:.1f}"/><text x="{middle:g}" y="{TOP + BARS + 11}">{column.label}</text>'
        )
        if column.nodes:
            drawn.append(
                f'<text class="board-spread-n" x="{middle:g}" y="{TOP + BARS - high - 3:.1f}">'
                f"{column.nodes:,}</text>"
            )
    width, height = len(columns) * COLUMN - GAP, TOP + BARS + BOTTOM
    return mark_safe(
        f'<svg class="board-spread" role="img" aria-label="{escape(_said(columns))}" width="{width}"'
        f' height="{height}" viewBox="0 0 {width} {height}">{"".join(drawn)}</svg>'
    )


def _columns(counts: Counts) -> list[_Column]:
    if counts.widest <= SINGLE_MOST:
        bounds = [(number, number) for number in range(counts.widest + 1)]
    else:
        bounds, high = [(0, 0), (1, 1), (2, 2)], 2
        while high < counts.widest:
            bounds.append((high + 1, high * 2))
            high *= 2
    return [
        _Column(low, high, sum(nodes for free, nodes in counts.spread if low <= free <= high))
        for low, high in bounds
    ]


def _said(columns: list[_Column]) -> str:
    said = [f"{plural(column.nodes, 'node')} with {column.label} free" for column in columns if column.nodes]
    return f"Free GPUs per open node: {', '.join(said)}"


def shares(counts: Counts) -> SafeString:
    """All GPUs as one bar: held, used outside, unhealthy, free on closed nodes, free."""
    x, drawn = 0.0, []
    for kind, gpus, words in (
        ("held", counts.held, "held"),
        ("outside", counts.outside, "used outside of replicas"),
        ("unhealthy", counts.unhealthy, "unhealthy, held by nobody"),
        ("shut", counts.shut, "free on closed nodes"),
        ("free", counts.free, "free"),
    ):
        wide = gpus / max(counts.gpus, 1) * LONG
        if gpus:
            drawn.append(
                f'<rect class="board-share-{kind}" x="{x:.1f}" y="0" width="{max(wide, 2):.1f}" height="10">'
                f"<title>{plural(gpus, 'GPU')} {words}</title></rect>"
            )
        x += wide
    return mark_safe(
        f'<svg class="board-shares" viewBox="0 0 {LONG} 10" preserveAspectRatio="none" aria-hidden="true"'
        f' focusable="false">{"".join(drawn)}</svg>'
    )
