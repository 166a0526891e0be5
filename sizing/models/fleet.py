"""The machines and what runs on them: nodes, GPUs, replicas and their placement."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from sizing.models.catalog import PRIORITY_LIMIT, Variant
from sizing.models.fields import (
    count,
    decimal,
    name_field,
    source_field,
    validate_endpoint,
    validate_name,
    validate_text,
)
from sizing.models.zone import Zone


class Node(models.Model):
    """A machine with accelerators, as the cluster last told."""

    name = name_field()
    ready = models.BooleanField(default=True)
    schedulable = models.BooleanField(default=True, help_text="Off: cordoned.")
    stale = models.BooleanField(default=False, help_text="Not seen by the cluster's sync for too long.")
    seen_at = models.DateTimeField(null=True, blank=True, editable=False)
    labels = models.JSONField(default=dict, blank=True)
    taints = models.JSONField(default=list, blank=True)
    cpu_millis = count(
        null=True,
        blank=True,
        verbose_name="CPU (millicores)",
        help_text="Allocatable to replicas; empty: not accounted.",
    )
    memory_mib = count(null=True, blank=True, verbose_name="host memory (MiB)")
    pods = count(null=True, blank=True, verbose_name="pods limit")
    cost_per_hour = decimal(null=True, blank=True)
    source = source_field()

    class Meta:
        ordering = ["name"]
        indexes = [models.Index(Zone("labels"), name="node_by_zone")]
        constraints = [
            models.CheckConstraint(condition=~Q(name=""), name="node_has_a_name"),
            models.CheckConstraint(condition=Q(source__in=["", "kubernetes"]), name="node_source_known"),
            models.CheckConstraint(
                condition=(Q(cpu_millis__isnull=True) | Q(cpu_millis__gte=0))
                & (Q(memory_mib__isnull=True) | Q(memory_mib__gte=0))
                & (Q(pods__isnull=True) | Q(pods__gte=0))
                & (Q(cost_per_hour__isnull=True) | Q(cost_per_hour__gte=0)),
                name="node_quantities_from_0",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Gpu(models.Model):
    """One accelerator of a node, or one slice of it (`partition`)."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="gpus")
    index = count()
    uuid = models.CharField(max_length=255, blank=True, default="", validators=[validate_text])
    type = models.CharField(max_length=255, validators=[validate_name])
    memory_mib = count(1, null=True, blank=True, verbose_name="memory (MiB)", help_text="Empty: unknown.")
    healthy = models.BooleanField(default=True)
    used_outside_mib = count(
        default=0,
        verbose_name="used outside (MiB)",
        help_text="Memory that processes other than replicas hold.",
    )
    partition = models.BooleanField(default=False, help_text="A MIG slice, time slice or vGPU split.")

    class Meta:
        ordering = ["node__name", "index"]
        verbose_name = "GPU"
        indexes = [models.Index(fields=["type", "node"], name="gpu_by_type")]
        constraints = [
            models.UniqueConstraint(fields=["node", "index"], name="gpu_index_unique_on_node"),
            models.UniqueConstraint(fields=["uuid"], condition=~Q(uuid=""), name="gpu_uuid_unique"),
            models.CheckConstraint(condition=~Q(type=""), name="gpu_has_a_type"),
            models.CheckConstraint(condition=Q(index__gte=0), name="gpu_index_from_0"),
            models.CheckConstraint(
                condition=Q(memory_mib__isnull=True) | Q(memory_mib__gte=1), name="gpu_memory_from_1"
            ),
            models.CheckConstraint(condition=Q(used_outside_mib__gte=0), name="gpu_used_outside_from_0"),
        ]

    def __str__(self) -> str:
        return f"{self.node} GPU {self.index}"


class Replica(models.Model):
    """A running copy of a model, bound to named GPUs."""

    class State(models.TextChoices):
        PENDING = "pending"
        STARTING = "starting"
        READY = "ready"
        DRAINING = "draining"
        FAILED = "failed"

    name = name_field()
    variant = models.ForeignKey(Variant, on_delete=models.PROTECT, related_name="replicas")
    state = models.CharField(max_length=8, choices=State, default=State.READY)
    started_at = models.DateTimeField(null=True, blank=True)
    endpoint = models.CharField(max_length=500, blank=True, default="", validators=[validate_endpoint])
    benchable = models.BooleanField(
        default=False, help_text="Measurements never touch a replica that is not marked."
    )
    priority = models.BigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(-PRIORITY_LIMIT - 1), MaxValueValidator(PRIORITY_LIMIT)],
        help_text="Where it differs from its model's. Empty: the model's.",
    )
    source = source_field()
    gpus: models.ManyToManyField[Gpu, Placement] = models.ManyToManyField(
        Gpu, through="Placement", related_name="replicas"
    )

    class Meta:
        ordering = ["name"]
        indexes = [models.Index(fields=["state", "name"], name="replica_by_state")]
        constraints = [
            models.CheckConstraint(condition=~Q(name=""), name="replica_has_a_name"),
            models.CheckConstraint(
                condition=Q(state__in=["pending", "starting", "ready", "draining", "failed"]),
                name="replica_state_known",
            ),
            models.CheckConstraint(condition=Q(source__in=["", "kubernetes"]), name="replica_source_known"),
        ]

    @classmethod
    def to_measure(cls) -> models.QuerySet[Replica]:
        """Those that measurements may touch: marked, ready, and with an endpoint."""
        return cls.objects.filter(benchable=True, state=cls.State.READY).exclude(endpoint="")

    def __str__(self) -> str:
        return self.name


class Placement(models.Model):
    """One GPU that a replica is bound to."""

    replica = models.ForeignKey(Replica, on_delete=models.CASCADE, related_name="placements")
    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="placements")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["replica", "gpu"], name="placement_once_on_a_gpu"),
        ]

    def __str__(self) -> str:
        return f"{self.replica} on {self.gpu}"
