"""Labels, node selectors, taints and tolerations in Kubernetes' form, in files and in the tables.

The tables keep them as JSON in that form; keys that say nothing are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sizing.domain.specs import Taint, Toleration
from sizing.inventory.fields import REQUIRED, Fields, text_problem
from sizing.inventory.words import quoted, shown

LONGEST_KEY = 317
"""A DNS subdomain of 253, a slash, and a name of 63."""

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def key_problem(key: str) -> str | None:
    """Say what is wrong with the key of a label or a taint, or None."""
    if not key:
        return "must not be empty"
    if len(key) > LONGEST_KEY:
        return f"must have at most {LONGEST_KEY} characters"
    prefix, slash, name = key.rpartition("/")
    if not key.isprintable() or " " in key or "/" in prefix or not name or (slash and not prefix):
        return "must be a label key such as topology.kubernetes.io/zone"
    return None


def read_labels(fields: Fields, key: str) -> dict[str, str]:
    """A mapping of label keys to texts."""
    child = fields.child(key)
    labels = {}
    for name in child:
        value = child.raw(name)
        problem = key_problem(name) if isinstance(name, str) else f"must be a text, not {shown(name)}"
        place = f"{fields.at(key)}[{quoted(str(name))}]"
        if problem:
            fields.findings.error(place, f"the key {problem}")
        elif not isinstance(value, str):
            fields.findings.error(place, f"must be a text, not {shown(value)}; put it in quotes")
        elif text_problem(value) or len(value) > 255:
            fields.findings.error(place, text_problem(value) or "must have at most 255 characters")
        else:
            labels[name] = value
            continue
        fields.broken = True
    fields.broken |= child.broken
    return labels


def read_taints(fields: Fields, key: str) -> tuple[Taint, ...]:
    """A list of taints; two with one key and effect are a duplicate, as in Kubernetes."""
    taints: list[Taint] = []
    seen: dict[tuple[str, str], str] = {}
    for child in fields.children(key):
        taint = Taint(
            key=child.name("key", key_problem) or "",
            value=child.text("value"),
            effect=child.choice("effect", EFFECTS, REQUIRED),
        )
        _forget(child, "timeAdded")
        child.done()
        if not child.broken:
            first = seen.setdefault((taint.key, taint.effect), child.path)
            if first != child.path:
                child.error("", f"has the same key and effect as {first}")
        fields.broken |= child.broken
        taints.append(taint)
    return tuple(taints)


def read_tolerations(fields: Fields, key: str) -> tuple[Toleration, ...]:
    """A list of tolerations, with the rules that Kubernetes has for them."""
    tolerations = []
    for child in fields.children(key):
        named = child.raw("key") not in (None, "")
        toleration = Toleration(
            key=(child.name("key", key_problem) or "") if named else "",
            operator=child.choice("operator", ("Equal", "Exists"), None) or "Equal",
            value=child.text("value"),
            effect=child.choice("effect", (*EFFECTS, ""), None) or "",
        )
        _forget(child, "tolerationSeconds")
        if not named and toleration.operator == "Equal":
            child.error("operator", "must be Exists where there is no key")
        if toleration.operator == "Exists" and toleration.value:
            child.error("value", "must be empty with the operator Exists")
        child.done()
        fields.broken |= child.broken
        tolerations.append(toleration)
    return tuple(tolerations)


def _forget(child: Fields, key: str) -> None:
    """Read over a key of Kubernetes that has no bearing on what fits."""
    if child.raw(key) is not None:
        child.findings.warn(child.at(key), "is not kept; it has no bearing on what fits")


def taints_form(taints: Iterable[Taint]) -> list[dict[str, str]]:
    """Taints as the tables and the file have them."""
    return [_without_empty(key=t.key, value=t.value, effect=t.effect) for t in taints]


def tolerations_form(tolerations: Iterable[Toleration]) -> list[dict[str, str]]:
    """Tolerations as the tables and the file have them."""
    return [
        _without_empty(key=t.key, operator=t.operator, value=t.value, effect=t.effect) for t in tolerations
    ]


def taints_of(stored: Iterable[Mapping[str, Any]]) -> tuple[Taint, ...]:
    """Taints from the tables."""
    return tuple(Taint(t.get("key") or "", t.get("value") or "", t.get("effect") or "") for t in stored)


def tolerations_of(stored: Iterable[Mapping[str, Any]]) -> tuple[Toleration, ...]:
    """Tolerations from the tables."""
    return tuple(
        Toleration(
            t.get("key") or "", t.get("operator") or "Equal", t.get("value") or "", t.get("effect") or ""
        )
        for t in stored
    )


def _without_empty(**parts: str) -> dict[str, str]:
    return {key: value for key, value in parts.items() if value}
