"""Celery tasks: ids in, nothing out; the database row is the truth."""

from __future__ import annotations

import logging
from typing import Any

from celery import shared_task
from kombu.exceptions import OperationalError

from sizing.measuring import engines, refreshes, running, schedule, staleness
from sizing.measuring.importing import life as imports
from sizing.models import InventoryChange
from sizing.syncing import importing as cluster_imports
from sizing.syncing import state as sync_state

log = logging.getLogger(__name__)

SYNC_LIMIT_S = 900
"""A run of the sync ends by itself long before."""


@shared_task(name="sizing.tasks.run_refresh", ignore_result=True)
def run_refresh(pk: int) -> None:
    """Take the measurement of a queued refresh; nothing where another worker has it."""
    if running.run(pk):
        for waiting in refreshes.waiting():  # its nodes are free now
            wake(waiting)


def wake(pk: int) -> None:
    """Tell a worker of a queued refresh. Where the broker is away, the next sweep does it."""
    try:
        run_refresh.apply_async((pk,), retry=False, expires=refreshes.lease().total_seconds() * 2)
    except (OperationalError, OSError) as error:
        log.warning("refresh %s is queued, but the broker is away: %s", pk, error)


@shared_task(name="sizing.tasks.read_import", ignore_result=True)
def read_import(pk: int) -> None:
    """Read the files of a queued import; nothing where another worker has it."""
    imports.run(pk)


def wake_for_import(pk: int) -> None:
    """Tell a worker of a queued import. Where the broker is away, the next sweep does it."""
    try:
        read_import.apply_async((pk,), retry=False, expires=imports.LEASE.total_seconds())
    except (OperationalError, OSError) as error:
        log.warning("import %s is queued, but the broker is away: %s", pk, error)


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
    try:
        task.apply_async((pk,), retry=False, expires=cluster_imports.LEASE.total_seconds())
    except (OperationalError, OSError) as error:
        log.warning("cluster import %s waits, but the broker is away: %s", pk, error)


def wake_to_import(pk: int) -> None:
    """Tell a worker of a list to be imported. Where the broker is away, the next sweep does it."""
    wake_for_list(pk, import_cluster_list)


@shared_task(name="sizing.tasks.sweep_refreshes", ignore_result=True)
def sweep_refreshes() -> None:
    """Heal refreshes and imports whose worker is lost, wake the queued ones, and clear away what is old."""
    healed = refreshes.sweep()
    pruned = InventoryChange.prune()
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
    if healed or pruned:
        log.info("sweep: %s refreshes healed, %s log rows pruned", healed, pruned)


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
    """Ask the replicas that may be measured what they run."""
    changed = engines.look()
    if changed:
        log.info("%s variants run another engine than before", changed)


@shared_task(name="sizing.tasks.mark_stale_measurements", ignore_result=True)
def mark_stale_measurements() -> None:
    """Mark measurements that are stale."""
    changed = staleness.mark_stale()
    if changed:
        log.info("marked %s measurements", changed)
