"""What bringing in a cluster changed, object by object, for the history."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.db.models import Model

from sizing.inventory.stored import Stored
from sizing.models import Node, Replica, ServedModel
from sizing.models.history import MOST, Event
from sizing.syncing.comparing import Difference


class Happened:
    """To be made before anything is written, for what is gone then has its id no more."""

    def __init__(self, difference: Difference, stored: Stored) -> None:
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

    def events(self) -> list[Event]:
        """To be asked once all is written; none where there are too many to be told one by one."""
        if self._few > MOST:
            return []
        found = []
        for table, kind, ids in self._kinds:
            found += [_event(table, ids, name, ADDITION) for name in kind.added]
            for name in (*kind.moved, *kind.changed):
                found.append(_event(table, ids, name, CHANGE, kind.details.get(name, ())))
        return [*found, *self._gone]


def _event(
    table: type[Model], ids: Mapping[str, int], name: str, flag: int, what: list[str] | tuple[str, ...] = ()
) -> Event:
    return Event(table, ids.get(name), name, flag, tuple(what))
