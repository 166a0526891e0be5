"""Two sweeps in one drawing: what each served at every load, or how much of its limits that took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from sizing.admin.charts.frame import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Point,
    Scale,
    across,
    columns,
    drawing,
    joined,
    line,
    path,
    rows,
    text,
    ticks,
    upwards,
)
from sizing.admin.charts.levels import MOST_OF_A_LIMIT, Mark
from sizing.admin.charts.marks import beyond, mark, ring
from sizing.templatetags.desk import num

ABOVE, BELOW = -10, 19
"""Where words stand beside a point: of two curves one above and one below, so that none covers another."""
FARTHER = 16
"""How far words step aside where marks or other words are."""
LETTER, CAPITAL, MARK = 8.0, 12.0, 7.0
"""The room of a letter, of a line of words above its foot, and of a mark around its middle."""

KINDS = ("before", "after")


@dataclass(frozen=True, slots=True)
class Curve:
    """One sweep. name: written beside it. points: its line, by load. decided: where its figure is."""

    name: str
    marks: Sequence[Mark]
    points: Sequence[Point]
    decided: Point | None = None


def compared_throughput(name: str, curves: Sequence[Curve], *, unit: str, about: str) -> SafeString:
    """Tokens/s against load of two sweeps; unit: of a load."""
    up = ticks(max((m.value for c in curves for m in c.marks), default=0))
    y = upwards(up[-1])
    head = [rows(up, y), text("tok/s", LEFT - 8, TOP - 25, "name", "end")]
    return _drawn(name, f"Tokens per second by {unit}, both", about, curves, y, unit, head)


def compared_latency(name: str, curves: Sequence[Curve], *, unit: str, about: str) -> SafeString:
    """The latency nearest to its limit, as a share of it, against load; 1 is the SLO of both."""
    most = max((m.value for c in curves for m in c.marks), default=0)
    up = ticks(min(max(1.2, most), MOST_OF_A_LIMIT) * 100)
    y = Scale(0, up[-1] / 100, BOTTOM, TOP)
    head = [
        rows(up, Scale(0, up[-1], BOTTOM, TOP), "%"),
        text("worst latency, share of its limit", 8, TOP - 25, "name"),
        line((LEFT, y(1)), (RIGHT, y(1)), "slo"),
        text("SLO", LEFT + 4, y(1) - 6, "slo-name", "start"),
    ]
    return _drawn(name, f"Worst latency by {unit}, both", about, curves, y, unit, head)


def _drawn(
    name: str, title: str, about: str, curves: Sequence[Curve], y: Scale, unit: str, head: Sequence[str]
) -> SafeString:
    places = ticks(max((m.load for c in curves for m in c.marks), default=0), 6)
    x = across(places[-1])
    ends = [c.points[-1][1] if c.points else 0.0 for c in curves]
    figures = [c.decided[1] if c.decided else 0.0 for c in curves]
    parts = [*head, columns(places, x), text(unit, (LEFT + RIGHT) / 2, HEIGHT - 8, "name", "middle")]
    room = _Room([(x(m.load), max(y(m.value), TOP)) for c in curves for m in c.marks])
    names = []
    for i, (curve, kind) in enumerate(zip(curves, KINDS, strict=True)):
        drawn = [(x(load), max(y(value), TOP)) for load, value in curve.points]
        parts.append(path(drawn, kind))
        if drawn and curve.decided is None:
            names.append(room.beside(drawn[-1], curve.name, _above(ends, i)))
    for curve in curves:
        for m in curve.marks:
            at = (x(m.load), max(y(m.value), TOP))
            parts.append(mark(m.verdict, at, m.says))
            if y(m.value) < TOP:
                parts.append(beyond(at))
    for i, curve in enumerate(curves):
        if curve.decided is not None:
            at = (x(curve.decided[0]), y(curve.decided[1]))
            parts.append(ring(at))
            words = f"{curve.name} {num(round(curve.decided[1], 1))}"
            names.append(room.beside(at, words, _above(figures, i)))
    return drawing(name, title, about, joined([*parts, *names]))


def _above(values: Sequence[float], i: int) -> bool:
    """Whether the words of this one of two stand above its point: those of the higher one do."""
    return values[i] > values[1 - i] or (values[i] == values[1 - i] and i == 1)


class _Room:
    """The marks and words of a drawing, which further words stand clear of."""

    def __init__(self, marks: Sequence[Point]) -> None:
        self._boxes = [(px - MARK, py - MARK, px + MARK, py + MARK) for px, py in marks]

    def beside(self, at: Point, words: str, above: bool) -> SafeString:
        """Words beside a point, above or below it; farther off where they would cover something there."""
        wide = LETTER * len(words)
        sides = (-1, 1) if at[0] > (LEFT + RIGHT) / 2 else (1, -1)
        steps = [(FARTHER * far, side) for far in range(4) for side in sides]
        places = [
            (at[0] + 12 * side, at[1] + (ABOVE - far if above else BELOW + far), side) for far, side in steps
        ]
        px, py, side = min(places, key=lambda place: self._covered(place, wide))
        self._boxes.append(_box(px, py, side, wide))
        return text(words, px, py, "figure", "start" if side > 0 else "end")

    def _covered(self, place: tuple[float, float, int], wide: float) -> int:
        left, top, right, foot = _box(*place, wide)
        off = sum((left < 0, right > WIDTH, top < 0, foot > BOTTOM))
        return off + sum(b[0] < right and left < b[2] and b[1] < foot and top < b[3] for b in self._boxes)


def _box(px: float, py: float, side: int, wide: float) -> tuple[float, float, float, float]:
    return (px + wide * min(side, 0), py - CAPITAL, px + wide * max(side, 0), py + 2)
