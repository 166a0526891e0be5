"""Result files that are brought: the form they come in, what was found, and the imports."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from sizing.api.serializers.fields import Name, Strict
from sizing.api.serializers.measurement import MeasurementSerializer
from sizing.models import BenchFile, BenchImport
from sizing.services.errors import DeskError
from sizing.services.imports import MOST_FILES, time_of


@extend_schema_field({"type": "boolean", "default": False})
class Flag(serializers.Field):  # type: ignore[type-arg]
    """true or false as a form has them, in words; anything else is an error."""

    default_error_messages = {"invalid": "must be true or false"}

    def __init__(self, **options: Any) -> None:
        super().__init__(default=False, **options)

    def to_internal_value(self, data: Any) -> bool:
        if data not in ("true", "false"):
            self.fail("invalid")
        return bool(data == "true")


@extend_schema_field({"type": "string", "format": "date-time", "nullable": True})
class Moment(serializers.Field):  # type: ignore[type-arg]
    """A time at which something was measured."""

    def to_internal_value(self, data: Any) -> datetime | None:
        try:
            return time_of(str(data))
        except DeskError as refusal:
            raise serializers.ValidationError(refusal.message) from None


class UploadSerializer(Strict):
    """Result files, and what they were measured of."""

    file = serializers.ListField(
        child=serializers.FileField(allow_empty_file=True, max_length=4096),
        min_length=1,
        max_length=MOST_FILES,
        error_messages={
            "max_length": f"%(show_value)d files were given; at most {MOST_FILES} are taken at once"
        },
        help_text="A result file; several parts of this name form one sweep.",
    )
    model = Name(
        default=None, allow_null=True, help_text="Name of the model that was measured; needed to store."
    )
    variant = Name(
        default=None, allow_null=True, help_text="Name of its variant. Left out: the model's only one."
    )
    profile = Name(
        default=None,
        allow_null=True,
        help_text="Name of the bench profile. Left out: the model's default; without a model, the usual SLO: "
        "p95 TTFT up to 500 ms, p95 TPOT up to 50 ms.",
    )
    measured_at = Moment(
        default=None,
        allow_null=True,
        help_text="When it was measured, for files that do not say it: ISO 8601, without a zone in UTC, not"
        " in the future. Left out: the time of the import.",
    )
    dry_run = Flag(help_text="true: show what the files say, and store nothing.")
    force = Flag(help_text="true: points of another shape than the profile's count too, with a warning.")
    leave_out_broken = Flag(
        help_text="true: files that are broken and points of another shape are left out on purpose; "
        "otherwise each of them refuses the whole."
    )


class SweepSerializer(serializers.Serializer[Any]):
    """The points of one kind of arrival, and what they show. null: not known."""

    arrival = serializers.CharField(allow_null=True, help_text="poisson, concurrency, or not told.")
    levels = serializers.IntegerField(help_text="How many points.")
    tok_per_sec = serializers.FloatField(allow_null=True, help_text="Throughput at the SLO.")
    bound = serializers.CharField(allow_null=True, help_text="edge: a higher load failed; floor: none did.")
    load = serializers.FloatField(allow_null=True, help_text="The load of the figure: requests/s or streams.")
    bracket = serializers.CharField(help_text="The figure and the next level tried, in words.")
    warnings = serializers.ListField(child=serializers.CharField())
    counts = serializers.BooleanField(help_text="Whether a measurement would rest on this sweep.")


class FileResultSerializer(serializers.Serializer[Any]):
    """What one file says."""

    file = serializers.CharField(help_text="Its name, as a label.")
    tool = serializers.CharField(allow_null=True, help_text="The load generator that wrote it.")
    points = serializers.ListField(
        child=serializers.DictField(child=serializers.JSONField()),
        help_text="Load points: what the file tells of each, in ms and tokens/s, its `verdict` and `why`.",
    )
    warnings = serializers.ListField(child=serializers.CharField())
    error = serializers.CharField(
        allow_null=True, help_text="Why it cannot be read: the place, and what was expected."
    )


class PreviewLevelSerializer(serializers.Serializer[Any]):
    """A load point of the sweep that counts, as it would be stored."""

    file = serializers.CharField(help_text="The file that tells it.")
    place = serializers.CharField(help_text="Where in the file; empty where the file is that point.")
    verdict = serializers.CharField(help_text="pass, fail, unknown or invalid.")
    why = serializers.CharField(help_text="Why, in words.")
    observed = serializers.DictField(
        child=serializers.JSONField(), help_text="What was seen, as a measurement's levels have it."
    )


class PreviewSloSerializer(serializers.Serializer[Any]):
    """The SLO that judged. null: no limit."""

    ttft_ms = serializers.FloatField(allow_null=True)
    itl_ms = serializers.FloatField(allow_null=True, help_text="TPOT of a request.")
    e2e_ms = serializers.FloatField(allow_null=True)
    percentile = serializers.FloatField(help_text="Percent of the requests that must meet every limit.")


class PreviewSerializer(serializers.Serializer[Any]):
    """What result files say together."""

    files = FileResultSerializer(many=True)
    sweeps = SweepSerializer(many=True)
    storable = serializers.BooleanField(help_text="Whether a measurement may be stored from this.")
    refused = serializers.ListField(
        child=serializers.CharField(), help_text="Why it may not, one line each thing."
    )
    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="What would stand beside the measurement."
    )
    levels = PreviewLevelSerializer(
        many=True, help_text="The points of the sweep that counts; without one, of the largest."
    )
    slo = PreviewSloSerializer(help_text="The SLO that judged the points.")
    measured_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When the measurement was taken that this would be; null: it would be none.",
    )
    declared_at = serializers.DateTimeField(
        allow_null=True, help_text="The time that was declared for files that do not say it."
    )


class StoredSerializer(serializers.Serializer[Any]):
    """A measurement that was stored from files."""

    measurement = MeasurementSerializer(read_only=True)
    preview = PreviewSerializer(read_only=True)


class BenchFileSerializer(serializers.ModelSerializer[BenchFile]):
    """A file as it came."""

    class Meta:
        model = BenchFile
        fields = ["name", "size", "sha256"]
        read_only_fields = fields


class ImportSerializer(serializers.ModelSerializer[BenchImport]):
    """Result files given together, on their way to a measurement."""

    model = serializers.CharField(
        source="variant.model.name",
        default=None,
        allow_null=True,
        read_only=True,
        help_text="null: not told.",
    )
    variant = serializers.CharField(
        source="variant.name", default=None, allow_null=True, read_only=True, help_text="null: not told."
    )
    profile = serializers.CharField(
        source="profile.name", default=None, allow_null=True, read_only=True, help_text="null: the usual SLO."
    )
    requested_by: Any = serializers.SlugRelatedField(slug_field="username", read_only=True)
    files = serializers.SerializerMethodField(help_text="The files as they came.")
    measurement = serializers.IntegerField(
        source="measurement_id",
        allow_null=True,
        read_only=True,
        help_text="Id of what was stored, or null.",
    )

    class Meta:
        model = BenchImport
        fields = [
            "id",
            "model",
            "variant",
            "profile",
            "force",
            "leave_out_broken",
            "store_when_right",
            "state",
            "trigger",
            "requested_by",
            "progress",
            "files",
            "measurement",
            "queued_at",
            "finished_at",
            "error",
        ]
        read_only_fields = fields

    @extend_schema_field(BenchFileSerializer(many=True))
    def get_files(self, row: BenchImport) -> Any:
        return BenchFileSerializer((row.measurement or row).files.all(), many=True).data


class ImportDetailSerializer(ImportSerializer):
    """An import with what was found in its files."""

    preview = serializers.SerializerMethodField(help_text="What was found; null until the files are read.")

    class Meta(ImportSerializer.Meta):
        fields = [*ImportSerializer.Meta.fields, "preview"]
        read_only_fields = fields

    @extend_schema_field(PreviewSerializer(allow_null=True))
    def get_preview(self, row: BenchImport) -> Any:
        return row.preview if "files" in row.preview else None
