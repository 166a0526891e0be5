"""What the pages of the cluster say: devices, differences, what was ignored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sizing.inventory.words import counted
from sizing.models import ClusterImport
from sizing.syncing.told import HAPPENED, SECTIONS, happened, number_of_changes
from sizing.templatetags.desk import age

State = ClusterImport.State

SIGNS = {
    State.QUEUED: "…",
    State.RUNNING: "▶",
    State.READ: "?",
    State.IMPORTING: "▶",
    State.DONE: "✓",
    State.FAILED: "✕",
}
NAMES = {
    State.QUEUED: "waiting",
    State.RUNNING: "being read",
    State.READ: "not imported yet",
    State.IMPORTING: "being imported",
    State.DONE: "imported",
    State.FAILED: "not imported",
}
LOOKS = {
    State.QUEUED: "queued",
    State.RUNNING: "running",
    State.READ: "read",
    State.IMPORTING: "running",
    State.DONE: "done",
    State.FAILED: "failed",
}
"""The class that colors a state."""

ASKED = {
    ClusterImport.Trigger.ADMIN: "on a page",
    ClusterImport.Trigger.API: "by the API",
    ClusterImport.Trigger.COMMAND: "by a command",
}
NAMES_SHOWN = 10
"""The first names stand there; the others are folded in."""


@dataclass(frozen=True, slots=True)
class Changed:
    """One line of a difference: how many objects of a kind, and which."""

    what: str
    kind: str
    first: list[Mapping[str, str]]
    folded: list[Mapping[str, str]]
    left_out: int


def asked(row: ClusterImport) -> str:
    """Who brought the list, and how."""
    where = ASKED[ClusterImport.Trigger(row.trigger)]
    return f"by {row.requested_by}, {where}" if row.requested_by else where


def changes_of(told: Mapping[str, Any]) -> list[Changed]:
    """The lines of a difference; none where nothing differs."""
    lines = []
    for section in SECTIONS:
        for word in HAPPENED:
            found = told.get(section, {}).get(word) or {}
            count, names = found.get("count", 0), list(found.get("first", ()))
            if count:
                what = f"{counted(count, section.removesuffix('s'))} {happened(word, count)}"
                first, folded = names[:NAMES_SHOWN], names[NAMES_SHOWN:]
                lines.append(Changed(what, word, first, folded, count - len(names)))
    return lines


def sentence(row: ClusterImport, now: datetime) -> str:
    """How far an import is, or what it does."""
    number = number_of_changes(row.changes)
    objects = counted(number, "object")
    waited = age((now - row.queued_at).total_seconds())
    alive = row.heartbeat_at
    heard = f"; it was last heard of {age((now - alive).total_seconds())} ago" if alive else ""
    if row.state == State.QUEUED:
        return f"Waiting for {waited}: a worker reads the list as soon as one is free."
    if row.state == State.RUNNING:
        return f"A worker reads the list{heard}."
    if row.state == State.IMPORTING and not heard:
        return f"Brought {waited} ago: a worker imports the list as soon as one is free."
    if row.state == State.IMPORTING:
        return f"A worker imports the list{heard}."
    if row.state == State.FAILED:
        return "The list was not imported; nothing was changed."
    if row.state == State.DONE:
        return (
            f"The list is imported: {objects} changed."
            if number
            else "The list is imported: nothing differed."
        )
    if row.report.get("refusals"):
        return "The list cannot be imported as it is."
    return f"An import changes {objects}." if number else "The inventory is like this already."
