"""Nodes with their GPUs, and replicas with their placement."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from sizing.api.serializers.fields import (
    Amount,
    Choice,
    Distinct,
    Endpoint,
    KeptBy,
    Moment,
    Name,
    Part,
    Ref,
    Strict,
    Text,
    Whole,
    Yes,
)
from sizing.api.serializers.kubernetes import Labels, Taints
from sizing.inventory.node_checking import MOST_GPUS
from sizing.models import Replica
from sizing.models.catalog import PRIORITY_LIMIT


class GpuSerializer(Part):
    """A GPU of a node, or one slice of it."""

    index = Whole(
        required=False, help_text="Unique on its node. Left out: the next number after the highest so far."
    )
    uuid = Text(max_length=255, default="", allow_blank=True)
    type = Name(help_text="As the driver names it: NVIDIA-H100-80GB-HBM3.")
    memory_mib = Whole(1, allow_null=True, default=None, help_text="null: unknown.")
    healthy = Yes(default=True)
    used_outside_mib = Whole(default=0, help_text="Memory that processes other than replicas hold.")
    partition = Yes(default=False, help_text="A MIG slice, time slice or vGPU split.")
    count = Whole(
        1,
        MOST_GPUS,
        required=False,
        write_only=True,
        help_text="So many GPUs alike; goes without index and uuid.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.get("count", 1) > 1 and "index" in attrs:
            raise serializers.ValidationError({"count": ["must be 1 beside an index"]})
        if attrs.get("count", 1) > 1 and attrs.get("uuid"):
            raise serializers.ValidationError({"count": ["must be 1 beside a uuid"]})
        return attrs


class NodeSerializer(Strict):
    """A machine with its GPUs."""

    id = serializers.IntegerField(read_only=True)
    name = Name()
    ready = Yes(default=True)
    schedulable = Yes(default=True, help_text="false: cordoned.")
    stale = Yes(default=False, help_text="Not seen by the cluster's sync for too long.")
    labels = Labels(default=dict)
    taints = Taints(default=list)
    cpu_millis = Whole(
        default=None, allow_null=True, help_text="Host CPU for replicas, in millicores. null: not accounted."
    )
    memory_mib = Whole(default=None, allow_null=True, help_text="Host memory, likewise.")
    pods = Whole(default=None, allow_null=True, help_text="Limit of pods, likewise.")
    cost_per_hour = Amount(default=None, allow_null=True)
    source = KeptBy()  # type: ignore[assignment]
    gpus = GpuSerializer(many=True, default=list, help_text="By index.")


class PlacementSerializer(Part):
    """The GPUs that a replica holds on one node."""

    node = Name(help_text="Name of the node.")
    gpus = Distinct(child=Whole(), allow_empty=False, max_length=MOST_GPUS, help_text="Indexes of its GPUs.")


class ReplicaSerializer(Strict):
    """A running copy of a model, bound to named GPUs."""

    id = serializers.IntegerField(read_only=True)
    name = Name()
    model = Ref("variant.model.name", help_text="Name of the model.")
    variant = Ref("variant.name", help_text="Name of the model's variant.")
    state = Choice(choices=Replica.State.values, default=Replica.State.READY.value)
    started_at = Moment(default=None, allow_null=True)
    endpoint = Endpoint(
        max_length=500,
        default="",
        allow_blank=True,
        help_text="URL of its OpenAI interface: http or https, without a user, a query or a fragment.",
    )
    benchable = Yes(default=False, help_text="Measurements never touch a replica that is not marked.")
    priority = Whole(
        -PRIORITY_LIMIT - 1,
        PRIORITY_LIMIT,
        default=None,
        allow_null=True,
        help_text="Where it differs from its model's. null: the model's.",
    )
    source = KeptBy()  # type: ignore[assignment]
    placement = PlacementSerializer(
        many=True, default=list, help_text="May be empty only for pending, which holds nothing."
    )

    def to_representation(self, instance: Any) -> Any:
        if isinstance(instance, Replica):
            return super().to_representation(_Placed(instance))
        return super().to_representation(instance)


class _Placed:
    """A replica whose placement is in the form of the file; needs its placements prefetched."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        by_node: dict[str, list[int]] = {}
        for placement in replica.placements.all():
            by_node.setdefault(placement.gpu.node.name, []).append(placement.gpu.index)
        self.placement = [{"node": node, "gpus": sorted(by_node[node])} for node in sorted(by_node)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._replica, name)
