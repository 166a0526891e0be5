"""What one replica was measured to serve, and what a model is wished to serve."""

from __future__ import annotations

from decimal import Decimal

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce

from sizing.domain.levels import Slo
from sizing.models.catalog import BenchProfile, ServedModel, Variant
from sizing.models.fields import MILLIONTH, ExactDecimalField, decimal, validate_text
from sizing.models.refresh import Refresh


class Measurement(models.Model):
    """Output tokens per second that one replica of a variant served at a profile's SLO."""

    class Bound(models.TextChoices):
        EDGE = "edge", "Edge: a higher load failed"
        FLOOR = "floor", "Floor: no load failed, at least this"

    variant = models.ForeignKey(Variant, on_delete=models.CASCADE, related_name="measurements")
    profile = models.ForeignKey(BenchProfile, on_delete=models.PROTECT, related_name="measurements")
    tok_per_sec = ExactDecimalField(
        verbose_name="tokens/s", help_text="Output tokens per second of the whole replica at its SLO."
    )
    measured_at = models.DateTimeField()
    source = models.CharField(max_length=255, default="manual", validators=[validate_text])
    bound = models.CharField(  # noqa: DJ001 (null: not known)
        max_length=8, choices=Bound, null=True, blank=True
    )
    engine = models.CharField(max_length=255, blank=True, default="", validators=[validate_text])
    warnings = models.JSONField(default=list, blank=True)
    slo_met = models.BooleanField(
        default=True, help_text="Entered by hand, or from a level that met the SLO; else it never counts."
    )
    stale_reason = models.CharField(max_length=255, blank=True, default="", editable=False)
    bracket = models.CharField(
        max_length=255,
        blank=True,
        default="",
        editable=False,
        help_text="The figure and the next level tried, in words.",
    )
    generator = models.CharField(
        max_length=255,
        blank=True,
        default="",
        editable=False,
        help_text="What made the load, and its version.",
    )
    workload = models.JSONField(
        default=dict, blank=True, editable=False, help_text="Shape, arrival and seed of the requests."
    )
    replica_name = models.CharField(max_length=255, blank=True, default="", editable=False)
    gpu_type = models.CharField(
        max_length=255, blank=True, default="", editable=False, help_text="What the measured replica ran on."
    )
    variant_shape = models.CharField(
        max_length=255, blank=True, default="", editable=False, help_text="The variant as it was measured."
    )
    refresh = models.OneToOneField(
        Refresh,
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="measurement",
        help_text="The run that took it.",
    )

    class Meta:
        ordering = ["-measured_at", "-id"]
        indexes = [
            models.Index(fields=["variant", "profile", "-measured_at"], name="measurement_newest"),
            models.Index(fields=["-measured_at", "-id"], name="measurement_by_time"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(tok_per_sec__gte=0), name="measurement_rate_from_0"),
            models.CheckConstraint(
                condition=Q(bound__isnull=True) | Q(bound__in=["edge", "floor"]),
                name="measurement_bound_known",
            ),
        ]

    def __str__(self) -> str:
        rate = f"{round(self.tok_per_sec, 1).normalize():,f} tok/s" if self.slo_met else "SLO not met"
        return f"{rate}, {self.measured_at:%Y-%m-%d}"

    @property
    def was_measured(self) -> bool:
        """Whether a load generator gave the figure: then nobody may write another one."""
        return bool(self.refresh_id or self.generator or self.workload)

    @property
    def slo(self) -> Slo:
        """The SLO that its levels were judged by: the profile's may have changed since."""
        return Slo(**self.workload["slo"]) if "slo" in self.workload else self.profile.slo


class Target(models.Model):
    """A saved wish: this model shall serve this many tokens per second."""

    model = models.ForeignKey(ServedModel, on_delete=models.CASCADE, related_name="targets")
    profile = models.ForeignKey(
        BenchProfile,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="targets",
        help_text="Empty: the model's own.",
    )
    variant = models.ForeignKey(
        Variant,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="targets",
        help_text="Empty: the first that is measured.",
    )
    utilization = decimal(
        7,
        default=Decimal(1),
        validators=[MinValueValidator(MILLIONTH), MaxValueValidator(Decimal(1))],
        help_text="Share of the measured throughput to plan with, in (0, 1].",
    )
    tokens_per_sec = ExactDecimalField(verbose_name="tokens/s", validators=[MinValueValidator(MILLIONTH)])

    class Meta:
        ordering = ["model__name", "id"]
        constraints = [
            models.UniqueConstraint(
                "model", Coalesce("profile", 0), Coalesce("variant", 0), name="target_once_a_question"
            ),
            models.CheckConstraint(condition=Q(tokens_per_sec__gt=0), name="target_rate_positive"),
            models.CheckConstraint(
                condition=Q(utilization__gt=0, utilization__lte=1), name="target_utilization_in_0_1"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model}: {self.tokens_per_sec.normalize():,f} tok/s"
