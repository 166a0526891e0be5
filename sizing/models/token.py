"""API tokens: only a hash is stored."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone
from knox.models import AbstractAuthToken

from sizing.models.fields import validate_text


class ApiToken(AbstractAuthToken):
    """A knox token: what it is for, what it may, when it was used, and since when it counts no more."""

    class Scope(models.TextChoices):
        FULL = "full", "full: all that its user may"
        READ = "read", "read only"

    label = models.CharField(max_length=120, validators=[validate_text])
    scope = models.CharField(max_length=4, choices=Scope, default=Scope.FULL, db_default=Scope.FULL)
    last_used_at = models.DateTimeField(null=True, blank=True, help_text="Written about once a minute.")
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created"]
        verbose_name = "API token"
        constraints = [
            models.CheckConstraint(condition=Q(scope__in=["full", "read"]), name="api_token_scope_known"),
        ]

    def __str__(self) -> str:
        return f"{self.label} ({self.token_key}…)"

    @property
    def is_over(self) -> bool:
        """Whether it has been revoked or has expired; it then stays to be seen, and nobody gets in by it."""
        return self.revoked_at is not None or (self.expiry is not None and self.expiry <= timezone.now())
