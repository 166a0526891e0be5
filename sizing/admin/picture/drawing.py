"""Rows of GPU cells as one SVG. A shape or a hatching tells each kind apart, color only repeats it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from sizing.admin.picture.cells import Cell, Kind, Part, Row
from sizing.admin.picture.lettering import NOTE_MOST, TEXT, cut, fitting, short_names, wide

LINE = 22
"""Height of a line of cells, with the space below it."""
HEIGHT = 18
"""Height of a cell."""
WIDE, NARROW = 20, 10
"""Width of a GPU with the space behind it: where no node has more than WIDE_MOST, and else."""
WIDE_MOST, NARROW_MOST = 8, 16
"""GPUs on one line; more go on below."""
GAP = 2
BESIDE, EDGE = 10, 3
"""Space beside the cells: to names and notes, and to the image's edge where there are none."""

KINDS = {
    Kind.FREE: "free",
    Kind.HELD: "held, colored by model",
    Kind.SHARED: "shared, or a part is free",
    Kind.OUTSIDE: "used outside of replicas",
    Kind.UNHEALTHY: "unhealthy",
    Kind.NEW: "a new replica would go here",
    Kind.STOPS: "would stop",
}
HATCHED = (Kind.OUTSIDE, Kind.STOPS)

_PATTERNS = (
    '<pattern id="{0}-outside" width="4" height="4" patternUnits="userSpaceOnUse">'
    '<circle class="desk-pic-dot" cx="2" cy="2" r="1.1"/></pattern>'
    '<pattern id="{0}-stops" width="6" height="6" patternUnits="userSpaceOnUse">'
    '<path class="desk-pic-stroke" d="M-1 7L7-1M-1 1L1-1M5 7L7 5"/></pattern>'
)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where things stand in one drawing: the name ends at `start - BESIDE`, cells begin at `start`."""

    start: float
    gpu: int
    a_line: int
    end: float
    width: float


def draw(rows: Sequence[Row], *, name: str, title: str, about: str) -> SafeString:
    """The rows below each other, each name a link where its row has one. `name` makes the image's ids and
    must be its own on a page; `title` and `about` say it to those who cannot see it."""
    shown = short_names([row.name for row in rows])
    at = _columns(rows, shown)
    parts, y = [], 0
    for row, short in zip(rows, shown, strict=True):
        lines = max(ceil(sum(cell.gpus for cell in row.cells) / at.a_line), 1)
        parts.append(_row(row, short, at, y, lines, name))
        y += lines * LINE
    height = max(y, LINE)
    return mark_safe(
        f'<svg class="desk-pic" role="group" aria-labelledby="{name}-title" aria-describedby="{name}-about"'
        f' width="{at.width:g}" height="{height}" viewBox="0 0 {at.width:g} {height}">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-about">{escape(about)}</desc>'
        f"<defs>{_PATTERNS.format(name)}</defs>{''.join(parts)}</svg>"
    )


def legend(kinds: Iterable[Kind]) -> SafeString:
    """A list of what the kinds look like, in the order of `Kind`."""
    wanted = set(kinds)
    items = "".join(f"<li>{_key(_EXAMPLES[kind])} {KINDS[kind]}</li>" for kind in Kind if kind in wanted)
    return mark_safe(f'<ul class="desk-legend desk-pic-legend">{items}</ul>')


def model_key(hue: int) -> SafeString:
    """A model's color, to stand before its name."""
    return _key(Cell(Kind.HELD, "", hue=hue))


def _columns(rows: Sequence[Row], shown: Sequence[str]) -> _Columns:
    most = max((sum(cell.gpus for cell in row.cells) for row in rows), default=0)
    gpu, a_line = (WIDE, WIDE_MOST) if most <= WIDE_MOST else (NARROW, NARROW_MOST)
    longest = max((wide(short, TEXT) for short in shown), default=0)
    start = round(longest) + BESIDE if longest else EDGE
    end = start + max(min(most, a_line), 1) * gpu
    noted = max((wide(cut(row.note, NOTE_MOST), TEXT) for row in rows), default=0)
    return _Columns(start, gpu, a_line, end, end + (BESIDE + round(noted) if noted else EDGE))


def _row(row: Row, short: str, at: _Columns, y: int, lines: int, name: str) -> str:
    words = f'<text class="desk-pic-name" y="13">{_titled(short, row.name)}</text>'
    if row.url:
        label = "" if short == row.name else f' aria-label="{escape(row.name)}"'
        words = f'<a href="{escape(row.url)}"{label}>{words}</a>'
    cells = "".join(_cells(row, at, name))
    outline = ""
    if row.closed:
        width = min(sum(cell.gpus for cell in row.cells), at.a_line) * at.gpu
        outline = (
            f'<rect class="desk-pic-fence" x="{at.start - 2.5:g}" y="-1.5"'
            f' width="{width + 3}" height="{lines * LINE - 1}" rx="4"/>'
        )
    note = _titled(cut(row.note, NOTE_MOST), row.note)
    return (
        f'<g class="desk-pic-row{" desk-pic-closed" if row.closed else ""}" transform="translate(0 {y + 2})">'
        f'{words}<g role="img" aria-label="{escape(_summary(row))}">{cells}{outline}</g>'
        f'<text class="desk-pic-note" x="{at.end + BESIDE:g}" y="13">{note}</text></g>'
    )


def _titled(short: str, whole: str) -> str:
    return escape(short) if short == whole else f"<title>{escape(whole)}</title>{escape(short)}"


def _summary(row: Row) -> str:
    """A row's cells in words: how many GPUs of each kind."""
    counts: dict[str, int] = {}
    for cell in row.cells:
        counts[cell.kind] = counts.get(cell.kind, 0) + cell.gpus
    said = ", ".join(f"{number} {kind}" for kind, number in counts.items()) or "no GPUs"
    unhealthy = sum(cell.gpus for cell in row.cells if cell.unhealthy and cell.kind != Kind.UNHEALTHY)
    return f"{said}{f', {unhealthy} of them unhealthy' if unhealthy else ''}"


def _cells(row: Row, at: _Columns, name: str) -> Iterable[str]:
    """The row's cells; one that reaches beyond its line goes on in the next."""
    place = 0
    for cell in row.cells:
        left = cell.gpus
        while left:
            here = min(left, at.a_line - place % at.a_line)
            x = at.start + (place % at.a_line) * at.gpu
            yield _cell(cell, x, (place // at.a_line) * LINE, here * at.gpu - GAP, name)
            place, left = place + here, left - here


def _cell(cell: Cell, x: float, y: int, width: int, name: str) -> str:
    said = f"<title>{escape(cell.says)}</title>" if cell.says else ""
    box = _box(x, y, width, HEIGHT)
    drawn = [f'<rect class="{_class(cell)}"{box} rx="3"/>']
    from_below = float(y + HEIGHT)
    for part in cell.parts:
        high = min(part.share * HEIGHT, from_below - y)
        from_below -= high
        drawn.append(f'<rect class="desk-pic-part desk-pic-h{part.hue}"{_box(x, from_below, width, high)}/>')
        if part.stops:
            drawn.append(f'<rect fill="url(#{name}-stops)"{_box(x, from_below, width, high)}/>')
    if cell.kind in HATCHED and not cell.parts and name:
        drawn.append(f'<rect fill="url(#{name}-{cell.kind})"{box} rx="3"/>')
    drawn.append(_sign(cell, x, y, width))
    drawn.append(_label(cell, x, y, width))
    return f"<g>{said}{''.join(drawn)}</g>" if said else "".join(drawn)


def _class(cell: Cell) -> str:
    kind = f"desk-pic-{cell.kind}"
    whole = cell.kind in (Kind.HELD, Kind.STOPS) and not cell.parts
    return f"{kind} desk-pic-h{cell.hue}" if whole else kind


def _box(x: float, y: float, width: float, height: float) -> str:
    return f' x="{x:g}" y="{round(y, 1):g}" width="{width}" height="{round(height, 1):g}"'


def _sign(cell: Cell, x: float, y: int, width: int) -> str:
    """Strokes over a cell: a cross where it is unhealthy, a plus where something new would go, a line through
    what would stop."""
    middle, center = x + width / 2, y + HEIGHT / 2
    if cell.unhealthy:
        arm = 4
        path = f"M{middle - arm:g} {center - arm:g}l{2 * arm} {2 * arm}m0-{2 * arm}l-{2 * arm} {2 * arm}"
        return f'<path class="desk-pic-under" d="{path}"/><path class="desk-pic-cross" d="{path}"/>'
    if cell.kind == Kind.NEW and (cell.parts or not fitting(cell.label, width)):
        path = f"M{middle - 4:g} {center:g}h8m-4-4v8"
        under = f'<path class="desk-pic-under" d="{path}"/>' if cell.parts else ""
        return f'{under}<path class="desk-pic-plus" d="{path}"/>'
    if cell.kind == Kind.STOPS:
        return f'<path class="desk-pic-through" d="M{x + 1:g} {center:g}h{width - 2}"/>'
    return ""


def _label(cell: Cell, x: float, y: int, width: int) -> str:
    # On what stands behind signs or on the parts of several holders nothing can be read.
    signed = cell.unhealthy or cell.kind == Kind.STOPS or (cell.kind == Kind.NEW and cell.parts)
    shown = "" if signed else fitting(cell.label, width)
    if not shown:
        return ""
    kind = "desk-pic-new-label" if cell.kind == Kind.NEW else "desk-pic-label"
    return f'<text class="{kind}" x="{x + 5:g}" y="{y + 13}">{escape(shown)}</text>'


_EXAMPLES = {kind: Cell(kind, "") for kind in Kind} | {
    Kind.SHARED: Cell(Kind.SHARED, "", parts=(Part(0, 0.4), Part(1, 0.3))),
    Kind.UNHEALTHY: Cell(Kind.UNHEALTHY, "", unhealthy=True),
}


def _key(cell: Cell) -> SafeString:
    """A cell for a legend, beside its words; its hatching stands in the image itself, for it has no ids."""
    dots = "".join(f'<circle class="desk-pic-dot" cx="{x}" cy="{y}" r="1.1"/>' for x in _DOTS for y in _DOTS)
    hatching = dots if cell.kind == Kind.OUTSIDE else ""
    return mark_safe(
        '<svg class="desk-pic desk-pic-key" viewBox="-1 -1 20 20" width="18" height="18" aria-hidden="true"'
        f' focusable="false">{_cell(cell, 0, 0, WIDE - GAP, "")}{hatching}</svg>'
    )


_DOTS = (3, 7, 11, 15)
