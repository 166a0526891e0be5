"""Words in a drawing: how wide they are, and what is left of them where that is too much."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

TEXT, LABEL = 12, 11
"""Font sizes: of names and notes, and of labels inside cells."""
NAME_MOST, NOTE_MOST = 16, 16
"""Letters that are shown."""
SHORTEST_LABEL = 3


def short_names(names: Sequence[str]) -> list[str]:
    """Names as they fit: without their domain where that leaves them apart, then cut in the middle."""
    hosts = [name.partition(".")[0] for name in names]
    if len(set(hosts)) == len(set(names)):
        names = hosts
    return [cut(name, NAME_MOST) for name in names]


def cut(name: str, most: int) -> str:
    """A text of at most so many letters; a longer one without its middle."""
    if len(name) <= most:
        return name
    begin = (most - 1) // 2
    return f"{name[:begin]}…{name[begin + 1 - most :]}"


@lru_cache(maxsize=4096)
def fitting(label: str, width: int) -> str:
    """As much of a label as there is room for; nothing where that would say nothing."""
    room = width - 8
    if wide(label, LABEL) <= room:
        return label
    for length in range(min(len(label) - 1, width // 3), SHORTEST_LABEL - 1, -1):
        if wide(shorter := f"{label[:length]}…", LABEL) <= room:
            return shorter
    return ""


def wide(text: str, size: int) -> float:
    """About how wide a text is drawn: rather more, in the widest of the usual fonts."""
    return sum(_LETTERS.get(letter, 0.64) for letter in text) * size


_LETTERS = dict.fromkeys("fijlrt.,:-/|'() ", 0.4) | dict.fromkeys("mwMWG@%…", 0.98)
_LETTERS |= dict.fromkeys("ABCDEFHKNOPQRUVXY", 0.72)
