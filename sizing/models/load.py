"""Inventory files that people bring: what each would change, then what it did."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from sizing.models.fields import validate_text


class InventoryLoad(models.Model):
    """An inventory file that somebody brought, by page, API or command.

    The file itself (`body`, compressed by zlib) is kept only until it is loaded or given up.
    """

    class State(models.TextChoices):
        PREVIEW = "preview", "looked at, not loaded"
        LOADED = "loaded"
        REFUSED = "refused"

    class Trigger(models.TextChoices):
        ADMIN = "admin"
        API = "api", "API"
        COMMAND = "command"

    name = models.CharField(max_length=255, validators=[validate_text], help_text="The file as it was named.")
    size = models.PositiveBigIntegerField(default=0, help_text="Bytes as it came.")
    body = models.BinaryField(null=True, blank=True)
    replace = models.BooleanField(default=False, help_text="Remove what the file leaves out.")
    state = models.CharField(max_length=7, choices=State, default=State.PREVIEW)
    trigger = models.CharField(max_length=7, choices=Trigger)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    counts = models.JSONField(
        default=dict, blank=True, help_text="Objects created, updated, removed and unchanged, by kind."
    )
    changes = models.JSONField(
        default=dict, blank=True, help_text="What the load changes or has changed, by name."
    )
    warnings = models.JSONField(default=list, blank=True)
    errors = models.JSONField(default=dict, blank=True, help_text="By path; what has any is refused.")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = "inventory load"
        indexes = [models.Index(fields=["-created_at", "-id"], name="inventory_load_by_time")]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["preview", "loaded", "refused"]), name="inventory_load_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"load {self.pk}"
