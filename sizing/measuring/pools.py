"""Pools of nodes: replicas that only workers near them reach, so that these alone measure them.

A pool is the value that a node has of the label `POOL_LABEL`. Each has a queue of its own; a worker that
takes messages of it measures the replicas of that pool. Which replicas a worker may take is looked up in the
rows when it claims, so that a message in another queue does nothing wrong.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta

from django.conf import settings

from sizing.models import Placement, Refresh, Replica, WorkerBeat
from sizing.models.clock import read_shared_now

QUEUE = "measuring"
"""Of replicas in no pool: their nodes lack the label, or are of several."""

SILENT_AFTER = timedelta(seconds=60)
"""A worker without a sign of life for this long is not waited for."""

_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,63}")

_served: frozenset[str] | None = None


def serve(queues: Iterable[str]) -> None:
    """From now on this process, and those that it makes, work for these queues alone."""
    global _served
    _served = frozenset(queues)


def takes(pool: str) -> bool:
    """Whether this process may measure replicas of a pool. One that is no worker may measure all."""
    return not settings.POOL_LABEL or _served is None or queue_of(pool) in _served


def queue_of(pool: str) -> str:
    """The queue of a pool: `measuring.eu-1a`. Of names that not every broker takes, it has a digest."""
    if not pool:
        return QUEUE
    if not _PLAIN.fullmatch(pool):
        pool = f"~{hashlib.sha256(pool.encode()).hexdigest()[:16]}"
    return f"{QUEUE}.{pool}"


def pools_of(replicas: Iterable[Replica]) -> dict[int, str]:
    """The pool of each replica, by its key; empty for none. One query, and none without pools."""
    found = {replica.pk: "" for replica in replicas}
    if not settings.POOL_LABEL or not found:
        return found
    of: dict[int, set[str]] = {}
    placed = Placement.objects.filter(replica__in=found).order_by()
    for pk, labels in placed.values_list("replica_id", "gpu__node__labels"):
        of.setdefault(pk, set()).add(str(labels.get(settings.POOL_LABEL) or ""))
    return found | {pk: pools.pop() for pk, pools in of.items() if len(pools) == 1}


def pools_of_refreshes(rows: Iterable[Refresh]) -> Mapping[int, set[str]]:
    """By a refresh's key: the pools of the replicas that it may measure. Two queries."""
    rows = list(rows)
    may = Replica.to_measure()
    replicas = list(may.filter(variant__in={row.variant_id for row in rows}))
    pool = pools_of(replicas)
    return {
        row.pk: {
            pool[one.pk]
            for one in replicas
            if one.variant_id == row.variant_id and row.replica_id in (None, one.pk)
        }
        for row in rows
    }


def served_now() -> frozenset[str]:
    """The queues of which a worker that lives takes messages. One query; one more on PostgreSQL."""
    lives = WorkerBeat.objects.filter(seen_at__gt=read_shared_now() - SILENT_AFTER)
    return frozenset(str(queue) for queues in lives.values_list("queues", flat=True) for queue in queues)
