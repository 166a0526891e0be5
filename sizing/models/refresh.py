"""The row that a measurement run lives in: the truth that messages only wake."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from sizing.models.catalog import BenchProfile, Variant
from sizing.models.fields import request_id_field
from sizing.models.fleet import Node, Replica


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
    live = models.JSONField(
        default=dict, blank=True, help_text="The level that is being measured: load, requests, tok/s so far."
    )
    save_result = models.BooleanField(default=True, help_text="Off: measured to look at, not stored.")
    options = models.JSONField(
        default=dict, blank=True, help_text="What was asked otherwise than the desk's settings."
    )
    cancel_requested = models.BooleanField(default=False)
    queued_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True, default="")
    request_id = request_id_field()

    class Meta:
        ordering = ["-queued_at", "-id"]
        verbose_name_plural = "refreshes"
        indexes = [models.Index(fields=["-queued_at", "-id"], name="refresh_by_time")]
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
        return f"refresh {self.pk}"


class MeasuredNode(models.Model):
    """A node on which a refresh measures now: one at a time, so that none disturbs another."""

    node = models.OneToOneField(Node, on_delete=models.CASCADE, related_name="measured_by")
    refresh = models.ForeignKey(Refresh, on_delete=models.CASCADE, related_name="measured_nodes")

    def __str__(self) -> str:
        return f"{self.node} is measured by {self.refresh}"


class RefreshPlan(models.Model):
    """When a variant is measured next on a profile, by the profile's schedule."""

    variant = models.ForeignKey(Variant, on_delete=models.CASCADE, related_name="plans")
    profile = models.ForeignKey(BenchProfile, on_delete=models.CASCADE, related_name="plans")
    next_refresh_at = models.DateTimeField(null=True, blank=True, help_text="Empty: not by schedule.")
    failures = models.PositiveIntegerField(default=0, help_text="In a row; each makes the wait longer.")

    class Meta:
        ordering = ["next_refresh_at", "id"]
        constraints = [models.UniqueConstraint(fields=["variant", "profile"], name="plan_once")]
        indexes = [models.Index(fields=["next_refresh_at"], name="plan_due")]

    def __str__(self) -> str:
        return f"plan {self.pk}"


class WorkerBeat(models.Model):
    """The last sign of life of a background worker."""

    name = models.CharField(max_length=255, unique=True)
    seen_at = models.DateTimeField()
    queues = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        blank=True,
        help_text="Those that it takes messages of.",
    )

    def __str__(self) -> str:
        return self.name
