"""What goes after its time: old measurements that nothing rests on, and how they and the inventory came."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.utils import timezone

from sizing.models.answer import Answer
from sizing.models.cluster import ClusterImport
from sizing.models.imports import BenchImport
from sizing.models.load import InventoryLoad
from sizing.models.measurement import Measurement
from sizing.models.refresh import Refresh

MOST_AT_ONCE = 200
"""Rows of a table that go in one run, so that no run holds up writers for long."""


def drop_old(now: datetime | None = None) -> int:
    """Drop what is older than `MEASUREMENTS_KEPT_DAYS`; the number of objects that went. 0 days: nothing.

    With a measurement go its levels and files. The one that answers count with stays, however old; what a
    measurement came by (a refresh, an import) stays as long as the measurement.
    """
    if not settings.MEASUREMENTS_KEPT_DAYS:
        return 0
    before = (now or timezone.now()) - timedelta(days=settings.MEASUREMENTS_KEPT_DAYS)
    by_import = BenchImport.objects.filter(finished_at__lt=before, measurement=None)
    imported = (ClusterImport.State.DONE, ClusterImport.State.FAILED)
    return (
        _drop(_outdated(before))
        + _drop(
            Refresh.objects.filter(finished_at__lt=before, measurement=None).exclude(state__in=Refresh.ACTIVE)
        )
        + _drop(by_import.filter(state__in=(BenchImport.State.STORED, BenchImport.State.FAILED)))
        + _drop(ClusterImport.objects.filter(finished_at__lt=before, state__in=imported))
        + _drop(
            InventoryLoad.objects.filter(finished_at__lt=before).exclude(state=InventoryLoad.State.PREVIEW)
        )
    )


def _outdated(before: datetime) -> QuerySet[Measurement]:
    """Old measurements of which a newer one counts, and on which no answer rests that is still kept.

    What found the SLO unmet is told of while nothing is newer.
    """
    pair = Measurement.objects.filter(variant=OuterRef("variant"), profile=OuterRef("profile"))
    newer = pair.filter(
        Q(measured_at__gt=OuterRef("measured_at"))
        | Q(measured_at=OuterRef("measured_at"), id__gt=OuterRef("id"))
    )
    valid = newer.filter(slo_met=True, tok_per_sec__gt=0)
    asked_for = Answer.objects.filter(measurement=OuterRef("pk"))
    return Measurement.objects.filter(~Exists(asked_for), measured_at__lt=before).filter(
        Exists(valid) | Q(Exists(newer.filter(slo_met=False)), slo_met=False)
    )


def _drop(rows: QuerySet[Any]) -> int:
    """Delete the first of these rows with what belongs to them."""
    table: type[Model] = rows.model
    going = list(rows.order_by("pk").values_list("pk", flat=True)[:MOST_AT_ONCE])
    if going:
        table._default_manager.filter(pk__in=going).delete()
    return len(going)
