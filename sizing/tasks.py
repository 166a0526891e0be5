"""Celery tasks: ids in, nothing out; the database row is the truth."""

from __future__ import annotations

import logging

from celery import shared_task

from sizing.measuring import refreshes, staleness
from sizing.models import InventoryChange

log = logging.getLogger(__name__)


@shared_task(name="sizing.tasks.sweep_refreshes", ignore_result=True)
def sweep_refreshes() -> None:
    """Heal refreshes whose worker is lost, and keep the change log short."""
    healed = refreshes.sweep()
    pruned = InventoryChange.prune()
    if healed or pruned:
        log.info("sweep: %s refreshes healed, %s log rows pruned", healed, pruned)


@shared_task(name="sizing.tasks.mark_stale_measurements", ignore_result=True)
def mark_stale_measurements() -> None:
    """Mark measurements that are older than their profile allows."""
    changed = staleness.mark_stale()
    if changed:
        log.info("marked %s measurements", changed)
