"""What a replica was measured to serve, over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.safestring import SafeString

from sizing.admin.charts.frame import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Scale,
    box,
    drawing,
    joined,
    line,
    path,
    rows,
    text,
    ticks,
    upwards,
)
from sizing.admin.charts.marks import mark, ring
from sizing.domain.drift import COMPARED_WITH, MOST_DRIFT

DAYS_SHOWN_WITH_HOURS = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Entry:
    """One measurement: when, how much, the kind of its mark, and what it says under the pointer."""

    at: datetime
    value: float
    kind: str
    says: str = ""


def history_chart(
    name: str, entries: Sequence[Entry], *, title: str, about: str, before: float | None = None
) -> SafeString:
    """Tokens/s by time, the oldest first. before: the median that the last one is compared with."""
    up = ticks(max((e.value for e in entries), default=0) * 1.1, 4)
    y = upwards(up[-1])
    first, last = entries[0].at, entries[-1].at
    span = max((last - first).total_seconds(), 1.0)
    x = Scale(0, span, LEFT + 10, RIGHT - 10)
    places = [(x((e.at - first).total_seconds()), y(e.value)) for e in entries]
    parts = [
        _allowed(before, places[-1 - COMPARED_WITH :], y) if before is not None else SafeString(),
        rows(up, y),
        text("tok/s", LEFT - 8, TOP - 25, "name", "end"),
        _dates(first, last),
        path(places, "met"),
        joined(mark(e.kind, at, e.says) for e, at in zip(entries, places, strict=True)),
        ring(places[-1]),
    ]
    return drawing(name, title, about, *parts)


def _allowed(before: float, compared: Sequence[tuple[float, float]], y: Scale) -> SafeString:
    """The median of those before the last one, and how far from it is no drift."""
    left, right = compared[0][0], compared[-1][0]
    most = float(MOST_DRIFT)
    return joined(
        [
            box(left, right, y(before * (1 + most)), y(before * (1 - most)), "allowed"),
            line((left, y(before)), (right, y(before)), "median"),
        ]
    )


def _dates(first: datetime, last: datetime) -> SafeString:
    short = last - first < DAYS_SHOWN_WITH_HOURS
    form = "%m-%d %H:%M" if short else "%Y-%m-%d"
    ends = [text(f"{first:{form}}", LEFT, BOTTOM + 18, "tick")]
    if last > first:
        ends.append(text(f"{last:{form}}", RIGHT, BOTTOM + 18, "tick", "end"))
    return joined(ends)
