"""Which engine the replicas run now: a measurement of another one is stale."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor, wait

from django.conf import settings

from sizing.measuring import engine, pools, schedule
from sizing.measuring.keys import key_for
from sizing.measuring.seam import Endpoint, MeasuringError
from sizing.models import Refresh, Replica, Variant

log = logging.getLogger(__name__)

AT_ONCE = 16
DEADLINE_S = 20.0
"""For all of them together: the sweep and the schedule wait in the same queue."""


def to_ask() -> dict[str, list[Replica]]:
    """One replica of each variant that may be measured, by its pool; none of those that are measured now."""
    ready = Replica.to_measure()
    measured = Refresh.objects.filter(state=Refresh.State.RUNNING).values("variant")
    first: dict[int, Replica] = {}
    for replica in ready.exclude(variant__in=measured).select_related("variant__model").order_by("name"):
        first.setdefault(replica.variant_id, replica)
    pool = pools.pools_of(first.values())
    found: dict[str, list[Replica]] = {}
    for replica in first.values():
        found.setdefault(pool[replica.pk], []).append(replica)
    return found


def look(pool: str = "") -> int:
    """Ask one replica of each variant whose turn it is in a pool; the number of variants that changed.

    One that does not answer, or not in full, changes nothing.
    """
    threads = ThreadPoolExecutor(AT_ONCE)
    asked = {threads.submit(_label, replica): replica for replica in to_ask().get(pool, ())}
    answered, silent = wait(asked, timeout=DEADLINE_S)
    threads.shutdown(wait=False, cancel_futures=True)
    if silent:
        log.info("%s replicas do not tell their engine in time", len(silent))
    changed = 0
    for future in answered:
        label, variant = future.result(), asked[future].variant
        if label and label != variant.engine_seen:
            Variant.objects.filter(pk=variant.pk).update(engine_seen=label)
            schedule.hurry(variant.pk)
            changed += 1
    return changed


def _label(replica: Replica) -> str:
    model = replica.variant.model.name
    networks = tuple(str(network) for network in settings.ENDPOINT_NETWORKS)
    try:
        key = key_for(replica.endpoint, model, settings.ENDPOINT_KEYS_DIR)
        return engine.identify(Endpoint(replica.endpoint, model, networks, key)).label
    except MeasuringError as error:
        log.info("%s does not tell its engine: %s", replica.name, error)
        return ""
