"""The row that a measurement run lives in: the truth that messages only wake."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from sizing.models.catalog import BenchProfile, Variant
from sizing.models.fleet import Replica


class Refresh(models.Model):
    """One run that measures a variant on a profile anew."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    class Trigger(models.TextChoices):
        SCHEDULE = "schedule"
        ADMIN = "admin"
        API = "api", "API"
        COMMAND = "command"

    ACTIVE = (State.QUEUED, State.RUNNING)

    variant = models.ForeignKey(Variant, on_delete=models.CASCADE, related_name="refreshes")
    profile = models.ForeignKey(BenchProfile, on_delete=models.CASCADE, related_name="refreshes")
    replica = models.ForeignKey(
        Replica, null=True, blank=True, on_delete=models.SET_NULL, related_name="refreshes"
    )
    state = models.CharField(max_length=9, choices=State, default=State.QUEUED)
    trigger = models.CharField(max_length=8, choices=Trigger)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    attempts = models.PositiveIntegerField(default=0)
    progress = models.PositiveIntegerField(default=0, help_text="Percent.")
    message = models.CharField(max_length=255, blank=True, default="")
    cancel_requested = models.BooleanField(default=False)
    queued_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["-queued_at", "-id"]
        verbose_name_plural = "refreshes"
        constraints = [
            models.UniqueConstraint(
                fields=["variant", "profile"],
                condition=Q(state__in=["queued", "running"]),
                name="refresh_one_active",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["queued", "running", "done", "failed", "cancelled"]),
                name="refresh_state_known",
            ),
            models.CheckConstraint(condition=Q(progress__lte=100), name="refresh_progress_to_100"),
        ]

    def __str__(self) -> str:
        return f"refresh {self.pk} ({self.state})"


class WorkerBeat(models.Model):
    """The last sign of life of a background worker."""

    name = models.CharField(max_length=255, unique=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
