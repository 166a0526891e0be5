"""Measurements, targets and refreshes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.utils import timezone
from rest_framework import serializers

from sizing.api.serializers.fields import Amount, Choice, Moment, Ref, Strict, Text, Yes
from sizing.models import Measurement, Refresh

LARGEST_RATE = 10**12


class MeasurementSerializer(Strict):
    """What one replica of a variant served at a profile's SLO."""

    id = serializers.IntegerField(read_only=True)
    model = Ref("variant.model.name", help_text="Name of the model.")
    variant = Ref("variant.name", help_text="Name of the model's variant.")
    profile = Ref("profile.name", help_text="Name of the bench profile.")
    tok_per_sec = Amount(high=LARGEST_RATE, help_text="Output tokens per second of the whole replica.")
    measured_at = Moment(default=timezone.now, help_text="Left out: now.")
    source = Text(max_length=255, default="manual")  # type: ignore[assignment]
    bound = Choice(
        choices=Measurement.Bound.values,
        default=None,
        allow_null=True,
        help_text="edge: a higher load failed; floor: none failed, so at least this; null: unknown.",
    )
    engine = Text(max_length=255, default="", allow_blank=True)
    warnings = serializers.ListField(child=Text(max_length=1000), default=list, max_length=100)
    slo_met = Yes(default=True, help_text="false: from a level that did not meet the SLO; it never counts.")
    stale_reason = Text(read_only=True, help_text="Why it is stale; empty where it is not.")


class TargetSerializer(Strict):
    """A saved wish: this model shall serve this many tokens per second."""

    id = serializers.IntegerField(read_only=True)
    model = Ref("model.name", help_text="Name of the model.")
    profile = Ref("profile.name", default=None, allow_null=True, help_text="null: the model's own.")
    variant = Ref(
        "variant.name", default=None, allow_null=True, help_text="null: the first that is measured."
    )
    utilization = Amount(
        high=1,
        above=True,
        default=Decimal(1),
        help_text="Share of the measured throughput to plan with, in (0, 1].",
    )
    tokens_per_sec = Amount(high=LARGEST_RATE, above=True)


class RefreshSerializer(serializers.ModelSerializer[Refresh]):
    """One run that measures a variant on a profile anew."""

    model = serializers.CharField(source="variant.model.name", help_text="Name of the model.")
    variant = serializers.CharField(source="variant.name", help_text="Name of the model's variant.")
    profile = serializers.CharField(source="profile.name", help_text="Name of the bench profile.")
    replica: Any = serializers.SlugRelatedField(
        slug_field="name", read_only=True, help_text="The one measured."
    )
    requested_by: Any = serializers.SlugRelatedField(slug_field="username", read_only=True)

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
            "attempts",
            "progress",
            "message",
            "cancel_requested",
            "queued_at",
            "started_at",
            "heartbeat_at",
            "finished_at",
            "error",
        ]
        read_only_fields = fields
