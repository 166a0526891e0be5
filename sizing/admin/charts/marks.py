"""Marks: the shape says what happened at a point, the color only repeats it."""

from __future__ import annotations

from django.utils.safestring import SafeString

from sizing.admin.charts.frame import Point, element, joined, line

SIZE = 5.0

FLOOR = "floor"
"""Beside the verdicts of a level: a measurement that says `at least`."""


def mark(kind: str, at: Point, says: str = "") -> SafeString:
    """The mark of a verdict; a browser shows `says` under the pointer."""
    inside = [element("title", says)] if says else []
    return element("g", *inside, _shape(kind, at), class_=f"desk-mark desk-mark-{kind}")


def _shape(kind: str, at: Point) -> SafeString:
    x, y = at
    if kind == "pass":
        return element("circle", cx=x, cy=y, r=SIZE)
    if kind == "fail":
        return joined(
            [
                line((x - SIZE, y - SIZE), (x + SIZE, y + SIZE), "stroke"),
                line((x - SIZE, y + SIZE), (x + SIZE, y - SIZE), "stroke"),
            ]
        )
    if kind == "invalid":
        return element("rect", x=x - SIZE, y=y - SIZE, width=2 * SIZE, height=2 * SIZE)
    if kind == FLOOR:
        return _polygon((x, y - SIZE - 1), (x + SIZE + 1, y + SIZE), (x - SIZE - 1, y + SIZE))
    return _polygon((x, y - SIZE - 1), (x + SIZE + 1, y), (x, y + SIZE + 1), (x - SIZE - 1, y))


def _polygon(*corners: Point) -> SafeString:
    return element("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in corners))


def ring(at: Point) -> SafeString:
    """Around the mark that decides."""
    return element("circle", cx=at[0], cy=at[1], r=9, class_="desk-chart-ring")


def beyond(at: Point) -> SafeString:
    """An arrow above a mark that is drawn at the plot's edge because it lies beyond it."""
    x, y = at
    return element(
        "polygon",
        points=f"{x:.1f},{y - 20:.1f} {x + 5:.1f},{y - 11:.1f} {x - 5:.1f},{y - 11:.1f}",
        class_="desk-chart-beyond",
    )


def mark_key(kind: str) -> SafeString:
    """A mark for a legend, beside its words."""
    return _key(mark(kind, (12, 9)))


def line_key(kind: str) -> SafeString:
    """A line's style for a legend, beside its words."""
    return _key(line((1, 9), (23, 9), kind))


def _key(content: SafeString) -> SafeString:
    return element(
        "svg", content, class_="desk-key", viewBox="0 0 24 18", aria_hidden="true", focusable="false"
    )
