"""How an object looks before and after a write, for the history to name what changed of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Model

from sizing.models import Node, Replica, ServedModel

Look = Mapping[str, Any]
_UNTOLD = ("id", "node", "model", "position")
"""Columns of an object's parts that say only whose they are."""


def look(row: Model) -> Look:
    """The values of an object by the names of its fields, and of what is given as part of it."""
    values = {field.name: getattr(row, field.attname) for field in row._meta.concrete_fields}
    match row:
        case Node():
            values["gpus"] = {gpu.index: _columns(gpu) for gpu in row.gpus.all()}
        case ServedModel():
            values["variants"] = [_columns(variant) for variant in row.variants.order_by("position", "id")]
        case Replica():
            values["placement"] = sorted(row.placements.values_list("gpu_id", flat=True))
    return values


def looks_different(before: Look, after: Look) -> list[str]:
    """What differs of two looks at one object, in words."""
    return [name.replace("_", " ") for name in after if before[name] != after[name]]


def _columns(row: Model) -> Look:
    return {f.name: getattr(row, f.attname) for f in row._meta.concrete_fields if f.name not in _UNTOLD}
