"""Marking measurements that are stale, for lists and filters."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from sizing import snapshot
from sizing.domain.staleness import too_old, why_stale
from sizing.models import Measurement


def mark_stale(now: datetime | None = None) -> int:
    """Mark what is stale and unmark what no longer is; the number of rows that changed.

    Answers find the reason themselves at each question; the mark is for lists and filters, and costs no
    write where nothing changed, since every write moves the inventory's revision.
    """
    now = now or timezone.now()
    kept = snapshot.current()
    counting = {m.order: m for m in kept.catalog.measured.values()}
    changed: dict[str, list[int]] = {}
    columns = ("pk", "profile__name", "measured_at", "stale_reason")
    for pk, profile_name, measured_at, mark in Measurement.objects.values_list(*columns):
        profile = kept.catalog.profiles.get(profile_name)
        if profile is None:  # made since the snapshot was read
            continue
        if pk in counting:
            spec = counting[pk]
            variant = kept.catalog.models[spec.model].variant(spec.variant)
            reason = why_stale(spec, variant, profile, kept.fleet, now)
        else:
            reason = too_old(measured_at, profile, now)
        if (reason or "") != mark:
            changed.setdefault((reason or "")[:255], []).append(pk)
    return sum(
        Measurement.objects.filter(pk__in=pks).update(stale_reason=reason) for reason, pks in changed.items()
    )
