"""What all writing shares: the work at hand, its counts, and statements over many rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from sizing.inventory.document import Document
from sizing.inventory.stored import Stored

T = TypeVar("T")
_ROWS = 2000
_IDS = 500


@dataclass(slots=True)
class Changes:
    """Numbers of objects by kind, as in nodes, gpus, variants."""

    created: Counter[str] = field(default_factory=Counter)
    updated: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)

    def note(self, kind: str, *, created: int = 0, updated: int = 0, removed: int = 0, of: int = 0) -> None:
        """Count what happened to the `of` objects of a kind in the file, and what was removed beside them."""
        self.created[kind] += created
        self.updated[kind] += updated
        self.removed[kind] += removed
        self.unchanged[kind] += max(of - created - updated, 0)


@dataclass(slots=True)
class Work:
    """A file to apply, what is stored, and what has been done so far."""

    file: Document
    stored: Stored
    replace: bool
    changes: Changes = field(default_factory=Changes)

    @property
    def old(self) -> Document:
        return self.stored.document


def insert(table: type[Model], rows: Sequence[Any]) -> None:
    """Insert rows; each gets its id."""
    if rows:
        table._default_manager.bulk_create(rows, batch_size=_ROWS)


def overwrite(table: type[Model], rows: Sequence[Any], keep: tuple[str, ...] = ()) -> None:
    """Overwrite rows that exist, by id, in every column but those to keep."""
    if rows:
        columns = [f.name for f in table._meta.concrete_fields if not f.primary_key and f.name not in keep]
        # One upsert for many rows; bulk_update would be a long CASE for each column.
        table._default_manager.bulk_create(
            rows, batch_size=_ROWS, update_conflicts=True, unique_fields=["id"], update_fields=columns
        )


def delete(rows: QuerySet[Any], column: str, ids: Sequence[int]) -> None:
    """Delete the rows whose column is one of the ids."""
    for batch in batches(ids):
        rows.filter(**{f"{column}__in": batch}).delete()


def batches(ids: Sequence[T]) -> Iterator[Sequence[T]]:
    """Parts that fit into one statement."""
    return (ids[i : i + _IDS] for i in range(0, len(ids), _IDS))


def columns(entry: Any, *but: str) -> dict[str, Any]:
    """The values of an entry by name, without `at` and some others."""
    return {name: getattr(entry, name) for name in entry.__slots__ if name != "at" and name not in but}
