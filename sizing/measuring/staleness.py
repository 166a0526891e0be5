"""Marking measurements that are older than their profile allows."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils import timezone

from sizing.domain.specs import STALE_BY_AGE
from sizing.models import BenchProfile, Measurement


def mark_stale(now: datetime | None = None) -> int:
    """Mark what has grown too old and unmark what no longer is; the number of rows that changed.

    Answers compute the age themselves; the mark is for lists and filters, and costs no write where
    nothing changed, since every write moves the inventory's revision.
    """
    now = now or timezone.now()
    changed = 0
    for profile in BenchProfile.objects.all():
        of_profile = Measurement.objects.filter(profile=profile)
        if profile.refresh_every_h is None:
            changed += _set(of_profile.filter(stale_reason=STALE_BY_AGE), "")
            continue
        oldest = now - timedelta(hours=float(profile.refresh_every_h))
        changed += _set(of_profile.filter(stale_reason="", measured_at__lte=oldest), STALE_BY_AGE)
        changed += _set(of_profile.filter(stale_reason=STALE_BY_AGE, measured_at__gt=oldest), "")
    return changed


def _set(rows: QuerySet[Measurement], reason: str) -> int:
    return rows.update(stale_reason=reason) if rows.exists() else 0
