"""What the desk knows of the Kubernetes cluster beside its inventory: rules, imports, the sync's state."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from sizing.models.fields import request_id_field, validate_name, validate_text


class MappingRule(models.Model):
    """By what a pod becomes a replica of a model; the first rule that matches decides."""

    class By(models.TextChoices):
        LABEL = "label", "label of the pod"
        OWNER = "owner", "owner (Kind/name)"
        POD = "pod", "pod (namespace/name)"
        IMAGE = "image", "container image"
        COMMAND = "command", "command line of a container"

    name = models.CharField(max_length=255, unique=True, validators=[validate_name])
    position = models.PositiveIntegerField(default=0, help_text="Lowest first.")
    enabled = models.BooleanField(default=True)
    by = models.CharField(max_length=8, choices=By, default=By.LABEL)
    key = models.CharField(
        max_length=317,
        blank=True,
        default="",
        validators=[validate_text],
        help_text="The label's name; only for rules by label.",
    )
    pattern = models.CharField(
        max_length=500,
        help_text="Regular expression that the whole value must match; its groups may stand in the names.",
    )
    namespace = models.CharField(
        max_length=255,
        blank=True,
        default="",
        help_text="Regular expression for the whole namespace. Empty: any.",
    )
    model = models.CharField(
        max_length=255,
        blank=True,
        default="",
        validators=[validate_text],
        help_text=r"The model's name; \1 or \g<name> stand for groups. Empty: no LLM, another workload.",
    )
    variant = models.CharField(
        max_length=255,
        blank=True,
        default="",
        validators=[validate_text],
        help_text="The variant's name. Empty: found by its GPUs.",
    )

    class Meta:
        ordering = ["position", "id"]
        verbose_name = "mapping rule"
        constraints = [
            models.CheckConstraint(
                condition=Q(by__in=["label", "owner", "pod", "image", "command"]), name="rule_by_known"
            ),
            models.CheckConstraint(condition=~Q(pattern=""), name="rule_has_a_pattern"),
            models.CheckConstraint(condition=~Q(by="label") | ~Q(key=""), name="rule_by_label_has_a_key"),
        ]

    def __str__(self) -> str:
        return self.name


class ClusterImport(models.Model):
    """A list of the cluster that somebody brought: what it would change, then what it did.

    The file itself (`body`, compressed by zlib) is kept only until it is imported or given up.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        READ = "read", "read, not imported"
        IMPORTING = "importing"
        DONE = "done", "imported"
        FAILED = "failed", "refused"

    class Trigger(models.TextChoices):
        ADMIN = "admin"
        API = "api", "API"
        COMMAND = "command"

    ACTIVE = (State.QUEUED, State.RUNNING, State.IMPORTING)

    name = models.CharField(max_length=255, validators=[validate_text], help_text="The file as it was named.")
    size = models.PositiveBigIntegerField(default=0, help_text="Bytes as it came.")
    body = models.BinaryField(null=True, blank=True)
    partial = models.BooleanField(
        default=False, help_text="Take an incomplete list: what it leaves out stays as it is."
    )
    state = models.CharField(max_length=9, choices=State, default=State.QUEUED)
    trigger = models.CharField(max_length=7, choices=Trigger)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    queued_at = models.DateTimeField(auto_now_add=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    progress = models.PositiveIntegerField(default=0, help_text="Percent.")
    message = models.CharField(max_length=255, blank=True, default="")
    cancel_requested = models.BooleanField(default=False)
    report = models.JSONField(default=dict, blank=True, help_text="The cluster as it was read.")
    changes = models.JSONField(default=dict, blank=True, help_text="What the import changes or has changed.")
    error = models.TextField(blank=True, default="")
    request_id = request_id_field()

    class Meta:
        ordering = ["-queued_at", "-id"]
        verbose_name = "cluster import"
        indexes = [models.Index(fields=["-queued_at", "-id"], name="cluster_import_by_time")]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["queued", "running", "read", "importing", "done", "failed"]),
                name="cluster_import_state_known",
            ),
            models.CheckConstraint(condition=Q(progress__lte=100), name="cluster_import_progress_to_100"),
        ]

    def __str__(self) -> str:
        return f"cluster import {self.pk}"


class ClusterSync(models.Model):
    """The state of the sync with the live cluster: one row for the desk.

    `seen_at` is when the cluster last told all of itself: a whole list, or a watch that was alive.
    """

    class State(models.TextChoices):
        OFF = "off"
        WAITING = "waiting", "waiting to start"
        LISTING = "listing"
        WATCHING = "watching"
        FAILING = "failing"

    server = models.CharField(max_length=500, blank=True, default="")
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    attempt = models.PositiveIntegerField(default=0, help_text="Runs so far; a newer one ends an older.")
    lease_until = models.DateTimeField(null=True, blank=True)
    listed_at = models.DateTimeField(null=True, blank=True, help_text="The last whole list.")
    seen_at = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField(null=True, blank=True, help_text="The last change written.")
    failing_since = models.DateTimeField(null=True, blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0, help_text="In a row.")
    error = models.TextField(blank=True, default="", help_text="The last failure in words.")
    error_in = models.CharField(max_length=32, blank=True, default="", help_text="What failed.")
    relists = models.PositiveIntegerField(default=0)
    events = models.PositiveBigIntegerField(default=0)
    nodes = models.PositiveIntegerField(default=0)
    pods = models.PositiveIntegerField(default=0)
    report = models.JSONField(default=dict, blank=True, help_text="Warnings and what was ignored.")
    changes = models.JSONField(default=dict, blank=True, help_text="The last change.")
    pods_seen = models.BinaryField(
        null=True, blank=True, help_text="The pods with devices as last told, to try rules on: JSON in zlib."
    )
    sync_requested_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "cluster sync"
        verbose_name_plural = "cluster sync"
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["off", "waiting", "listing", "watching", "failing"]),
                name="cluster_sync_state_known",
            ),
        ]

    def __str__(self) -> str:
        return "cluster sync"
