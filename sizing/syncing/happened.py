"""What bringing in a cluster changed, object by object, for the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.db.models import Model

from sizing.inventory.document import Document
from sizing.inventory.stored import Stored
from sizing.models import Gpu, Node, Replica, ServedModel, Variant
from sizing.models.history import MOST, Event
from sizing.syncing.comparing import Difference

Part = tuple[str, Any]
"""A node and the index of a GPU of it, or a model and a variant of it."""


class Happened:
    """To be made before anything is written, for what is gone then has its id no more."""

    def __init__(self, difference: Difference, stored: Stored, brought: Document) -> None:
        self._kinds = (
            (Node, difference.nodes, stored.node_ids),
            (Replica, difference.replicas, stored.replica_ids),
            (ServedModel, difference.models, stored.model_ids),
        )
        self._few = sum(len(k.added) + len(k.gone) + len(k.changed) + len(k.moved) for _, k, _ in self._kinds)
        self._gone = [
            _event(table, ids, name, DELETION)
            for table, kind, ids in self._kinds
            if self._few <= MOST
            for name in kind.gone
        ]
        self._parts: list[_Parts] = []
        if self._few <= MOST:
            nodes, models = stored.document.nodes, stored.document.models
            gpus = _Parts(Gpu, " GPU ", stored.gpu_ids)
            for name, node in brought.nodes.items():
                gpus.compare(name, (nodes[name].gpus if name in nodes else None) or {}, node.gpus)
            for name in difference.nodes.gone:
                gpus.compare(name, nodes[name].gpus or {}, {})
            variants = _Parts(Variant, " · ", stored.variant_ids)
            for name, model in brought.models.items():
                known = (models[name].variants if name in models else None) or {}
                variants.compare(name, known, model.variants)
            for name in difference.models.gone:
                variants.compare(name, models[name].variants or {}, {})
            self._parts = [gpus, variants]

    def events(self) -> list[Event]:
        """To be asked once all is written; none where there are too many to be told one by one.

        GPUs and variants are told too, unless it is they who would be too many.
        """
        if self._few > MOST:
            return []
        found = []
        for table, kind, ids in self._kinds:
            found += [_event(table, ids, name, ADDITION) for name in kind.added]
            for name in (*kind.moved, *kind.changed):
                found.append(_event(table, ids, name, CHANGE, kind.details.get(name, ())))
        found += self._gone
        parts = [event for kind in self._parts for event in kind.events()]
        return [*found, *parts] if len(found) + len(parts) <= MOST else found


class _Parts:
    """What happens to the parts of objects of one kind."""

    def __init__(self, table: type[Model], between: str, ids: Mapping[Any, int]) -> None:
        self._table, self._between, self._ids = table, between, ids
        self._there: dict[Part, int] = {}
        self._happened: list[tuple[Part, int, list[str]]] = []

    def compare(self, owner: str, before: Mapping[Any, Any], after: Mapping[Any, Any] | None) -> None:
        """Take note of how the parts of one object differ; without a word of them they stay."""
        if after is None or before == after:
            return
        for key in [*after, *(before.keys() - after.keys())]:
            part = (owner, key)
            if key not in before:
                self._happened.append((part, ADDITION, []))
            elif key not in after:
                self._there[part] = self._ids[part]
                self._happened.append((part, DELETION, []))
            elif what := _different(before[key], after[key]):
                self._happened.append((part, CHANGE, what))

    def events(self) -> list[Event]:
        """The events, with the ids of what was written since."""
        return [
            Event(
                self._table,
                self._there.get(part) or self._ids.get(part),
                f"{part[0]}{self._between}{part[1]}",
                flag,
                tuple(what),
            )
            for part, flag, what in self._happened
        ]


def _different(before: Any, after: Any) -> list[str]:
    found = []
    for field in fields(before):
        old, new = getattr(before, field.name), getattr(after, field.name)
        if field.compare and old != new:
            found += _different(old, new) if is_dataclass(old) else [field.name.replace("_", " ")]
    return found


def _event(
    table: type[Model], ids: Mapping[str, int], name: str, flag: int, what: list[str] | tuple[str, ...] = ()
) -> Event:
    return Event(table, ids.get(name), name, flag, tuple(what))
