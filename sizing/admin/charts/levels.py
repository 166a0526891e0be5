"""The two charts of a sweep: what was served, and how long it took, at each load."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    box,
    columns,
    drawing,
    element,
    joined,
    line,
    path,
    rows,
    text,
    ticks,
    upwards,
)
from sizing.admin.charts.marks import beyond, mark, ring
from sizing.templatetags.desk import num

MOST_OF_A_LIMIT = 2.5
"""Latencies beyond this share of their limit are drawn at the plot's upper edge: how far is of no use."""

SERIES = ("first", "second", "third")


@dataclass(frozen=True, slots=True)
class Mark:
    """One measured level: its load, its value there, its verdict, and what it says under the pointer."""

    load: float
    value: float
    verdict: str
    says: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """A latency at every level, as a share of its limit."""

    name: str
    marks: Sequence[Mark]


def throughput_chart(
    name: str,
    marks: Sequence[Mark],
    curve: Sequence[Point],
    *,
    unit: str,
    about: str,
    decided: Point | None = None,
    bracket: Point | None = None,
) -> SafeString:
    """Tokens/s against load.

    curve: one point for each load, by load. unit: of a load. decided: load and value of the level that
    gives the figure. bracket: its load and the next load tried.
    """
    x, places = _loads(marks)
    up = ticks(max((m.value for m in marks), default=0))
    y = upwards(up[-1])
    line_end = sum(1 for load, _ in curve if decided is not None and load <= decided[0])
    points = [(x(load), y(value)) for load, value in curve]
    parts = [
        _bracket(bracket, x),
        rows(up, y),
        columns(places, x),
        text("tok/s", LEFT - 8, TOP - 25, "name", "end"),
        _load_name(unit),
        path(points[:line_end], "met"),
        path(points[max(line_end - 1, 0) :], "rest"),
        joined(mark(m.verdict, (x(m.load), y(m.value)), m.says) for m in _passes_first(marks)),
    ]
    if decided is not None:
        at = (x(decided[0]), y(decided[1]))
        anchor = "end" if at[0] > (LEFT + RIGHT) / 2 else "start"
        aside = -13 if anchor == "end" else 13
        parts += [ring(at), text(num(round(decided[1], 1)), at[0] + aside, at[1] - 8, "figure", anchor)]
    return drawing(name, f"Tokens per second by {unit}", about, *parts)


def latency_chart(
    name: str,
    series: Sequence[Series],
    *,
    unit: str,
    percentile: str,
    about: str,
    loads: Sequence[float] = (),
    bracket: Point | None = None,
) -> SafeString:
    """Latencies against load, each as a share of its limit, so that one line is the SLO of all.

    loads: of every level, so that the loads stand where they do in the chart beside it.
    """
    marks = [m for one in series for m in one.marks]
    x, places = _loads([*marks, *(Mark(load, 0, "") for load in loads)])
    top = min(max([1.2, *(m.value for m in marks)]), MOST_OF_A_LIMIT)
    up = ticks(top * 100)
    y = Scale(0, up[-1] / 100, BOTTOM, TOP)
    clip = f"{name}-plot"
    parts = [
        element("clipPath", box(LEFT, RIGHT, TOP, BOTTOM, "plot"), id=clip),
        _bracket(bracket, x),
        rows(up, Scale(0, up[-1], BOTTOM, TOP), "%"),
        columns(places, x),
        text(f"{percentile} latency, share of its limit", 8, TOP - 25, "name"),
        _load_name(unit),
        line((LEFT, y(1)), (RIGHT, y(1)), "slo"),
        text("SLO", LEFT + 4, y(1) - 6, "slo-name", "start"),
    ]
    for one, kind in zip(series, SERIES, strict=False):
        points = sorted((x(m.load), y(m.value)) for m in one.marks)
        parts.append(path(points, kind, clip_path=f"url(#{clip})"))
    for m in _passes_first(marks):
        at = (x(m.load), max(y(m.value), TOP))
        parts.append(mark(m.verdict, at, m.says))
        if y(m.value) < TOP:
            parts.append(beyond(at))
    return drawing(name, f"Latency by {unit}", about, *parts)


def _passes_first(marks: Iterable[Mark]) -> list[Mark]:
    """Where a load was tried twice and failed once, the dot must not cover the cross."""
    return sorted(marks, key=lambda m: m.verdict != "pass")


def _loads(marks: Sequence[Mark]) -> tuple[Scale, list[float]]:
    places = ticks(max((m.load for m in marks), default=0), 6)
    return across(places[-1]), places


def _bracket(bracket: Point | None, x: Scale) -> SafeString:
    return box(x(bracket[0]), x(bracket[1]), TOP, BOTTOM, "bracket") if bracket else SafeString()


def _load_name(unit: str) -> SafeString:
    return text(unit, (LEFT + RIGHT) / 2, HEIGHT - 8, "name", "middle")
