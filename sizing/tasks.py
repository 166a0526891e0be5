"""Celery tasks: ids in, nothing out; the database row is the truth."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from celery import shared_task
from django.conf import settings
from django.db import DatabaseError
from kombu.exceptions import OperationalError

from sizing.measuring import engines, pools, refreshes, running, schedule, staleness
from sizing.measuring.importing import life as imports
from sizing.models import InventoryChange, retention, sign_in
from sizing.models.answer_retention import drop_old_answers
from sizing.syncing import importing as cluster_imports
from sizing.syncing import state as sync_state

log = logging.getLogger(__name__)

ONCE_MORE = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}
"""That a connection broke while nobody used it is noticed by the first message after."""

LOOK_WORTH = timedelta(seconds=590)
"""The schedule asks anew then."""

SYNC_LIMIT_S = 900
"""A run of the sync ends by itself long before."""


@shared_task(name="sizing.tasks.run_refresh", ignore_result=True)
def run_refresh(pk: int) -> None:
    """Take the measurement of a queued refresh; nothing where another worker has it."""
    if running.run(pk):
        for waiting in refreshes.waiting():  # its nodes are free now
            wake(waiting)


def wake(pk: int) -> None:
    """Tell the workers that may take a queued refresh. Where the broker is away, the next sweep does it."""
    try:
        queues = refreshes.queues_to_wake(pk)
    except DatabaseError as error:  # who asked has an answer all the same
        log.warning("refresh %s is queued, but the database is away: %s", pk, " ".join(str(error).split()))
        return
    for queue in queues:
        _send(run_refresh, pk, refreshes.lease() * 2, f"refresh {pk} is queued", queue)


def _send(task: Any, about: int | str, worth: timedelta, what: str, queue: str | None = None) -> None:
    """Send a message that is worth nothing after some time, by whichever host's clock.

    queue: left out, the one that the task has of its own.
    """
    expires = worth.total_seconds() + settings.CLOCKS_DIFFER_S
    try:
        task.apply_async((about,), retry_policy=ONCE_MORE, expires=expires, queue=queue)
    except (OperationalError, OSError) as error:
        log.warning("%s, but the broker is away: %s", what, " ".join(str(error).split()))


@shared_task(name="sizing.tasks.read_import", ignore_result=True)
def read_import(pk: int) -> None:
    """Read the files of a queued import; nothing where another worker has it."""
    imports.run(pk)


def wake_for_import(pk: int) -> None:
    """Tell a worker of a queued import. Where the broker is away, the next sweep does it."""
    _send(read_import, pk, imports.LEASE, f"import {pk} is queued")


@shared_task(name="sizing.tasks.read_cluster_list", ignore_result=True)
def read_cluster_list(pk: int) -> None:
    """Read a queued list of the cluster; nothing where another worker has it."""
    cluster_imports.read(pk)


@shared_task(name="sizing.tasks.import_cluster_list", ignore_result=True)
def import_cluster_list(pk: int) -> None:
    """Import a list of the cluster that waits for it; nothing where another worker has it."""
    cluster_imports.bring(pk)


def wake_for_list(pk: int, task: Any = read_cluster_list) -> None:
    """Tell a worker of a list to be read. Where the broker is away, the next sweep does it."""
    _send(task, pk, cluster_imports.LEASE, f"cluster import {pk} waits")


def wake_to_import(pk: int) -> None:
    """Tell a worker of a list to be imported. Where the broker is away, the next sweep does it."""
    wake_for_list(pk, import_cluster_list)


@shared_task(name="sizing.tasks.sweep_refreshes", ignore_result=True)
def sweep_refreshes() -> None:
    """Heal refreshes and imports whose worker is lost, wake the queued ones, and clear away what is old."""
    healed = refreshes.sweep(look_again_after_s=refreshes.second_look_after_s())
    pruned = InventoryChange.prune()
    dropped = retention.drop_old() + drop_old_answers()
    sign_in.forget_old()
    for pk in refreshes.waiting():
        wake(pk)
    healed += imports.sweep()
    for pk in imports.waiting():
        wake_for_import(pk)
    healed += cluster_imports.sweep()
    to_read, to_import = cluster_imports.waiting()
    for pk in to_read:
        wake_for_list(pk)
    for pk in to_import:
        wake_to_import(pk)
    stale = sync_state.mark_stale()
    if stale:
        log.warning("the cluster was not seen for ten minutes; %s nodes are stale now", stale)
    if healed or pruned or dropped:
        log.info(
            "sweep: %s refreshes healed, %s log rows pruned, %s old objects dropped", healed, pruned, dropped
        )


@shared_task(
    name="sizing.tasks.sync_cluster",
    ignore_result=True,
    soft_time_limit=SYNC_LIMIT_S,
    time_limit=SYNC_LIMIT_S + 60,
)
def sync_cluster() -> None:
    """Follow the cluster for some minutes; nothing where another worker does."""
    from sizing.syncing import running as syncing  # here: the cluster's client takes half a second to load

    syncing.run()


@shared_task(name="sizing.tasks.request_due_refreshes", ignore_result=True)
def request_due_refreshes() -> None:
    """Queue what the schedule says is due."""
    for pk in schedule.request_due():
        wake(pk)


@shared_task(name="sizing.tasks.look_at_engines", ignore_result=True)
def look_at_engines() -> None:
    """Ask the replicas that may be measured what they run; those in a pool through its workers."""
    _look("")
    served = pools.served_now() if settings.POOL_LABEL else frozenset()
    for pool in sorted(engines.to_ask()) if served else ():
        if pool and pools.queue_of(pool) in served:
            what = f"the engines of the pool {pool} are to be looked at"
            _send(look_at_engines_of, pool, LOOK_WORTH, what, pools.queue_of(pool))


@shared_task(name="sizing.tasks.look_at_engines_of", ignore_result=True)
def look_at_engines_of(pool: str) -> None:
    """Ask the replicas of a pool what they run; nothing where this worker is not for it."""
    if pools.takes(pool):
        _look(pool)


def _look(pool: str) -> None:
    changed = engines.look(pool)
    if changed:
        log.info("%s variants run another engine than before", changed)


@shared_task(name="sizing.tasks.mark_stale_measurements", ignore_result=True)
def mark_stale_measurements() -> None:
    """Mark measurements that are stale."""
    changed = staleness.mark_stale()
    if changed:
        log.info("marked %s measurements", changed)
