"""The forms of the resources: what is read and what may be written."""

from sizing.api.serializers.answer import AnswerSerializer, ErrorSerializer
from sizing.api.serializers.catalog import ModelSerializer, ProfileSerializer, VariantSerializer
from sizing.api.serializers.fleet import NodeSerializer, ReplicaSerializer
from sizing.api.serializers.inventory import InventoryReportSerializer, InventorySerializer
from sizing.api.serializers.measurement import (
    MeasurementSerializer,
    RefreshSerializer,
    TargetSerializer,
)

__all__ = [
    "AnswerSerializer",
    "ErrorSerializer",
    "InventoryReportSerializer",
    "InventorySerializer",
    "MeasurementSerializer",
    "ModelSerializer",
    "NodeSerializer",
    "ProfileSerializer",
    "RefreshSerializer",
    "ReplicaSerializer",
    "TargetSerializer",
    "VariantSerializer",
]
