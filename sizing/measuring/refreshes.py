"""The life of a refresh: queued, running, then done, failed or cancelled.

The row is the truth, a message only wakes. Every step is one conditional statement that names the attempt
which it belongs to, so that two workers, a lost worker that comes back or a late message cannot bring a
row into a wrong state. A running refresh holds the nodes of its replica, each for itself alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from sizing.models import MeasuredNode, Node, Refresh, Replica, Variant

MOST_ATTEMPTS = 3
LOST = "its worker was lost; waits for another one"

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


class Busy(Exception):  # noqa: N818  it reads as what it says
    """Every replica that may be measured is on a node where another measurement runs."""


def benchable(variant: Variant) -> QuerySet[Replica]:
    """The replicas of a variant that may be measured: marked, ready, and with an endpoint; by name."""
    marked = Replica.objects.filter(variant=variant, benchable=True, state=Replica.State.READY)
    return marked.exclude(endpoint="").order_by("name")


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
                heartbeat_at=now,
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
            return Claim(pk, row.attempts, replica)
    except Busy as busy:
        Refresh.objects.filter(pk=pk, state=State.QUEUED).update(message=str(busy)[:255])
    except IntegrityError:  # another worker took the node in this moment
        Refresh.objects.filter(pk=pk, state=State.QUEUED).update(message="waits for a node")
    return None


def _take_replica(row: Refresh) -> Replica | None:
    """A replica whose nodes nobody measures, its nodes held; None: there is none at all. Busy: wait."""
    candidates = benchable(row.variant)
    if row.replica_id is not None:
        candidates = candidates.filter(pk=row.replica_id)
    found = list(candidates)
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
    same = Replica.objects.filter(pk=claim.replica.pk, endpoint=claim.replica.endpoint)
    return same.filter(benchable=True, state=Replica.State.READY).exists()


def _running(claim: Claim) -> QuerySet[Refresh]:
    return Refresh.objects.filter(pk=claim.pk, attempts=claim.attempt, state=State.RUNNING)


def heartbeat(claim: Claim, progress: int, message: str = "", live: Mapping[str, Any] | None = None) -> bool:
    """Record progress (percent) and life at once; False where the work must stop: cancelled or lost."""
    return bool(
        _running(claim)
        .filter(cancel_requested=False)
        .update(heartbeat_at=timezone.now(), progress=progress, message=message[:255], live=dict(live or {}))
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


def sweep(now: datetime | None = None) -> int:
    """Heal refreshes whose worker is lost; the number of rows that changed.

    Cancelled ones end, those with attempts left are queued again, the others fail; so does what a command
    measured, since nobody waits for it any more.
    """
    now = now or timezone.now()
    lost = Refresh.objects.filter(state=State.RUNNING, heartbeat_at__lt=now - lease())
    with transaction.atomic():
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


def waiting() -> list[int]:
    """Queued refreshes, the oldest first: what a sweep wakes."""
    queued = Refresh.objects.filter(state=State.QUEUED, cancel_requested=False)
    return list(queued.order_by("queued_at", "pk").values_list("pk", flat=True))
