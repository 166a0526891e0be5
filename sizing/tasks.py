"""Celery tasks: ids in, nothing out; the database row is the truth."""

from __future__ import annotations

import logging

from celery import shared_task
from kombu.exceptions import OperationalError

from sizing.measuring import engines, refreshes, running, schedule, staleness
from sizing.measuring.importing import life as imports
from sizing.models import InventoryChange

log = logging.getLogger(__name__)


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
    if healed or pruned:
        log.info("sweep: %s refreshes healed, %s log rows pruned", healed, pruned)


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
