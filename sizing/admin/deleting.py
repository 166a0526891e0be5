"""What Django says of what goes with a deleted object, cut to what people read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

OBJECTS_SHOWN = 200

PARTS = "Bench file part: "
"""How a line of Django's begins that names a piece of a file."""


def without_parts(nested: Sequence[Any]) -> list[Any]:
    """A nested list of objects without the pieces of files, which say nothing to anybody."""
    kept = [without_parts(item) if isinstance(item, list) else item for item in nested]
    return [item for item in kept if item != [] and not str(item).startswith(PARTS)]


def shortened(nested: Sequence[Any]) -> list[Any]:
    """A nested list of objects cut where a page of it would be no use."""
    left = OBJECTS_SHOWN

    def cut(items: Sequence[Any]) -> list[Any]:
        nonlocal left
        kept: list[Any] = []
        for item in items:
            if left <= 0:
                kept.append("… and more")
                break
            if isinstance(item, list):
                kept.append(cut(item))
            else:
                left -= 1
                kept.append(item)
        return kept

    return cut(nested)
