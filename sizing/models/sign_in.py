"""Failed sign-ins, counted where every web process sees them; and what of sign-ins is cleared away."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.sessions.models import Session
from django.db import models
from django.utils import timezone

FORGOTTEN_AFTER = timedelta(hours=1)
MOST_AT_ONCE = 1000


class SignInFailures(models.Model):
    """How often somebody failed to sign in, and from when on they may try again.

    In a table and not in the cache, which each web process has for itself unless one is shared. The key is a
    hash, so that the table tells neither names nor addresses.
    """

    key = models.CharField(max_length=64, primary_key=True)
    failures = models.PositiveIntegerField()
    free_at = models.DateTimeField(help_text="Until then nothing is tried.")

    class Meta:
        verbose_name_plural = "sign-in failures"
        default_permissions = ()
        indexes = [models.Index(fields=["free_at"], name="sign_in_failures_by_time")]

    def __str__(self) -> str:
        return self.key


def forget_old() -> None:
    """Drop failures that count no more, and sessions that have expired; so many of each at most."""
    now = timezone.now()
    for rows in (
        SignInFailures.objects.filter(free_at__lt=now - FORGOTTEN_AFTER),
        Session.objects.filter(expire_date__lt=now),
    ):
        going = list(rows.values_list("pk", flat=True)[:MOST_AT_ONCE])
        if going:
            rows.filter(pk__in=going).delete()
