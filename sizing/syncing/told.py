"""What a row keeps of a list and its changes: numbers of all, and the first of each by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sizing.inventory.words import counted
from sizing.syncing.bringing import Outcome

NAMES_KEPT = 200
LINES_KEPT = 100
SECTIONS = ("nodes", "replicas", "models")
HAPPENED = ("added", "gone", "moved", "changed")


def report_told(outcome: Outcome) -> dict[str, Any]:
    """The cluster in short: GPUs by type, what is closed, what was ignored, what is to be known."""
    report = outcome.report
    nodes: Mapping[str, Mapping[str, Any]] = report.get("nodes") or {}
    closed = [
        {"node": name, "codes": list(node["blocked_by"]), "say": node.get("say") or ""}
        for name, node in nodes.items()
        if node.get("blocked_by") and "no_gpu" not in node["blocked_by"]
    ]
    return {
        "nodes": len(nodes),
        "nodes_without_gpus": sum("no_gpu" in (node.get("blocked_by") or ()) for node in nodes.values()),
        "types": devices(report),
        "closed": {"count": len(closed), "first": closed[:NAMES_KEPT]},
        **{key: _pods(report.get(key)) for key in ("pods_unplaced", "orphan_pods", "soon_free")},
        "ignored": outcome.ignored[:LINES_KEPT],
        "warnings": {"count": len(outcome.warnings), "first": outcome.warnings[:LINES_KEPT]},
        "refusals": outcome.refusals[:LINES_KEPT],
    }


def changes_told(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The difference by kind of object: how many were added, are gone, moved or changed, and the first."""
    return {section: _kind(changes.get(section) or {}) for section in SECTIONS}


def summary(told: Mapping[str, Any], most: int = 255) -> str:
    """A difference in one line: `3 nodes added, 1 replica is gone`; told is what `changes_told` gave."""
    found = [
        f"{counted(number, section.removesuffix('s'))} {happened(word, number)}"
        for section in SECTIONS
        for word in HAPPENED
        if (number := told.get(section, {}).get(word, {}).get("count", 0))
    ]
    line = ", ".join(found) or "nothing differs"
    return line if len(line) <= most else f"{line[: most - 1]}…"


def happened(word: str, number: int) -> str:
    """What happened to so many, as the end of a sentence."""
    if word != "gone":
        return word
    return "is gone" if number == 1 else "are gone"


def number_of_changes(told: Mapping[str, Any]) -> int:
    """How many objects differ, of what `changes_told` gave."""
    return sum(
        told.get(section, {}).get(word, {}).get("count", 0) for section in SECTIONS for word in HAPPENED
    )


def goes_beyond(told: Mapping[str, Any], shown: Mapping[str, Any]) -> bool:
    """Whether a difference has anything that another one, which somebody saw, had not; less is no harm.

    Of more objects of a kind than are kept by name, there may only be no more than were shown.
    """
    for section in SECTIONS:
        for word in HAPPENED:
            now, before = (one.get(section, {}).get(word, {}) for one in (told, shown))
            if now.get("count", 0) > before.get("count", 0):
                return True
            names, seen = ({str(each) for each in one.get("first", ())} for one in (now, before))
            if before.get("count", 0) <= NAMES_KEPT and names - seen:
                return True
    return False


def _kind(kind: Mapping[str, Any]) -> dict[str, Any]:
    details: Mapping[str, Sequence[str]] = kind.get("details") or {}
    told = {}
    for word in HAPPENED:
        names: Sequence[str] = kind.get(word) or ()
        first = [{"name": name, "what": "; ".join(details.get(name, ()))} for name in names[:NAMES_KEPT]]
        told[word] = {"count": len(names), "first": first}
    return told


def devices(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A report's devices by type and resource; `free_open` are the free ones on nodes that take new pods."""
    nodes: Mapping[str, Mapping[str, Any]] = report.get("nodes") or {}
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for node in nodes.values():
        for resource, count in (node.get("resources") or {}).items():
            if not (count.get("capacity") or count.get("allocatable") or count.get("used")):
                continue
            key = (node.get("type") or "", resource)
            row = rows.setdefault(
                key,
                {
                    "type": key[0],
                    "resource": resource,
                    "nodes": 0,
                    "capacity": 0,
                    "allocatable": 0,
                    "used": 0,
                    "free": 0,
                    "free_open": 0,
                },
            )
            row["nodes"] += 1
            for name in ("capacity", "allocatable", "used", "free"):
                row[name] += count.get(name) or 0
            if not node.get("blocked_by"):
                row["free_open"] += count.get("free") or 0
    return [rows[key] for key in sorted(rows)]


def _pods(pods: Any) -> dict[str, Any]:
    found = pods if isinstance(pods, list) else []
    return {"count": len(found), "first": found[:NAMES_KEPT]}
