"""The answer of the target view and the errors, for description only: the services make them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

_Base = serializers.Serializer[Any]


class ErrorSerializer(_Base):
    """Every error."""

    error = serializers.CharField(help_text="One sentence for people.")
    code = serializers.CharField(help_text="A stable word for scripts: invalid, not_found, conflict, ...")
    fields = serializers.DictField(  # type: ignore[assignment]
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="What is wrong, by field or path.",
    )


class VictimSerializer(_Base):
    """A replica that would be stopped."""

    replica = serializers.CharField()
    model = serializers.CharField()
    priority = serializers.IntegerField()
    nodes = serializers.ListField(child=serializers.CharField())
    tok_per_sec = serializers.FloatField(allow_null=True, help_text="What is lost with it, where measured.")


class LossSerializer(_Base):
    """What a model would lose."""

    model = serializers.CharField()
    stopped = serializers.IntegerField()
    left = serializers.IntegerField()
    min_replicas = serializers.IntegerField()


class BoundSerializer(_Base):
    """What is proven where the victims are not proven to be the best choice; left out where they are."""

    gives = serializers.IntegerField(help_text="No choice gives more replicas.")
    priority = serializers.IntegerField(allow_null=True, help_text="None with as many has a lower highest.")
    victims = serializers.IntegerField(allow_null=True, help_text="None with as many has fewer victims.")


class PreemptionSerializer(_Base):
    """Which replicas would be stopped; advice only."""

    victims = VictimSerializer(many=True)
    models = LossSerializer(many=True)
    optimal = serializers.BooleanField(help_text="Proven: nobody fewer or less important would do.")
    why = serializers.ListField(
        child=serializers.CharField(), help_text="Why nobody of a lower priority would do."
    )
    bound = BoundSerializer(required=False)


class MeasurementUsedSerializer(_Base):
    """The measurement behind the answer."""

    measured_at = serializers.DateTimeField()
    age_s = serializers.IntegerField()
    stale = serializers.BooleanField()
    source = serializers.CharField()  # type: ignore[assignment]
    bound = serializers.CharField(allow_null=True)


class AfterSerializer(_Base):
    """A node once its victims stopped, before the new replicas start."""

    stops = serializers.ListField(child=serializers.CharField(), help_text="Victims on the node.")
    code = serializers.CharField()
    fits = serializers.IntegerField()
    numbers = serializers.DictField(child=serializers.JSONField())


class NodeReasonSerializer(_Base):
    """Why a node holds no more, or how many it does."""

    node = serializers.CharField()
    code = serializers.CharField(help_text="One primary code for each node; open where a replica fits.")
    fits = serializers.IntegerField(help_text="Replicas (or shares of one) that this node takes alone.")
    numbers = serializers.DictField(child=serializers.JSONField(), help_text="Quantities behind the code.")
    holders = serializers.ListField(child=serializers.CharField(), help_text="Replicas on the node.")
    preemption = serializers.JSONField(help_text="What preempting on this node gives, a code, or null.")
    after = AfterSerializer(allow_null=True, help_text="Where victims sit: the node once they stopped.")
    say = serializers.CharField(help_text="The code in words, with its quantities.")


class ChangeSerializer(_Base):
    """A change that was tried by asking again."""

    text = serializers.CharField()
    gain = serializers.IntegerField(help_text="How many more of the missing replicas it gives.")
    note = serializers.CharField(allow_blank=True)
    as_if = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Ask again with these added to as_if."
    )
    variant = serializers.CharField(required=False, help_text="Or ask again with this variant.")


class AnswerSerializer(_Base):
    """How many replicas are needed, how many there are, and whether the rest fits."""

    model = serializers.CharField()
    tok_per_sec = serializers.FloatField(help_text="As asked.")
    per_replica_tok_per_sec = serializers.FloatField(help_text="As measured, without utilization.")
    profile = serializers.CharField()
    variant = serializers.CharField()
    utilization = serializers.FloatField(help_text="Share of the measured throughput planned with.")
    as_if = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="What the answer supposes, in order; left out if nothing.",
    )
    needed = serializers.IntegerField(help_text="Replicas that serve what was asked.")
    current = serializers.IntegerField(help_text="Replicas starting or ready.")
    more = serializers.IntegerField(help_text="Replicas still missing.")
    surplus = serializers.IntegerField(help_text="Replicas that could be spared.")
    room = serializers.IntegerField(help_text="How many more replicas can be had.")
    free_room = serializers.IntegerField(help_text="How many of them without stopping anything.")
    by_preempting = serializers.IntegerField(help_text="How many of them by stopping others.")
    fits = serializers.BooleanField(help_text="Whether more is at most room.")
    blocked = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Why it does not fit; left out if it does."
    )
    changes = ChangeSerializer(
        many=True, required=False, help_text="The smallest changes that would help; left out if it fits."
    )
    preempts = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="Models that lose replicas; left out if none.",
    )
    preemption = PreemptionSerializer(
        allow_null=True, help_text="Null where nobody is asked to stop: it fits, or max_replicas forbids."
    )
    current_tok_per_sec = serializers.FloatField(help_text="What the current replicas serve, as measured.")
    measurement = MeasurementUsedSerializer()
    reasons = serializers.ListField(child=serializers.CharField(), help_text="Codes about the model itself.")
    warnings = serializers.ListField(child=serializers.CharField())
    nodes = NodeReasonSerializer(many=True, required=False, help_text="With explain=nodes: every node.")
    answer_id = serializers.UUIDField(
        required=False, help_text="What `answers/{id}` knows it by; left out where no answers are kept."
    )
