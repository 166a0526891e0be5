"""Why measurements are stale now, for pages and the API, and the mark that lists and filters carry."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from sizing import snapshot
from sizing.domain.staleness import too_old, why_stale
from sizing.models import Measurement


class Look:
    """One look at what runs: the reason of any number of measurements, by one query."""

    def __init__(self, now: datetime | None = None) -> None:
        self.now = now or timezone.now()
        self.kept = snapshot.current()
        self.counting = {m.order: m for m in self.kept.catalog.measured.values()}

    def reason(self, pk: int, profile: str, measured_at: datetime) -> str:
        """Why a measurement is stale; "" where it is not. Causes are told of those that count."""
        known = self.kept.catalog.profiles.get(profile)
        if known is None:  # made since the look
            return ""
        spec = self.counting.get(pk)
        if spec is None:
            return too_old(measured_at, known, self.now) or ""
        variant = self.kept.catalog.models[spec.model].variant(spec.variant)
        return why_stale(spec, variant, known, self.kept.fleet, self.now) or ""


def mark_stale(now: datetime | None = None) -> int:
    """Mark what is stale and unmark what no longer is; the number of rows that changed.

    Answers find the reason themselves at each question; the mark is for lists and filters, and costs no
    write where nothing changed, since every write moves the inventory's revision.
    """
    look = Look(now)
    changed: dict[str, list[int]] = {}
    columns = ("pk", "profile__name", "measured_at", "stale_reason")
    for pk, profile, measured_at, mark in Measurement.objects.values_list(*columns):
        reason = look.reason(pk, profile, measured_at)[:255]
        if reason != mark:
            changed.setdefault(reason, []).append(pk)
    return sum(
        Measurement.objects.filter(pk__in=pks).update(stale_reason=reason) for reason, pks in changed.items()
    )
