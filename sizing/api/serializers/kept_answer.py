"""Answers that are kept, and what comes of computing one again."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from sizing.models import Answer


class KeptAnswerSerializer(serializers.ModelSerializer[Answer]):
    """An answer that somebody was given, in short."""

    asked_by = serializers.CharField(
        source="asked_by_name", help_text="Name of the account as it was; empty: a command."
    )
    profile = serializers.CharField(help_text="As asked; empty: none was named.")
    variant = serializers.CharField(help_text="As asked; empty: none was named.")
    tokens_per_sec = serializers.CharField(help_text="The number just as it was asked.")
    utilization = serializers.CharField(help_text="The number just as it was asked.")
    as_if: Any = serializers.ListField(child=serializers.CharField(), help_text="What it supposes, in order.")
    needed = serializers.IntegerField(help_text="Replicas that serve what was asked.")
    current = serializers.IntegerField(help_text="Replicas that were starting or ready.")
    more = serializers.IntegerField(help_text="Replicas that were missing.")
    room = serializers.IntegerField(help_text="How many more could be had.")
    replayable = serializers.SerializerMethodField(
        help_text="Whether the inventory that it rests on is kept."
    )

    class Meta:
        model = Answer
        fields = (
            *("id", "asked_at", "channel", "asked_by"),
            *("model", "profile", "variant", "tokens_per_sec", "utilization", "as_if"),
            *("needed", "current", "more", "room", "fits", "revision", "replayable"),
        )
        read_only_fields = fields

    def get_replayable(self, answer: Answer) -> bool:
        return answer.inventory_id is not None


class MeasuredThenSerializer(serializers.Serializer[Any]):
    """The measurement that an answer rests on, as it was then."""

    model = serializers.CharField()
    variant = serializers.CharField()
    profile = serializers.CharField()
    tok_per_sec = serializers.CharField(help_text="Exactly, as text.")
    measured_at = serializers.DateTimeField()
    source = serializers.CharField()  # type: ignore[assignment]
    bound = serializers.CharField(allow_null=True)
    engine = serializers.CharField(allow_blank=True)


class KeptAnswerDetailSerializer(KeptAnswerSerializer):
    """An answer that somebody was given, with its result."""

    measurement = serializers.IntegerField(
        source="measurement_id", allow_null=True, help_text="Id of the measurement; null once that is gone."
    )
    measured = MeasuredThenSerializer(help_text="What that measurement said.")
    result = serializers.DictField(
        child=serializers.JSONField(),
        help_text="The answer as `models/{name}/target` gave it, without `age_s` and `nodes`; of more than "
        "1,000 victims the first.",
    )

    needed = serializers.IntegerField(source="result.needed")
    current = serializers.IntegerField(source="result.current")
    more = serializers.IntegerField(source="result.more")
    room = serializers.IntegerField(source="result.room")

    class Meta:
        model = Answer
        fields = (*KeptAnswerSerializer.Meta.fields, "measurement", "measured", "result")
        read_only_fields = fields


class AnswerDifferenceSerializer(serializers.Serializer[Any]):
    """Something of an answer that is other today."""

    path = serializers.CharField(help_text="Its place in the result, as in `blocked[0]`.")
    before = serializers.JSONField(allow_null=True, help_text="null: it was not there.")
    now = serializers.JSONField(allow_null=True, help_text="null: it is not there.")


class ReplaySerializer(serializers.Serializer[Any]):
    """An answer computed again on the inventory that it rested on, as of the time when it was asked."""

    same = serializers.BooleanField(help_text="Whether it is the answer that was given.")
    differences = AnswerDifferenceSerializer(many=True, help_text="What differs, at most 100 places.")
    error = serializers.CharField(help_text="Why the question has no answer any more, or empty.")
    result = serializers.DictField(
        child=serializers.JSONField(), allow_null=True, help_text="The answer of today's code."
    )
