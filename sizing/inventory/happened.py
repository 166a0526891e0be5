"""What a load changed, object by object, for the history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.db.models import Model

from sizing.inventory.differing import HAPPENED, Difference
from sizing.inventory.stored import Stored
from sizing.models import BenchProfile, Gpu, Measurement, Node, Replica, ServedModel, Target, Variant
from sizing.models.history import MOST, Event

_FLAGS = dict(zip(HAPPENED, (ADDITION, CHANGE, DELETION), strict=True))


def events(difference: Difference, stored: Stored) -> list[Event]:
    """The changes in the order of the file; none where they are too many to be told one by one.

    `stored`: the tables as they were read, with the ids of what was written since.
    """
    number = sum(len(names) for kinds in difference.happened.values() for names in kinds.values())
    if number > MOST:
        return []
    gone = dict(enumerate(stored.measurement_ids))
    tables: dict[str, tuple[type[Model], Mapping[Any, int]]] = {
        "nodes": (Node, stored.node_ids),
        "gpus": (Gpu, stored.gpu_ids),
        "profiles": (BenchProfile, stored.profile_ids),
        "models": (ServedModel, stored.model_ids),
        "variants": (Variant, stored.variant_ids),
        "measurements": (Measurement, gone | stored.new_measurement_ids),
        "replicas": (Replica, stored.replica_ids),
        "targets": (Target, stored.target_ids),
    }
    return [
        Event(table, ids.get(one.key), one.name, flag, tuple(one.what.split("; ")))
        for word, flag in _FLAGS.items()
        for kind, (table, ids) in tables.items()
        for one in difference.names(word, kind)
    ]
