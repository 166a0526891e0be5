"""Result files that people bring: the upload on its way to a measurement, and the files themselves."""

from __future__ import annotations

import zlib
from io import BytesIO

from django.conf import settings
from django.db import models
from django.db.models import Q

from sizing.models.catalog import BenchProfile, Variant
from sizing.models.fields import request_id_field, validate_text
from sizing.models.measurement import Measurement


class BenchImport(models.Model):
    """Result files given together: read by a worker where they are large, looked at, then stored.

    Without a variant it is to be looked at only; without a profile the default SLO judges it.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        STORED = "stored"

    class Trigger(models.TextChoices):
        ADMIN = "admin"
        API = "api", "API"
        COMMAND = "command"

    variant = models.ForeignKey(
        Variant, null=True, blank=True, on_delete=models.CASCADE, related_name="imports"
    )
    profile = models.ForeignKey(
        BenchProfile, null=True, blank=True, on_delete=models.CASCADE, related_name="imports"
    )
    force = models.BooleanField(default=False, help_text="Take points of another shape than the profile's.")
    leave_out_broken = models.BooleanField(
        default=False, help_text="Leave out, on purpose, what is broken or of another shape."
    )
    store_when_right = models.BooleanField(
        default=False, help_text="Store the measurement once all is read and nothing is refused."
    )
    state = models.CharField(max_length=7, choices=State, default=State.QUEUED)
    trigger = models.CharField(max_length=7, choices=Trigger)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    attempts = models.PositiveIntegerField(default=0)
    progress = models.PositiveIntegerField(default=0, help_text="Percent.")
    queued_at = models.DateTimeField(auto_now_add=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    preview = models.JSONField(
        default=dict, blank=True, help_text="What was found: points, verdicts, sweeps, and what is refused."
    )
    finding = models.JSONField(
        null=True, blank=True, help_text="What would be stored; null where something is refused."
    )
    error = models.TextField(blank=True, default="")
    measurement = models.OneToOneField(
        Measurement, null=True, blank=True, on_delete=models.SET_NULL, related_name="bench_import"
    )
    request_id = request_id_field()

    class Meta:
        ordering = ["-queued_at", "-id"]
        indexes = [models.Index(fields=["-queued_at", "-id"], name="bench_import_by_time")]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["queued", "running", "done", "failed", "stored"]),
                name="import_state_known",
            ),
            models.CheckConstraint(condition=Q(progress__lte=100), name="import_progress_to_100"),
        ]

    def __str__(self) -> str:
        return f"import {self.pk}"


class BenchFile(models.Model):
    """A result file as it came: of an import, and once that is stored, of its measurement."""

    bench_import = models.ForeignKey(
        BenchImport, null=True, blank=True, on_delete=models.CASCADE, related_name="files"
    )
    measurement = models.ForeignKey(
        Measurement, null=True, blank=True, on_delete=models.CASCADE, related_name="files"
    )
    position = models.PositiveIntegerField(help_text="In the order in which they were given, from 1.")
    name = models.CharField(
        max_length=255, validators=[validate_text], help_text="As its sender named it: a label, not a path."
    )
    size = models.PositiveIntegerField(help_text="Bytes as it came.")
    sha256 = models.CharField(max_length=64, help_text="Of the file as it came.")

    class Meta:
        ordering = ["position", "id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(bench_import__isnull=True) ^ Q(measurement__isnull=True),
                name="file_has_one_owner",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def read(self) -> bytes:
        """The file as it came, in memory."""
        unpack, whole = zlib.decompressobj(), BytesIO()
        for pk in list(self.parts.values_list("pk", flat=True)):
            whole.write(unpack.decompress(BenchFilePart.objects.get(pk=pk).content))
        return whole.getvalue()


class _LightManager(models.Manager["BenchFilePart"]):
    """For Django's own use: what looks at the parts of a file that is to be deleted needs no content."""

    def get_queryset(self) -> models.QuerySet[BenchFilePart]:
        return super().get_queryset().defer("content")


class BenchFilePart(models.Model):
    """A piece of a file's content, so that no more than a piece is in memory on its way."""

    file = models.ForeignKey(BenchFile, on_delete=models.CASCADE, related_name="parts")
    position = models.PositiveIntegerField()
    content = models.BinaryField(
        help_text="The whole file, compressed by zlib, is all parts one after another."
    )

    objects = models.Manager["BenchFilePart"]()
    light = _LightManager()

    class Meta:
        base_manager_name = "light"
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["file", "position"], name="file_part_once")]

    def __str__(self) -> str:
        return f"part {self.position} of {self.file_id}"
