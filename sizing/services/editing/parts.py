"""What is written or removed together with an object, for the history to tell of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.db.models import Model

from sizing.models import (
    BenchImport,
    BenchProfile,
    Gpu,
    Measurement,
    Node,
    Refresh,
    ServedModel,
    Target,
    Variant,
    history,
)
from sizing.models.history import MOST, Event


def parts_of(row: Model) -> list[Model]:
    """What is given as part of an object and has a history of its own: a node's GPUs, a model's variants."""
    match row:
        case Node():
            return list(Gpu.objects.filter(node=row).select_related("node").order_by("index"))
        case ServedModel():
            return list(Variant.objects.filter(model=row).select_related("model").order_by("position", "id"))
    return []


def parts_different(before: Iterable[Model], after: Iterable[Model]) -> list[Event]:
    """What happened to the parts of one object between two looks at them."""
    there = {part.pk: part for part in before}
    now = {part.pk: part for part in after}
    events = [history.removed(part) for pk, part in there.items() if pk not in now]
    for pk, part in now.items():
        if pk not in there:
            events.append(history.added(part))
        elif names := [name for name, value in _values(part).items() if _values(there[pk])[name] != value]:
            events.append(history.changed(part, *(name.replace("_", " ") for name in names)))
    return events


def removals(rows: Iterable[Model]) -> list[Event]:
    """The removal of objects and of what goes with them; to be asked before they go.

    Where that is too much to be told one by one, only of the objects themselves.
    """
    own, all_of_it = [], []
    for row in rows:
        event = history.removed(row)
        own.append(event)
        all_of_it += [event, *map(history.removed, _goes_with(row))]
    return all_of_it if len(all_of_it) <= MOST else own


def _goes_with(row: Model) -> list[Model]:
    match row:
        case ServedModel():
            measured = Measurement.objects.filter(variant__model=row)
            return [
                *parts_of(row),
                *measured.select_related("variant__model", "profile").order_by("pk"),
                *Target.objects.filter(model=row).select_related("model").order_by("pk"),
                *Refresh.objects.filter(variant__model=row).order_by("pk"),
                *BenchImport.objects.filter(variant__model=row).order_by("pk"),
            ]
        case Variant() | BenchProfile():
            return [*row.refreshes.order_by("pk"), *row.imports.order_by("pk")]
    return parts_of(row)


def _values(row: Model) -> Mapping[str, object]:
    return {field.name: getattr(row, field.attname) for field in row._meta.concrete_fields}
