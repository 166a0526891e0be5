"""Models, variants and profiles in the words of the inventory file."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from rest_framework import serializers

from sizing.api.serializers.fields import (
    Amount,
    Choice,
    Distinct,
    KeptBy,
    ModelName,
    Name,
    Part,
    Ref,
    Strict,
    Text,
    Whole,
)
from sizing.api.serializers.kubernetes import LabelKey, Labels, Tolerations
from sizing.models import BenchProfile, ServedModel
from sizing.models.catalog import PRIORITY_LIMIT


class _VariantFields(serializers.Serializer):  # type: ignore[type-arg]
    id = serializers.IntegerField(read_only=True)
    name = Name(help_text="Unique within its model.")
    nodes = Whole(1, default=1, help_text="Nodes that one replica spans.")
    gpus = Whole(1, default=1, help_text="GPUs on each node.")
    gpu_memory_mib = Whole(
        1, default=None, allow_null=True, help_text="Claim on each GPU. The share null too: the whole GPU."
    )
    gpu_memory_fraction = Amount(
        high=1,
        above=True,
        default=None,
        allow_null=True,
        help_text="Claim as a share of the GPU's memory, in (0, 1].",
    )
    gpu_types = Distinct(child=Name(), default=list, help_text="Empty: any type.")
    node_selector = Labels(default=dict, help_text="Labels that a node must carry.")
    tolerations = Tolerations(default=list, help_text="In the form of Kubernetes.")
    cpu_millis = Whole(default=0, help_text="Host CPU on each node, in millicores.")
    memory_mib = Whole(default=0, help_text="Host memory on each node, in MiB.")
    topology_key = LabelKey(
        default=None,
        allow_null=True,
        help_text="With several nodes: all nodes of a replica share this label's value.",
    )
    source = KeptBy()  # type: ignore[assignment]


class ModelVariant(_VariantFields, Part):
    """One way to run a replica of the model."""


class VariantSerializer(_VariantFields, Strict):
    """One way to run a replica of a model."""

    model = Ref("model.name", help_text="Name of the model.")
    position = Whole(
        required=False, help_text="Order of preference, lowest first. Left out: after the model's others."
    )


class ModelSerializer(Strict):
    """A served model with its variants."""

    id = serializers.IntegerField(read_only=True)
    name = ModelName(help_text="Slashes and colons may occur.")
    priority = Whole(-PRIORITY_LIMIT - 1, PRIORITY_LIMIT, default=0, help_text="Higher is more important.")
    preemption_policy = Choice(
        choices=ServedModel.PreemptionPolicy.values,
        default=ServedModel.PreemptionPolicy.LOWER.value,
        help_text="Whether it may ask for replicas of lower priority to stop.",
    )
    min_replicas = Whole(default=0, help_text="Preemption never takes the model below this.")
    max_replicas = Whole(default=None, allow_null=True, help_text="null: no limit.")
    default_profile = Ref(
        "default_profile.name", default=None, allow_null=True, help_text="Name of a bench profile."
    )
    workload = Choice(
        choices=ServedModel.Workload.values,
        default=ServedModel.Workload.MODEL.value,
        help_text="other: holds GPUs, is no LLM.",
    )
    owner = Text(max_length=255, default="", allow_blank=True, help_text="Free text.")
    source = KeptBy()  # type: ignore[assignment]
    variants = ModelVariant(many=True, default=list, help_text="In order of preference.")


class SloSerializer(Part):
    """The limits that a replica must keep; at least one."""

    ttft_ms = Amount(above=True, default=None, allow_null=True, help_text="Time to the first token, in ms.")
    itl_ms = Amount(above=True, default=None, allow_null=True, help_text="Time between tokens, in ms.")
    e2e_ms = Amount(above=True, default=None, allow_null=True, help_text="Time to the last token, in ms.")
    percentile = Amount(
        high=100,
        above=True,
        default=Decimal(95),
        help_text="Share of the requests that must keep every limit, in percent.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if all(attrs.get(limit) is None for limit in ("ttft_ms", "itl_ms", "e2e_ms")):
            raise serializers.ValidationError("must have at least one limit of ttft_ms, itl_ms, e2e_ms")
        return attrs


class ProfileSerializer(Strict):
    """A workload and the SLO that a replica must meet under it."""

    id = serializers.IntegerField(read_only=True)
    name = Name()
    input_tokens = Whole(1, help_text="Of each request.")
    output_tokens = Whole(1, help_text="Of each request.")
    slo = SloSerializer(source="*")
    arrival = Choice(
        choices=BenchProfile.Arrival.values,
        default=BenchProfile.Arrival.POISSON.value,
        help_text="How the load of a measurement arrives.",
    )
    refresh_every_h = Amount(
        above=True,
        default=None,
        allow_null=True,
        help_text="Also the age in hours at which a measurement is stale. null: by hand only, never stale.",
    )
