"""API tokens: only a hash is stored."""

from __future__ import annotations

from django.db import models
from knox.models import AbstractAuthToken

from sizing.models.fields import validate_text


class ApiToken(AbstractAuthToken):
    """A knox token with a label that says what it is for."""

    label = models.CharField(max_length=120, validators=[validate_text])

    class Meta:
        ordering = ["-created"]
        verbose_name = "API token"

    def __str__(self) -> str:
        return f"{self.label} ({self.token_key}…)"
