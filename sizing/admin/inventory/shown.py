"""What the pages of inventory files say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sizing.admin.cluster.shown import NAMES_SHOWN, Changed
from sizing.inventory.differing import HAPPENED
from sizing.inventory.words import counted
from sizing.models import InventoryLoad
from sizing.services.inventory import KINDS
from sizing.services.inventory_loads import number_of_changes, one_of

State = InventoryLoad.State

SIGNS = {State.PREVIEW: "?", State.LOADED: "✓", State.REFUSED: "✕"}
NAMES = {State.PREVIEW: "not loaded yet", State.LOADED: "loaded", State.REFUSED: "refused"}
LOOKS = {State.PREVIEW: "read", State.LOADED: "done", State.REFUSED: "failed"}
"""The class that colors a state."""

ASKED = {
    InventoryLoad.Trigger.ADMIN: "on a page",
    InventoryLoad.Trigger.API: "by the API",
    InventoryLoad.Trigger.COMMAND: "by a command",
}
ERRORS_SHOWN = 100


def asked(row: InventoryLoad) -> str:
    """Who brought the file, and how."""
    where = ASKED[InventoryLoad.Trigger(row.trigger)]
    return f"by {row.requested_by}, {where}" if row.requested_by else where


def sentence(row: InventoryLoad) -> str:
    """What a load does, did, or why it does not, in one sentence."""
    if row.state == State.REFUSED:
        return f"The file has {counted(number_of_errors(row), 'error')}; nothing was changed."
    number = number_of_changes(row)
    objects = counted(number, "object")
    if row.state == State.LOADED:
        return f"Loaded: {objects} changed." if number else "Loaded: nothing differed."
    if not number:
        return "The inventory is like this already: a load changes nothing."
    removed = sum((row.counts.get("removed") or {}).values())
    return f"A load changes {objects}{f', {removed:,} of which it removes' if removed else ''}."


def number_of_errors(row: InventoryLoad) -> int:
    """How many errors a row tells."""
    return sum(len(messages) for messages in row.errors.values())


def errors_of(row: InventoryLoad) -> list[tuple[str, str]]:
    """The errors as path and message; what is about the whole has no path."""
    return [
        ("" if path == "document" else path, message)
        for path, messages in row.errors.items()
        for message in messages
    ]


def changes_of(told: Mapping[str, Any]) -> list[Changed]:
    """The lines of a difference, what is removed first; none where nothing differs."""
    lines = []
    for word in reversed(HAPPENED):
        for kind in KINDS:
            found = told.get(word, {}).get(kind) or {}
            if count := found.get("count", 0):
                names = list(found["first"])
                what = f"{counted(count, one_of(kind))} {word}"
                first, folded = names[:NAMES_SHOWN], names[NAMES_SHOWN:]
                lines.append(Changed(what, word, first, folded, count - len(names)))
    return lines
