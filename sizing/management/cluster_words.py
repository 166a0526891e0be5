"""What a list of the cluster changes, in lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sizing.inventory.words import counted
from sizing.syncing.told import HAPPENED, SECTIONS

NAMES = 5
DETAILS = 5
IGNORED = 50
WARNINGS = 100


def device_lines(types: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The devices of each type: what there is, what is used, and what is free."""
    for row in types:
        name = f"{row['type']} ({row['resource']})" if row["type"] else row["resource"]
        numbers = f"{row['allocatable']:,} allocatable, {row['used']:,} used, {row['free']:,} free"
        closed = row["free"] - row["free_open"]
        behind = f", {closed:,} of them on closed nodes" if closed else ""
        yield f"{name} on {counted(row['nodes'], 'node')}: {numbers}{behind}"


def change_lines(changes: Mapping[str, Any]) -> Iterator[str]:
    """The difference by kind of object, with the first names, and what changes of the first."""
    found = False
    for section in SECTIONS:
        kind = changes[section]
        parts = [f"{len(kind[word]):,} {word} ({_names(kind[word])})" for word in HAPPENED if kind.get(word)]
        if not parts:
            continue
        found = True
        yield f"{section}: {', '.join(parts)}"
        details: Mapping[str, Sequence[str]] = kind.get("details") or {}
        for name in [*kind.get("moved", ()), *kind.get("changed", ())][:DETAILS]:
            if details.get(name):
                yield f"  {name}: {'; '.join(details[name])}"
    if not found:
        yield "the inventory is like this already"


def ignored_lines(ignored: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What is not taken, by kind and reason."""
    for one in ignored[:IGNORED]:
        examples = _names(one.get("examples") or (), one["count"])
        yield f"ignored: {counted(one['count'], one['kind'])}, {one['reason']}" + (
            f" ({examples})" if examples else ""
        )
    if len(ignored) > IGNORED:
        yield f"and {counted(len(ignored) - IGNORED, 'more reason')}"


def warning_lines(warnings: Sequence[str]) -> Iterator[str]:
    """The warnings, one a line."""
    for warning in warnings[:WARNINGS]:
        yield f"warning: {warning}"
    if len(warnings) > WARNINGS:
        yield f"and {counted(len(warnings) - WARNINGS, 'more warning')}"


def _names(names: Sequence[str], of: int | None = None) -> str:
    """The first names, then `and 211 more`."""
    shown, number = ", ".join(names[:NAMES]), len(names) if of is None else of
    left = number - min(len(names), NAMES)
    return f"{shown} and {left:,} more" if shown and left > 0 else shown
