"""How messages quote what people wrote: in one line, short, and without control characters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

_LONGEST_QUOTE = 120


def quoted(text: str) -> str:
    """The text in double quotes, cut where it is long; escapes stand for what cannot be printed."""
    cut = text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…"
    return f'"{cut}"' if cut.isprintable() else json.dumps(cut)


def shown(value: Any) -> str:
    """A value with its kind, as in `the text "yes"`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, Sequence):
        return "a list"
    if isinstance(value, int | float | Decimal):
        return cut_number(str(value))
    return f"a {type(value).__name__}"


def cut_number(text: str) -> str:
    """A number, cut where it is long."""
    return text if len(text) <= 30 else text[:29] + "…"


def listed(names: Sequence[str], most: int = 3) -> str:
    """Names in quotes, the first few, then `and 211 more`."""
    words = ", ".join(quoted(name) for name in names[:most])
    return words if len(names) <= most else f"{words} and {len(names) - most:,} more"


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 error`, `1,204 errors`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
