"""What holds an object, so that it cannot be removed: nothing goes silently with something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Model, QuerySet

from sizing.models import BenchProfile, Gpu, Measurement, Node, Replica, ServedModel, Target, Variant

MOST_NAMES = 5

_NAMED: dict[type[Model], tuple[str, Callable[[Any], str]]] = {
    Replica: ("replica", lambda row: row.name),
    Measurement: ("measurement", lambda row: f"{row.pk} of {row.variant.model.name} {row.variant.name}"),
    Target: ("target", lambda row: f"{row.pk} of {row.model.name}"),
    ServedModel: ("model", lambda row: row.name),
}
_TOLD_WITH = {Measurement: "variant__model", Target: "model"}


def holders_of(row: Model) -> str:
    """Who holds a row, by kind, up to five names of each and then a number; empty where nobody does.

    A model goes with its variants, measurements and targets unless replicas run; runs that measured go too.
    """
    match row:
        case Variant():
            return told(row.replicas.all(), row.measurements.order_by("pk"), row.targets.order_by("pk"))
        case BenchProfile():
            return told(row.measurements.order_by("pk"), row.targets.order_by("pk"), row.default_of.all())
        case ServedModel():
            return told(Replica.objects.filter(variant__model=row))
        case Node():
            return told(Replica.objects.filter(placements__gpu__node=row).distinct())
        case Gpu():
            return told(Replica.objects.filter(placements__gpu=row))
    return ""


def told(*kinds: QuerySet[Any]) -> str:
    """The rows in words: `the replicas a, b and the target 3 of llama`."""
    *others, last = [words for rows in kinds if (words := _told_kind(rows))] or [""]
    return f"{', '.join(others)} and {last}" if others else last


def _told_kind(rows: QuerySet[Any]) -> str:
    number = rows.count()
    if not number:
        return ""
    kind, name = _NAMED[rows.model]
    related = _TOLD_WITH.get(rows.model)
    first = (rows.select_related(related) if related else rows)[:MOST_NAMES]
    more = f" and {number - MOST_NAMES} more" if number > MOST_NAMES else ""
    return f"the {kind}{'s' if number > 1 else ''} {', '.join(map(name, first))}{more}"
