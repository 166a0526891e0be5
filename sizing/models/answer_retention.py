"""Answers go after their time, and with them the inventories that no answer needs any more."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from sizing.models.answer import Answer, KeptInventory

MOST_AT_ONCE = 1000
"""Rows of a table that go in one statement, so that none holds up writers for long."""

SPARED_FOR = timedelta(days=1)
"""A new inventory is one that a process tells differences to, or is about to."""


def drop_old_answers(now: datetime | None = None) -> int:
    """Drop answers older than `ANSWERS_KEPT_DAYS`, and inventories that none needs; the rows that went."""
    moment = now or timezone.now()
    old = Answer.objects.filter(asked_at__lt=moment - timedelta(days=settings.ANSWERS_KEPT_DAYS))
    going = list(old.order_by("asked_at").values_list("pk", flat=True)[:MOST_AT_ONCE])
    dropped, _ = Answer.objects.filter(pk__in=going).delete()
    while more := _drop_unneeded(moment):  # with the differences gone, their base may go too
        dropped += more
    return dropped


def _drop_unneeded(moment: datetime) -> int:
    """Drop inventories without an answer and without a difference that is told to them."""
    before = moment - SPARED_FOR
    unneeded = KeptInventory.objects.filter(taken_at__lt=before, answers=None, differences=None)
    going = list(unneeded.order_by("pk").values_list("pk", flat=True)[:MOST_AT_ONCE])
    try:
        with transaction.atomic():
            # As one statement: Django's own deletion would first read them with their bodies.
            return unneeded.filter(pk__in=going)._raw_delete(KeptInventory.objects.db) if going else 0
    except IntegrityError:  # an answer came meanwhile
        return 0
