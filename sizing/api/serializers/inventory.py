"""The inventory document, for description only: `sizing.inventory` reads and writes it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from sizing.api.serializers.catalog import ModelSerializer, ProfileSerializer
from sizing.api.serializers.fleet import NodeSerializer, ReplicaSerializer
from sizing.api.serializers.measurement import MeasurementSerializer, TargetSerializer


class InventorySerializer(serializers.Serializer[Any]):
    """A whole inventory, in the form of the inventory file."""

    version = serializers.IntegerField(min_value=1, max_value=1)
    nodes = NodeSerializer(many=True, required=False)
    profiles = ProfileSerializer(many=True, required=False)
    models = ModelSerializer(many=True, required=False)
    measurements = MeasurementSerializer(many=True, required=False)
    replicas = ReplicaSerializer(many=True, required=False)
    targets = TargetSerializer(many=True, required=False)


class InventoryReportSerializer(serializers.Serializer[Any]):
    """What loading a document changed."""

    created = serializers.DictField(child=serializers.IntegerField(), help_text="Objects made, by kind.")
    updated = serializers.DictField(child=serializers.IntegerField(), help_text="Objects changed, by kind.")
    removed = serializers.DictField(child=serializers.IntegerField(), help_text="Objects removed, by kind.")
    unchanged = serializers.DictField(child=serializers.IntegerField(), help_text="Objects left as they are.")
    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="What was accepted but looks odd, each with its path."
    )
