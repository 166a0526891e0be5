"""Writes of single objects, each in one transaction: all of it, or nothing and a `DeskError`.

Fields come in the words of the inventory file, other objects by name, with their shape checked; those left
out keep what they are. What needs a look at other rows is checked here, under the lock of all writers.
"""

from collections.abc import Callable

from django.db.models import Model

from sizing.models import BenchProfile, Measurement, Node, Replica, ServedModel, Target, Variant, history
from sizing.models.history import By
from sizing.services.editing.catalog import (
    save_measurement,
    save_model,
    save_profile,
    save_target,
    save_variant,
)
from sizing.services.editing.fleet import save_node, save_replica
from sizing.services.editing.looks import look, looks_different
from sizing.services.editing.parts import parts_different, parts_of, removals
from sizing.services.editing.rows import Given, delete, row_of, writing

__all__ = [
    "remove",
    "save",
    "save_measurement",
    "save_model",
    "save_node",
    "save_profile",
    "save_replica",
    "save_target",
    "save_variant",
]

_SAVE: dict[type[Model], Callable[[Given, int | None], int]] = {
    BenchProfile: save_profile,
    Measurement: save_measurement,
    Node: save_node,
    Replica: save_replica,
    ServedModel: save_model,
    Target: save_target,
    Variant: save_variant,
}


def save(table: type[Model], given: Given, pk: int | None = None, *, by: By) -> int:
    """Make an object of a table, or change the one of this id, and tell the history. Gives the id."""
    with writing():
        stored = None if pk is None else row_of(table, pk)
        before = None if stored is None else look(stored)
        parts = [] if stored is None else parts_of(stored)
        done = _SAVE[table](given, pk)
        row = row_of(table, done)
        if before is None:
            own = history.added(row)
        elif different := looks_different(before, look(row)):
            own = history.changed(row, *different)
        else:
            return done
        history.write(by, history.with_parts(own, parts_different(parts, parts_of(row))))
        return done


def remove(table: type[Model], pk: int, *, by: By) -> None:
    """Remove an object with its parts, and tell the history. A `conflict` names what still holds it."""
    with writing():
        row = row_of(table, pk)
        gone = removals([row])
        delete(row)
        history.write(by, gone)
