"""Measurements and targets."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.utils import timezone
from rest_framework import serializers

from sizing.api.serializers.fields import Amount, Choice, Moment, Ref, Strict, Text, Yes
from sizing.api.serializers.level import LevelSerializer
from sizing.measuring.staleness import Look
from sizing.models import Measurement

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
    stale_reason = serializers.SerializerMethodField(help_text="Why it is stale; empty where it is not.")
    bracket = Text(
        read_only=True, help_text="The figure and the next level tried, in words; empty where not known."
    )
    generator = Text(read_only=True, help_text="What made the load, and its version; empty where not known.")
    workload = serializers.DictField(
        child=serializers.JSONField(),
        read_only=True,
        help_text="What was asked: input_tokens, output_tokens, arrival, seed, and `alone`, what one request "
        "alone told. Empty where not known.",
    )
    replica = Text(source="replica_name", read_only=True, help_text="Name of the replica measured, or empty.")
    gpu_type = Text(read_only=True, help_text="Type of the GPUs that it was measured on, or empty.")
    refresh = serializers.IntegerField(
        source="refresh_id", read_only=True, allow_null=True, help_text="Id of the run that took it, or null."
    )
    levels = LevelSerializer(
        many=True, read_only=True, help_text="The levels that it rests on; empty where entered by hand."
    )

    def get_stale_reason(self, measurement: Measurement) -> str:
        context: dict[str, Any] = self.context  # type: ignore[assignment]
        look: Look = context.setdefault("look", None) or Look()
        context["look"] = look  # one for all of an answer
        return look.reason(measurement.pk, measurement.profile.name, measurement.measured_at)


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
