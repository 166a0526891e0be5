"""What is served and how it is asked of: models, variants, bench profiles."""

from __future__ import annotations

from decimal import Decimal

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from sizing.domain.levels import Slo
from sizing.models.fields import (
    count,
    decimal,
    name_field,
    source_field,
    validate_model_name,
    validate_text,
)

PRIORITY_LIMIT = 2**31 - 1


class ServedModel(models.Model):
    """A served LLM, or another workload that holds GPUs."""

    class PreemptionPolicy(models.TextChoices):
        LOWER = "PreemptLowerPriority", "Preempt lower priority"
        NEVER = "Never", "Never preempt"

    class Workload(models.TextChoices):
        MODEL = "model", "LLM"
        OTHER = "other", "Other workload"

    name = name_field(validators=[validate_model_name])
    priority = models.BigIntegerField(
        default=0,
        validators=[MinValueValidator(-PRIORITY_LIMIT - 1), MaxValueValidator(PRIORITY_LIMIT)],
        help_text="Higher is more important; may preempt replicas of lower priority.",
    )
    preemption_policy = models.CharField(
        max_length=24, choices=PreemptionPolicy, default=PreemptionPolicy.LOWER
    )
    min_replicas = count(default=0, help_text="Preemption never takes the model below this.")
    max_replicas = count(null=True, blank=True, help_text="Empty: no limit.")
    default_profile = models.ForeignKey(
        "sizing.BenchProfile", null=True, blank=True, on_delete=models.SET_NULL, related_name="default_of"
    )
    workload = models.CharField(max_length=8, choices=Workload, default=Workload.MODEL)
    owner = models.CharField(max_length=255, blank=True, default="", validators=[validate_text])
    source = source_field()

    class Meta:
        ordering = ["name"]
        verbose_name = "model"
        constraints = [
            models.CheckConstraint(condition=~Q(name=""), name="model_has_a_name"),
            models.CheckConstraint(condition=Q(source__in=["", "kubernetes"]), name="model_source_known"),
            models.CheckConstraint(condition=Q(min_replicas__gte=0), name="model_min_replicas_from_0"),
            models.CheckConstraint(
                condition=Q(max_replicas__isnull=True) | Q(max_replicas__gte=0),
                name="model_max_replicas_from_0",
            ),
            models.CheckConstraint(
                condition=Q(preemption_policy__in=["PreemptLowerPriority", "Never"]),
                name="model_preemption_policy_known",
            ),
            models.CheckConstraint(condition=Q(workload__in=["model", "other"]), name="model_workload_known"),
        ]

    def __str__(self) -> str:
        return self.name


class Variant(models.Model):
    """One way to run a replica of a model."""

    model = models.ForeignKey(ServedModel, on_delete=models.CASCADE, related_name="variants")
    position = count(default=0, help_text="Order of preference, lowest first.")
    name = name_field(unique=False)
    nodes = count(1, default=1, help_text="Nodes that one replica spans.")
    gpus = count(1, default=1, help_text="GPUs on each node.")
    gpu_memory_mib = count(
        1, null=True, blank=True, verbose_name="GPU memory (MiB)", help_text="Claim on each GPU."
    )
    gpu_memory_fraction = decimal(
        7,
        null=True,
        blank=True,
        validators=[MinValueValidator(Decimal("0.000001")), MaxValueValidator(Decimal(1))],
        verbose_name="GPU memory fraction",
        help_text="Claim as a share of each GPU's memory, in (0, 1]. Both empty: the whole GPU.",
    )
    gpu_types = models.JSONField(default=list, blank=True, verbose_name="GPU types", help_text="Empty: any.")
    node_selector = models.JSONField(default=dict, blank=True)
    tolerations = models.JSONField(default=list, blank=True)
    cpu_millis = count(default=0, verbose_name="CPU (millicores)", help_text="Per node.")
    memory_mib = count(default=0, verbose_name="host memory (MiB)", help_text="Per node.")
    topology_key = models.CharField(  # noqa: DJ001 (null: not asked for)
        max_length=317,
        null=True,
        blank=True,
        validators=[validate_text],
        help_text="With several nodes: all nodes of a replica share this label's value.",
    )
    source = source_field()
    engine_seen = models.CharField(
        max_length=255,
        blank=True,
        default="",
        editable=False,
        help_text="The engine and version that its replicas last said to run.",
    )

    class Meta:
        ordering = ["model__name", "position", "id"]
        constraints = [
            models.UniqueConstraint(fields=["model", "name"], name="variant_name_unique_in_model"),
            models.CheckConstraint(condition=~Q(name=""), name="variant_has_a_name"),
            models.CheckConstraint(condition=Q(source__in=["", "kubernetes"]), name="variant_source_known"),
            models.CheckConstraint(condition=Q(position__gte=0), name="variant_position_from_0"),
            models.CheckConstraint(condition=Q(nodes__gte=1), name="variant_nodes_from_1"),
            models.CheckConstraint(condition=Q(gpus__gte=1), name="variant_gpus_from_1"),
            models.CheckConstraint(
                condition=Q(gpu_memory_mib__isnull=True) | Q(gpu_memory_mib__gte=1),
                name="variant_gpu_memory_from_1",
            ),
            models.CheckConstraint(
                condition=Q(gpu_memory_fraction__isnull=True)
                | Q(gpu_memory_fraction__gt=0, gpu_memory_fraction__lte=1),
                name="variant_fraction_in_0_1",
            ),
            models.CheckConstraint(condition=Q(cpu_millis__gte=0), name="variant_cpu_from_0"),
            models.CheckConstraint(condition=Q(memory_mib__gte=0), name="variant_memory_from_0"),
        ]

    def __str__(self) -> str:
        return self.name


class BenchProfile(models.Model):
    """A workload shape and the SLO that a replica must meet under it."""

    class Arrival(models.TextChoices):
        POISSON = "poisson", "Poisson (open loop)"
        CONCURRENCY = "concurrency", "Concurrency (closed loop)"

    name = name_field()
    input_tokens = count(1)
    output_tokens = count(1)
    ttft_ms = decimal(null=True, blank=True, verbose_name="TTFT limit (ms)")
    itl_ms = decimal(null=True, blank=True, verbose_name="ITL limit (ms)")
    e2e_ms = decimal(null=True, blank=True, verbose_name="end-to-end limit (ms)")
    percentile = decimal(
        9,
        default=Decimal(95),
        validators=[MinValueValidator(Decimal("0.000001")), MaxValueValidator(Decimal(100))],
        help_text="Share of the requests sent, in percent, that must meet every limit.",
    )
    arrival = models.CharField(max_length=12, choices=Arrival, default=Arrival.POISSON)
    refresh_every_h = decimal(
        null=True,
        blank=True,
        validators=[MinValueValidator(Decimal("0.000001"))],
        verbose_name="refresh every (h)",
        help_text="Also the age at which a measurement is stale. Empty: by hand only, never stale.",
    )

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=~Q(name=""), name="profile_has_a_name"),
            models.CheckConstraint(condition=Q(input_tokens__gte=1), name="profile_input_from_1"),
            models.CheckConstraint(condition=Q(output_tokens__gte=1), name="profile_output_from_1"),
            models.CheckConstraint(
                condition=Q(ttft_ms__isnull=False) | Q(itl_ms__isnull=False) | Q(e2e_ms__isnull=False),
                name="profile_has_a_limit",
            ),
            models.CheckConstraint(
                condition=(Q(ttft_ms__isnull=True) | Q(ttft_ms__gt=0))
                & (Q(itl_ms__isnull=True) | Q(itl_ms__gt=0))
                & (Q(e2e_ms__isnull=True) | Q(e2e_ms__gt=0)),
                name="profile_limits_positive",
            ),
            models.CheckConstraint(
                condition=Q(percentile__gt=0, percentile__lte=100), name="profile_percentile_in_0_100"
            ),
            models.CheckConstraint(
                condition=Q(refresh_every_h__isnull=True) | Q(refresh_every_h__gt=0),
                name="profile_refresh_positive",
            ),
            models.CheckConstraint(
                condition=Q(arrival__in=["poisson", "concurrency"]), name="profile_arrival_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def slo(self) -> Slo:
        """Its limits as a domain value."""
        limits = (self.ttft_ms, self.itl_ms, self.e2e_ms)
        ttft, itl, e2e = (None if limit is None else float(limit) for limit in limits)
        return Slo(ttft, itl, e2e, float(self.percentile))
