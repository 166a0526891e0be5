"""What is to be measured next, and when: by each profile's interval, or since something changed."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import F, Max, Q
from django.utils import timezone

from sizing import snapshot
from sizing.domain.staleness import too_old, why_stale
from sizing.measuring import refreshes
from sizing.models import BenchProfile, Measurement, Refresh, RefreshPlan, Replica, Variant

JITTER = 0.1
"""A plan is due up to this share of its interval early, so that not all come at once."""

FIRST_WAIT = timedelta(minutes=10)
MOST_AT_ONCE = 100


def request_due(now: datetime | None = None) -> list[int]:
    """Queue a refresh for everything that is due; the ids of the rows made.

    Two schedules that ask at once make one row: a plan is taken by a conditional update, and a variant has
    one active refresh on a profile.
    """
    now = now or timezone.now()
    _make_plans(now)
    _hurry(now)
    made = []
    due = RefreshPlan.objects.filter(next_refresh_at__lte=now).select_related("profile", "variant")
    for plan in due[:MOST_AT_ONCE]:
        every = plan.profile.refresh_every_h
        upcoming = None if every is None else now + _after(plan.profile)
        taken = RefreshPlan.objects.filter(pk=plan.pk, next_refresh_at=plan.next_refresh_at)
        if not taken.update(next_refresh_at=upcoming) or every is None:
            continue
        if not refreshes.benchable(plan.variant).exists():
            continue
        try:
            with transaction.atomic():
                row = Refresh.objects.create(
                    variant=plan.variant, profile=plan.profile, trigger=Refresh.Trigger.SCHEDULE
                )
        except IntegrityError:  # one is active already
            continue
        made.append(row.pk)
    return made


def note_success(variant_id: int, profile: BenchProfile, now: datetime) -> None:
    """The next turn comes after the profile's interval."""
    upcoming = None if profile.refresh_every_h is None else now + _after(profile)
    RefreshPlan.objects.filter(variant_id=variant_id, profile=profile).update(
        next_refresh_at=upcoming, failures=0
    )


def note_failure(variant_id: int, profile_id: int) -> None:
    """Try again soon, then less and less often, but no later than the profile's interval."""
    found = RefreshPlan.objects.filter(variant_id=variant_id, profile_id=profile_id)
    plan = found.select_related("profile").first()
    if plan is None or plan.profile.refresh_every_h is None:
        return
    wait = min(FIRST_WAIT * 2 ** min(plan.failures, 10), timedelta(hours=float(plan.profile.refresh_every_h)))
    found.update(
        failures=F("failures") + 1, next_refresh_at=timezone.now() + wait * random.uniform(1, 1 + JITTER)
    )


def hurry(variant_id: int) -> None:
    """What was measured of a variant no longer holds: its plans are due now."""
    RefreshPlan.objects.filter(variant_id=variant_id, next_refresh_at__isnull=False).update(
        next_refresh_at=timezone.now()
    )


def _after(profile: BenchProfile) -> timedelta:
    hours = float(profile.refresh_every_h or 0)
    return timedelta(hours=hours * random.uniform(1 - JITTER, 1))


def _make_plans(now: datetime) -> None:
    """A plan for each variant with a replica that may be measured, and each profile that matters to it.

    That is its model's default, one with a saved target, and any that it was measured on.
    """
    planned = set(RefreshPlan.objects.values_list("variant_id", "profile_id"))
    scheduled = {p.pk: p for p in BenchProfile.objects.filter(refresh_every_h__isnull=False)}
    ready = Replica.to_measure()
    variants = Variant.objects.filter(pk__in=ready.values("variant")).select_related("model")
    for variant in variants:
        of_targets = variant.model.targets.filter(Q(variant=None) | Q(variant=variant))
        wanted = {variant.model.default_profile_id, *of_targets.values_list("profile_id", flat=True)}
        wanted |= set(variant.measurements.values_list("profile_id", flat=True))
        for profile_id in scheduled.keys() & wanted:
            if (variant.pk, profile_id) in planned:
                continue
            newest = Measurement.objects.filter(variant=variant, profile_id=profile_id, slo_met=True)
            last = newest.aggregate(last=Max("measured_at"))["last"]
            due = now if last is None else last + _after(scheduled[profile_id])
            RefreshPlan.objects.bulk_create(
                [RefreshPlan(variant=variant, profile_id=profile_id, next_refresh_at=due)],
                ignore_conflicts=True,
            )


def _hurry(now: datetime) -> None:
    """Plans whose measurement is stale by a cause other than its age are due now, unless just tried."""
    kept = snapshot.current()
    plans = RefreshPlan.objects.filter(failures=0).filter(
        Q(next_refresh_at__gt=now) | Q(next_refresh_at=None, profile__refresh_every_h__isnull=False)
    )
    for plan in plans.select_related("variant__model", "profile"):
        key = (plan.variant.model.name, plan.variant.name, plan.profile.name)
        measured = kept.catalog.measured.get(key)
        model = kept.catalog.models.get(key[0])
        profile = kept.catalog.profiles.get(key[2])
        if model is None or profile is None:
            continue
        if plan.next_refresh_at is not None:
            if measured is None:
                continue
            reason = why_stale(measured, model.variant(key[1]), profile, kept.fleet, now)
            if reason is None or reason == too_old(measured.measured_at, profile, now):
                continue
        recent = Refresh.objects.filter(variant=plan.variant, profile=plan.profile)
        if recent.filter(queued_at__gt=now - FIRST_WAIT).exists():
            continue
        RefreshPlan.objects.filter(pk=plan.pk, next_refresh_at=plan.next_refresh_at).update(
            next_refresh_at=now
        )
