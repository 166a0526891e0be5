"""The workers that give signs of life, and the queues that somebody has to serve."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings

from sizing.measuring import pools, refreshes
from sizing.measuring.pools import SILENT_AFTER
from sizing.models import WorkerBeat
from sizing.models.clock import read_shared_now


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker that has been here within the last day. `queues`: those that it takes messages of."""

    name: str
    queues: tuple[str, ...]
    silent_for: timedelta

    @property
    def lives(self) -> bool:
        """Whether it gave a sign of life lately."""
        return self.silent_for < SILENT_AFTER


def workers() -> list[Worker]:
    """All of them, by name. One query; one more on PostgreSQL, for its clock."""
    now = read_shared_now()
    rows = WorkerBeat.objects.order_by("name").values_list("name", "queues", "seen_at")
    return [Worker(name, tuple(map(str, queues)), now - seen_at) for name, queues, seen_at in rows]


def needed_queues() -> list[str]:
    """The queues without which part of the desk stands still."""
    return [
        "desk",
        *([] if settings.POOL_LABEL else [pools.QUEUE]),
        *(["sync"] if settings.KUBERNETES.on else []),
    ]


def serving(found: list[Worker]) -> dict[str, int]:
    """How many living workers serve each queue: all that are needed, and what else is served.

    Of pools' queues those are needed in which a refresh waits. With pools, two queries.
    """
    counts = dict.fromkeys(needed_queues(), 0)
    for worker in found:
        for queue in worker.queues if worker.lives else ():
            counts[queue] = counts.get(queue, 0) + 1
    served = {queue for queue, number in counts.items() if number}
    return counts | dict.fromkeys(refreshes.unserved_queues(served), 0)
