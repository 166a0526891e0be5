"""A listing in parts, one of each kind, and what an event changes of a part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from sizing.inventory.kubernetes import objects
from sizing.inventory.kubernetes.facts import Listing

_TABLES = tuple(field.name for field in fields(Listing) if field.default_factory is dict)


def change(part: Listing, item: Mapping[str, Any], facts: Listing) -> bool:
    """Take an object that came or changed, and what it says (`facts`); whether that is news.

    Objects change all the time in what does not matter here, as in the times of their heartbeats.
    """
    if all(skipped in part.skipped for skipped in facts.skipped) and all(
        getattr(part, table).get(key) == value
        for table in _TABLES
        for key, value in getattr(facts, table).items()
    ):
        return False
    objects.replace(part, item)
    return True


def drop(part: Listing, item: Mapping[str, Any], facts: Listing) -> bool:
    """Take away an object that is gone; whether it was there."""
    known = any(skipped in part.skipped for skipped in facts.skipped) or any(
        key in getattr(part, table) for table in _TABLES for key in getattr(facts, table)
    )
    objects.remove(part, item)
    return known


def merged(parts: Iterable[Listing], warnings: Iterable[str]) -> Listing:
    """All parts as one finished listing. The facts are shared, the tables are not."""
    whole = Listing(warnings=list(warnings))
    for part in parts:
        for table in _TABLES:
            getattr(whole, table).update(getattr(part, table))
        whole.kinds |= part.kinds
        whole.other.update(part.other)
        whole.skipped.extend(part.skipped)
        whole.warnings.extend(part.warnings)
        whole.duplicates += part.duplicates
    objects.finish(whole)
    return whole
