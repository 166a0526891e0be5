"""The life of a refresh: queued, running, then done, failed or cancelled.

The row is the truth, a message only wakes. Every step is one conditional statement that names the attempt
which it belongs to, so that two workers, a lost worker that comes back or a late message cannot bring a
row into a wrong state. A running refresh holds the nodes of its replica, each for itself alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from sizing import log_context
from sizing.measuring import pools
from sizing.models import MeasuredNode, Node, Refresh, Replica, Variant
from sizing.models.clock import read_shared_now, shared_now

log = logging.getLogger(__name__)

MOST_ATTEMPTS = 3
LOST = "its worker was lost; waits for another one"
MOST_LOST_AT_ONCE = 100
"""More are healed by the next sweep."""

MOST_LOOKED_AT = 200

State = Refresh.State


def lease() -> timedelta:
    """A running refresh without a heartbeat for this long has lost its worker."""
    return timedelta(seconds=settings.REFRESH_LEASE_S)


@dataclass(frozen=True, slots=True)
class Claim:
    """A refresh in the hands of one worker: this attempt of it, on this replica."""

    pk: int
    attempt: int
    replica: Replica
    request_id: str = ""


class Busy(Exception):  # noqa: N818  it reads as what it says
    """Every replica that may be measured is on a node where another measurement runs."""


class Elsewhere(Exception):  # noqa: N818  it reads as what it says
    """No replica that may be measured is in a pool that this worker is for."""


def benchable(variant: Variant) -> QuerySet[Replica]:
    """The replicas of a variant that may be measured: marked, ready, and with an endpoint; by name."""
    return Replica.to_measure().filter(variant=variant).order_by("name")


@dataclass(frozen=True, slots=True)
class Measurable:
    """Names of a variant's replicas that may be measured, and what to mend where there is none."""

    replicas: tuple[str, ...]
    why_not: str


def measurable(variants: Sequence[Variant]) -> dict[int, Measurable]:
    """For each variant (with its model), by its key. One query."""
    found: dict[int, list[Replica]] = {variant.pk: [] for variant in variants}
    columns = ("name", "variant", "benchable", "state", "endpoint")
    for replica in Replica.objects.filter(variant__in=found).order_by("name").only(*columns):
        found[replica.variant_id].append(replica)
    return {variant.pk: _measurable(variant, found[variant.pk]) for variant in variants}


def _measurable(variant: Variant, replicas: Sequence[Replica]) -> Measurable:
    name = f"{variant.model.name} ({variant.name})"
    marked = [replica for replica in replicas if replica.benchable]
    ready = [replica for replica in marked if replica.state == Replica.State.READY]
    reachable = tuple(replica.name for replica in ready if replica.endpoint)
    if reachable:
        return Measurable(reachable, "")
    if not replicas:
        return Measurable((), f"{name} has no replica to measure")
    if not marked:
        return Measurable((), f"no replica of {name} is marked benchable")
    if not ready:
        return Measurable((), f"no benchable replica of {name} is ready")
    return Measurable((), f"no benchable replica of {name} has an endpoint")


def claim(pk: int) -> Claim | None:
    """Take a queued refresh for this worker, with a replica whose nodes are free.

    None where somebody else has it, it is over, or it has to wait for a node: then its message says so.
    A refresh that has no replica to measure fails, with the reason.
    """
    try:
        with transaction.atomic():
            now = timezone.now()
            taken = Refresh.objects.filter(pk=pk, state=State.QUEUED, cancel_requested=False).update(
                state=State.RUNNING,
                attempts=F("attempts") + 1,
                started_at=now,
                heartbeat_at=shared_now(),
                progress=0,
                message="",
                live={},
                error="",
            )
            if not taken:
                return None
            row = Refresh.objects.select_related("variant__model", "replica").get(pk=pk)
            row.levels.all().delete()  # of an attempt that was lost
            replica = _take_replica(row)
            if replica is None:
                reason = measurable([row.variant])[row.variant_id].why_not
                if row.replica is not None:
                    reason = f"{row.replica.name} is not to be measured: {why_not(row.replica)}"
                _end(Refresh.objects.filter(pk=pk), State.FAILED, error=reason)
                return None
            return Claim(pk, row.attempts, replica, row.request_id)
    except Busy as busy:
        Refresh.objects.filter(pk=pk, state=State.QUEUED).update(message=str(busy)[:255])
    except Elsewhere:
        pass  # a message in the wrong place; the row stays as it is
    except IntegrityError:  # another worker took the node in this moment
        Refresh.objects.filter(pk=pk, state=State.QUEUED).update(message="waits for a node")
    return None


def _take_replica(row: Refresh) -> Replica | None:
    """A replica whose nodes nobody measures, its nodes held; None: there is none at all. Busy: wait.

    Elsewhere: there are some, and none is for this worker.
    """
    candidates = benchable(row.variant)
    if row.replica_id is not None:
        candidates = candidates.filter(pk=row.replica_id)
    there_are = list(candidates)
    pool = pools.pools_of(there_are)
    found = [replica for replica in there_are if pools.takes(pool[replica.pk])]
    if there_are and not found:
        raise Elsewhere
    for replica in found:
        nodes = Node.objects.filter(gpus__placements__replica=replica).distinct()
        if nodes.filter(measured_by__isnull=False).exists():
            continue
        MeasuredNode.objects.bulk_create(MeasuredNode(node=node, refresh=row) for node in nodes)
        Refresh.objects.filter(pk=row.pk).update(replica=replica)
        return replica
    if found:
        raise Busy(f"waits: {_who_measures(found)}")
    return None


def _who_measures(replicas: Iterable[Replica]) -> str:
    held = MeasuredNode.objects.filter(node__gpus__placements__replica__in=list(replicas))
    first = held.select_related("node").order_by("node__name").first()
    return f"refresh {first.refresh_id} measures on {first.node.name}" if first else "its nodes are measured"


def why_not(replica: Replica) -> str:
    """Why a replica may not be measured, in a few words."""
    if not replica.benchable:
        return "it is not marked benchable"
    return "it has no endpoint" if not replica.endpoint else f"it is {replica.state}"


def still_benchable(claim: Claim) -> bool:
    """Whether the replica may go on being measured: marked, ready, and at the same endpoint."""
    return Replica.to_measure().filter(pk=claim.replica.pk, endpoint=claim.replica.endpoint).exists()


def _running(claim: Claim) -> QuerySet[Refresh]:
    return Refresh.objects.filter(pk=claim.pk, attempts=claim.attempt, state=State.RUNNING)


def heartbeat(claim: Claim, progress: int, message: str = "", live: Mapping[str, Any] | None = None) -> bool:
    """Record progress (percent) and life at once; False where the work must stop: cancelled or lost."""
    return bool(
        _running(claim)
        .filter(cancel_requested=False)
        .update(heartbeat_at=shared_now(), progress=progress, message=message[:255], live=dict(live or {}))
    )


def finish(claim: Claim, message: str = "") -> bool:
    """Running to done; False where it was cancelled or lost before."""
    return _end(
        _running(claim).filter(cancel_requested=False), State.DONE, progress=100, message=message[:255]
    )


def fail(claim: Claim, error: str) -> bool:
    """Running to failed, with the reason in one line."""
    return _end(_running(claim), State.FAILED, error=error)


def stopped(claim: Claim) -> bool:
    """Running to cancelled, by the worker that saw the wish."""
    return _end(_running(claim).filter(cancel_requested=True), State.CANCELLED)


def cancel(pk: int) -> bool:
    """Ask for the end: a queued refresh ends at once, a running one within a second.

    False where it is over already.
    """
    if _end(Refresh.objects.filter(pk=pk, state=State.QUEUED), State.CANCELLED, cancel_requested=True):
        return True
    return bool(Refresh.objects.filter(pk=pk, state=State.RUNNING).update(cancel_requested=True))


def _end(rows: QuerySet[Refresh], state: str, **fields: Any) -> bool:
    """Bring rows to an end and let go of their nodes; whether there were any."""
    with transaction.atomic():
        pks = list(rows.values_list("pk", flat=True))
        ended = rows.filter(pk__in=pks).update(state=state, live={}, finished_at=timezone.now(), **fields)
        if ended:
            MeasuredNode.objects.filter(refresh_id__in=pks).exclude(
                refresh__state__in=Refresh.ACTIVE
            ).delete()
    return bool(ended)


def second_look_after_s() -> float:
    """In so many seconds a worker that lives has told so, also one that had to wait for the database."""
    return min(10.0, settings.REFRESH_LEASE_S / 3)


def sweep(now: datetime | None = None, *, look_again_after_s: float = 0.0) -> int:
    """Heal refreshes whose worker is lost; the number of rows that changed.

    Cancelled ones end, those with attempts left are queued again, the others fail; so does what a command
    measured, since nobody waits for it any more.

    look_again_after_s: after a database was away, or a clock was set, all workers look lost at first; those
    that give a sign of life in this time are not. Where SQLite's lock was not to be had for as long, workers
    could tell nothing either, and the next sweep looks.
    """
    now = now or read_shared_now()
    silent = _silent(now)
    if silent and look_again_after_s:
        time.sleep(look_again_after_s)
    same = Q(pk__in=[])
    for pk, beat in silent:
        same |= Q(pk=pk, heartbeat_at=beat)
    lost = Refresh.objects.filter(same, state=State.RUNNING)
    if silent:
        _log_lost(lost)
    began = time.monotonic()
    with transaction.atomic():
        if time.monotonic() - began > look_again_after_s > 0:
            return 0
        ended = lost.filter(cancel_requested=True).update(state=State.CANCELLED, finished_at=now, live={})
        failed = lost.filter(attempts__gte=MOST_ATTEMPTS).update(
            state=State.FAILED,
            finished_at=now,
            live={},
            error=f"the worker was lost {MOST_ATTEMPTS} times",
        )
        of_command = lost.filter(trigger=Refresh.Trigger.COMMAND)
        failed += of_command.update(
            state=State.FAILED, finished_at=now, live={}, error="the command that measured is gone"
        )
        requeued = lost.update(
            state=State.QUEUED, heartbeat_at=None, started_at=None, live={}, progress=0, message=LOST
        )
        if ended + failed + requeued:
            MeasuredNode.objects.exclude(refresh__state=State.RUNNING).delete()
    return ended + failed + requeued


def _log_lost(lost: QuerySet[Refresh]) -> None:
    for pk, attempt, request_id in lost.values_list("pk", "attempts", "request_id"):
        with log_context.telling(refresh=pk, request_id=request_id):
            log.warning("refresh %s has lost its worker in attempt %s", pk, attempt)


def _silent(now: datetime) -> list[tuple[int, datetime]]:
    """Running refreshes without a sign of life within a lease of now, and their last one.

    A sign of life from the future was given before a clock was set back.
    """
    near = Q(heartbeat_at__range=(now - lease(), now + lease()))
    silent = Refresh.objects.filter(state=State.RUNNING).exclude(near).order_by("heartbeat_at")
    found = silent.values_list("pk", "heartbeat_at")[:MOST_LOST_AT_ONCE]
    return [(pk, beat) for pk, beat in found if beat is not None]


def _queued() -> QuerySet[Refresh]:
    """Those that a worker may take, the oldest first."""
    return Refresh.objects.filter(state=State.QUEUED, cancel_requested=False).order_by("queued_at", "pk")


def waiting() -> list[int]:
    """Queued refreshes, the oldest first: what a sweep wakes."""
    return list(_queued().values_list("pk", flat=True))


def unserved_queues(served: Collection[str]) -> set[str]:
    """The queues of the oldest queued refreshes that no worker may take which serves one of these queues."""
    if not settings.POOL_LABEL:
        return set()
    wanted = pools.pools_of_refreshes(_queued()[:MOST_LOOKED_AT])
    queues = ({pools.queue_of(pool) for pool in found or {""}} for found in wanted.values())
    return {queue for of in queues if not of & set(served) for queue in of}


def queues_to_wake(pk: int) -> list[str]:
    """The queues of the workers that may take a queued refresh.

    A pool's queue is left out while nobody takes messages of it, so that none pile up there; the row says
    which pools' workers it waits for where that leaves none.
    """
    if not settings.POOL_LABEL:
        return [pools.QUEUE]
    row = Refresh.objects.filter(pk=pk, state=State.QUEUED).first()
    if row is None:
        return []
    wanted = pools.pools_of_refreshes([row])[pk] or {""}  # whoever takes it says what it lacks
    served = pools.served_now() | {pools.QUEUE}
    queues = sorted({pools.queue_of(pool) for pool in wanted} & served)
    if not queues:
        missing = " or ".join(f"{pool} (queue {pools.queue_of(pool)})" for pool in sorted(wanted))
        message = f"waits: no worker of the pool {missing} gives a sign of life"
        Refresh.objects.filter(pk=pk, state=State.QUEUED).update(message=message[:255])
    return queues
