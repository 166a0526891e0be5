"""Fields of objects as plain values, whatever they are in the file: missing, null or of a wrong type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from sys import intern
from typing import Any

from sizing.domain.specs import Taint, Toleration
from sizing.inventory.scheduling import EFFECTS, key_problem
from sizing.inventory.words import quoted

_LONGEST_NAME = 253
_LONGEST_LABEL = 255
_LONGEST_TEXT = 8192
_SHARED = 64
# NUL and lone surrogates, which no database keeps.
_UNKEPT = re.compile("[\x00\ud800-\udfff]")
_NONE: Mapping[str, Any] = {}


class NotTakenError(ValueError):
    """An object that cannot be taken; the message is the reason."""


def mapping(value: Any) -> Mapping[str, Any]:
    """The mapping, or an empty one."""
    return value if isinstance(value, dict) else _NONE


def mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    """The mappings of a list; whatever else stands in it is passed over."""
    if isinstance(value, list):
        for each in value:
            if isinstance(each, dict):
                yield each


def text(value: Any, longest: int = _LONGEST_TEXT) -> str:
    """A text that can be stored; numbers and booleans as Kubernetes writes them, all else empty."""
    if isinstance(value, str):
        found = value
    elif isinstance(value, bool):
        return "true" if value else "false"
    elif isinstance(value, int | float | Decimal):
        found = str(value)
    else:
        return ""
    found = found[:longest]
    if not found.isprintable():
        found = _UNKEPT.sub("\ufffd", found)
    return intern(found) if len(found) <= _SHARED else found


def line(value: Any, longest: int = _LONGEST_NAME) -> str:
    """A text of one line; empty where it has control characters."""
    if type(value) is str and len(value) <= longest and value.isprintable():
        return intern(value)
    found = text(value, longest)
    return found if found.isprintable() else ""


def name(value: Any, what: str = "its name") -> str:
    """A name of an object; raises `NotTakenError` for what cannot be one.

    No `/` and `%`, no `.` and `..`, as for every object of Kubernetes
    (https://kubernetes.io/docs/concepts/overview/working-with-objects/names/).
    """
    if value is None or value == "":
        raise NotTakenError(f"{what} is missing")
    if not isinstance(value, str):
        raise NotTakenError(f"{what} is no text")
    if len(value) > _LONGEST_NAME:
        raise NotTakenError(f"{what} has more than {_LONGEST_NAME} characters")
    if not value.isprintable() or " " in value or "/" in value or "%" in value or value in (".", ".."):
        raise NotTakenError(f"{what} {quoted(value)} cannot be one")
    return value


def labels(value: Any, prefixes: tuple[str, ...] = ("",)) -> dict[str, str]:
    """Labels or a selector. Null is an empty value; keys and values that cannot be kept are left out."""
    found = {}
    for key, told in mapping(value).items():
        if key.startswith(prefixes):
            kept = _key(key)
            told = _label(told if isinstance(told, str) else text(told))
            if kept is not None and told is not None:
                found[kept] = told
    return found


def kept_annotations(value: Any, prefixes: tuple[str, ...]) -> dict[str, str]:
    """Annotations with these prefixes; their values may be long and have several lines."""
    return {
        intern(key): text(told, 1_000_000)
        for key, told in mapping(value).items()
        if key.startswith(prefixes) and _label(key) is not None
    }


@lru_cache(maxsize=50_000)
def _label(told: str) -> str | None:
    """The text, the same object for the same text; None where it cannot be a label's."""
    return told if len(told) <= _LONGEST_LABEL and told.isprintable() else None


@lru_cache(maxsize=50_000)
def _key(told: str) -> str | None:
    """The key of a label or taint, the same object for the same text; None where it cannot be one."""
    return told if len(told) <= _LONGEST_LABEL and key_problem(told) is None else None


def whole(value: Any) -> int | None:
    """A whole number, also one written as a text; None for all else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.isascii() and value.lstrip("-").isdecimal() and len(value) < 20:
        return int(value)
    return value if isinstance(value, int) and abs(value) < 2**63 else None


def moment(value: Any) -> datetime | None:
    """A time with its zone (UTC where it has none); None where it is none."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def taints(value: Any) -> tuple[Taint, ...]:
    """Taints. Such without a right key or effect do nothing, and of two with both alike the first counts."""
    found: dict[tuple[str, str], Taint] = {}
    for each in mappings(value):
        key, effect = line(each.get("key")), line(each.get("effect"))
        if _key(key) is not None and effect in EFFECTS:
            found.setdefault((key, effect), Taint(key, line(each.get("value"), _LONGEST_LABEL), effect))
    return tuple(found.values())


def tolerations(value: Any) -> tuple[Toleration, ...]:
    """Tolerations as the scheduler takes them: without a key only `Exists` tolerates anything.

    Those that compare numbers (`Lt`, `Gt`, alpha in Kubernetes 1.35) are left out, so that they tolerate
    nothing here.
    """
    found = []
    for each in mappings(value):
        key, operator = line(each.get("key")), line(each.get("operator")) or "Equal"
        effect, told = line(each.get("effect")), line(each.get("value"), _LONGEST_LABEL)
        right = _key(key) is not None if key else operator == "Exists"
        if right and operator in ("Equal", "Exists") and effect in ("", *EFFECTS):
            found.append(Toleration(key, operator, told if operator == "Equal" else "", effect))
    return tuple(found)


def expressions(value: Any) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Requirements of a selector: key, operator, values."""
    return tuple(
        (line(each.get("key")), line(each.get("operator")), tuple(line(told) for told in _list(each)))
        for each in mappings(value)
    )


def _list(expression: Mapping[str, Any]) -> list[Any]:
    values = expression.get("values")
    return values if isinstance(values, list) else []


def condition(status: Mapping[str, Any], kind: str) -> str:
    """The status of a condition: True, False or Unknown; empty where it is not told."""
    for each in mappings(status.get("conditions")):
        if each.get("type") == kind:
            told = text(each.get("status")).capitalize()
            return told if told in ("True", "False") else "Unknown"
    return ""


def controller(metadata: Mapping[str, Any]) -> tuple[str, str] | None:
    """Kind and name of the owner that controls the object, or of the first one."""
    owners = list(mappings(metadata.get("ownerReferences")))
    for each in sorted(owners, key=lambda owner: owner.get("controller") is not True):
        kind, owner = line(each.get("kind")), line(each.get("name"))
        if kind and owner:
            return kind, owner
    return None
