"""Which engine the replicas run now: a measurement of another one is stale."""

from __future__ import annotations

import logging

from django.conf import settings

from sizing.measuring import engine, schedule
from sizing.measuring.keys import key_for
from sizing.measuring.seam import Endpoint, MeasuringError
from sizing.models import Refresh, Replica, Variant

log = logging.getLogger(__name__)


def look() -> int:
    """Ask one replica of each variant that may be measured; the number of variants that changed.

    A replica that is being measured now is left alone, and one that does not answer changes nothing.
    """
    ready = Replica.objects.filter(benchable=True, state=Replica.State.READY).exclude(endpoint="")
    measured = Refresh.objects.filter(state=Refresh.State.RUNNING).values("variant")
    first: dict[int, Replica] = {}
    for replica in ready.exclude(variant__in=measured).select_related("variant__model").order_by("name"):
        first.setdefault(replica.variant_id, replica)
    changed = 0
    for replica in first.values():
        label = _label(replica)
        if label and label != replica.variant.engine_seen:
            Variant.objects.filter(pk=replica.variant_id).update(engine_seen=label)
            schedule.hurry(replica.variant_id)
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
