"""What all charts share: elements, the plot's frame, its scales and their ticks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor, log10

from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from sizing.templatetags.desk import num

WIDTH, HEIGHT = 480.0, 310.0
LEFT, TOP, RIGHT, BOTTOM = 60.0, 40.0, 460.0, 260.0
"""The plot's edges; around it is room for the words."""

STEPS = (1.0, 2.0, 5.0, 10.0)

Point = tuple[float, float]


def element(name: str, *children: str, **attributes: str | float) -> SafeString:
    """One SVG element; what is not marked safe is escaped. `class_` is `class`, `_` in names is `-`."""
    pairs = "".join(
        format_html(' {}="{}"', key.rstrip("_").replace("_", "-"), _text(value))
        for key, value in attributes.items()
    )
    return mark_safe(f"<{name}{pairs}>{joined(children)}</{name}>")


def joined(parts: Iterable[str]) -> SafeString:
    """Elements one after the other; texts among them are escaped."""
    return mark_safe("".join(conditional_escape(part) for part in parts))


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{round(value, 1):g}"


def ticks(most: float, about: int = 5) -> list[float]:
    """Round numbers from 0 to the first at or above `most`, about so many."""
    if most <= 0:
        return [0.0, 1.0]
    magnitude = 10.0 ** floor(log10(most / about))
    step = next(s * magnitude for s in STEPS if s * magnitude * about >= most * 0.999999)
    found = [0.0]
    while found[-1] < most * 0.999999:
        found.append(round(len(found) * step, 9))
    return found


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to places on the drawing, linearly."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low)


def across(most: float) -> Scale:
    """A horizontal scale from 0."""
    return Scale(0, most, LEFT, RIGHT)


def upwards(most: float) -> Scale:
    """A vertical scale from 0."""
    return Scale(0, most, BOTTOM, TOP)


def text(words: str, x: float, y: float, kind: str, anchor: str = "start") -> SafeString:
    """Words; `anchor` is start, middle or end."""
    return element("text", words, x=x, y=y, class_=f"desk-chart-{kind}", text_anchor=anchor)


def rows(at: Sequence[float], y: Scale, unit: str = "") -> SafeString:
    """The horizontal lines of a plot with their numbers."""
    drawn = []
    for value in at:
        kind = "axis" if value == 0 else "grid"
        drawn.append(line((LEFT, y(value)), (RIGHT, y(value)), kind))
        drawn.append(text(num(value, unit), LEFT - 8, y(value) + 4, "tick", "end"))
    return joined(drawn)


def columns(at: Sequence[float], x: Scale) -> SafeString:
    """The numbers below a plot."""
    return joined(text(num(value), x(value), BOTTOM + 18, "tick", "middle") for value in at)


def line(start: Point, end: Point, kind: str) -> SafeString:
    return element("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], class_=f"desk-chart-{kind}")


def path(points: Sequence[Point], kind: str, **attributes: str) -> SafeString:
    """A line through points; nothing where there are fewer than two."""
    if len(points) < 2:
        return SafeString()
    steps = " ".join(f"{_text(x)},{_text(y)}" for x, y in points)
    return element("polyline", points=steps, class_=f"desk-chart-{kind}", **attributes)


def box(left: float, right: float, top: float, bottom: float, kind: str) -> SafeString:
    return element(
        "rect", x=left, y=top, width=right - left, height=bottom - top, class_=f"desk-chart-{kind}"
    )


def drawing(name: str, title: str, about: str, *parts: str) -> SafeString:
    """The whole image; `name` makes its ids, `title` and `about` say it to those who cannot see it."""
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", about, id=f"{name}-about"),
        *parts,
        class_="desk-chart",
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        role="img",
        aria_labelledby=f"{name}-title",
        aria_describedby=f"{name}-about",
    )
