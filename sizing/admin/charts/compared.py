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
    for i, (curve, kind) in enumerate(zip(curves, KINDS, strict=True)):
        drawn = [(x(load), max(y(value), TOP)) for load, value in curve.points]
        parts.append(path(drawn, kind))
        if drawn and curve.decided is None:
            parts.append(_beside(drawn[-1], curve.name, _above(ends, i)))
    for curve in curves:
        for m in curve.marks:
            at = (x(m.load), max(y(m.value), TOP))
            parts.append(mark(m.verdict, at, m.says))
            if y(m.value) < TOP:
                parts.append(beyond(at))
    for i, curve in enumerate(curves):
        if curve.decided is not None:
            at = (x(curve.decided[0]), y(curve.decided[1]))
            parts += [
                ring(at),
                _beside(at, f"{curve.name} {num(round(curve.decided[1], 1))}", _above(figures, i)),
            ]
    return drawing(name, title, about, joined(parts))


def _above(values: Sequence[float], i: int) -> bool:
    """Whether the words of this one of two stand above its point: those of the higher one do."""
    return values[i] > values[1 - i] or (values[i] == values[1 - i] and i == 1)


def _beside(at: Point, words: str, above: bool) -> SafeString:
    anchor, aside = ("end", -12) if at[0] > (LEFT + RIGHT) / 2 else ("start", 12)
    return text(words, at[0] + aside, at[1] + (ABOVE if above else BELOW), "figure", anchor)
