"""The forms of the resources: what is read and what may be written."""

from sizing.api.serializers.answer import AnswerSerializer, ErrorSerializer
from sizing.api.serializers.catalog import ModelSerializer, ProfileSerializer, VariantSerializer
from sizing.api.serializers.cluster import ClusterOutcomeSerializer, ClusterStateSerializer
from sizing.api.serializers.fleet import NodeSerializer, ReplicaSerializer
from sizing.api.serializers.imports import (
    ImportDetailSerializer,
    ImportSerializer,
    PreviewSerializer,
    StoredSerializer,
    UploadSerializer,
)
from sizing.api.serializers.inventory import InventoryReportSerializer, InventorySerializer
from sizing.api.serializers.kept_answer import (
    KeptAnswerDetailSerializer,
    KeptAnswerSerializer,
    ReplaySerializer,
)
from sizing.api.serializers.measurement import MeasurementSerializer, TargetSerializer
from sizing.api.serializers.refresh import RefreshOptionsSerializer, RefreshSerializer

__all__ = [
    "AnswerSerializer",
    "ClusterOutcomeSerializer",
    "ClusterStateSerializer",
    "ErrorSerializer",
    "ImportDetailSerializer",
    "ImportSerializer",
    "InventoryReportSerializer",
    "InventorySerializer",
    "KeptAnswerDetailSerializer",
    "KeptAnswerSerializer",
    "MeasurementSerializer",
    "ModelSerializer",
    "NodeSerializer",
    "PreviewSerializer",
    "ProfileSerializer",
    "RefreshOptionsSerializer",
    "RefreshSerializer",
    "ReplaySerializer",
    "ReplicaSerializer",
    "StoredSerializer",
    "TargetSerializer",
    "UploadSerializer",
    "VariantSerializer",
]
