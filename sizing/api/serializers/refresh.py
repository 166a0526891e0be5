"""Measurement runs: asked for, watched, and what they found."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from sizing.api.serializers.fields import Name, Strict
from sizing.api.serializers.level import LevelSerializer, LiveLevelSerializer
from sizing.models import Refresh


class RefreshOptionsSerializer(Strict):
    """What to measure; the body as a whole may be left out."""

    profile = Name(
        default=None,
        allow_null=True,
        help_text="Name of a bench profile. Left out: the model's default, else the only measured one.",
    )
    variant = Name(
        default=None,
        allow_null=True,
        help_text="Name of a variant. Left out: the replica's, else the first with a benchable replica.",
    )
    replica = Name(
        default=None, allow_null=True, help_text="Name of a benchable replica. Left out: any of the variant."
    )


class RefreshSerializer(serializers.ModelSerializer[Refresh]):
    """One run that measures a variant on a profile anew."""

    model = serializers.CharField(source="variant.model.name", help_text="Name of the model.")
    variant = serializers.CharField(source="variant.name", help_text="Name of the model's variant.")
    profile = serializers.CharField(source="profile.name", help_text="Name of the bench profile.")
    replica: Any = serializers.SlugRelatedField(
        slug_field="name", read_only=True, help_text="The one measured."
    )
    requested_by: Any = serializers.SlugRelatedField(slug_field="username", read_only=True)
    live = LiveLevelSerializer(
        read_only=True, allow_null=True, help_text="The level that is being measured; null where none is."
    )
    levels = serializers.SerializerMethodField(
        help_text="The levels that are finished; those of its measurement once that is stored."
    )
    measurement = serializers.SerializerMethodField(
        help_text="Id of the measurement that it took; null where none is stored."
    )

    class Meta:
        model = Refresh
        fields = [
            "id",
            "model",
            "variant",
            "profile",
            "replica",
            "state",
            "trigger",
            "requested_by",
            "save_result",
            "attempts",
            "progress",
            "message",
            "live",
            "levels",
            "measurement",
            "cancel_requested",
            "queued_at",
            "started_at",
            "heartbeat_at",
            "finished_at",
            "error",
        ]
        read_only_fields = fields

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_measurement(self, row: Refresh) -> int | None:
        stored = getattr(row, "measurement", None)
        return stored.pk if stored else None

    @extend_schema_field(LevelSerializer(many=True))
    def get_levels(self, row: Refresh) -> Any:
        stored = getattr(row, "measurement", None)
        rows: Any = (stored or row).levels.all()
        return LevelSerializer(rows, many=True).data
