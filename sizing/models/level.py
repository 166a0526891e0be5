"""The load levels that a measurement rests on."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from sizing.domain.levels import Judged, Level, Verdict
from sizing.models.measurement import Measurement
from sizing.models.refresh import Refresh


class BenchLevel(models.Model):
    """One load level with its verdict: of a run, and once the run is stored, of its measurement."""

    refresh = models.ForeignKey(
        Refresh, null=True, blank=True, on_delete=models.CASCADE, related_name="levels"
    )
    measurement = models.ForeignKey(
        Measurement, null=True, blank=True, on_delete=models.CASCADE, related_name="levels"
    )
    position = models.PositiveIntegerField(help_text="In the order in which they were measured, from 1.")
    verdict = models.CharField(max_length=7, choices=[(v.value, v.value) for v in Verdict])
    why = models.CharField(max_length=255)
    observed = models.JSONField(help_text="What was observed, as `Level.as_dict` writes it.")

    class Meta:
        ordering = ["position", "id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(refresh__isnull=True) ^ Q(measurement__isnull=True), name="level_has_one_owner"
            ),
            models.CheckConstraint(
                condition=Q(verdict__in=["pass", "fail", "unknown", "invalid"]), name="level_verdict_known"
            ),
        ]

    def __str__(self) -> str:
        return f"level {self.position} ({self.verdict})"

    @property
    def judged(self) -> Judged:
        """The level as a domain value."""
        return Judged(Level.from_dict(self.observed), Verdict(self.verdict), self.why)
