"""A Node as facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sizing.inventory.kubernetes.facts import NodeFacts
from sizing.inventory.kubernetes.quantity import QuantityError, read_quantities
from sizing.inventory.kubernetes.texts import (
    NotTakenError,
    condition,
    kept_annotations,
    labels,
    line,
    mapping,
    moment,
    name,
    taints,
)

ANNOTATIONS = (
    "hami.io/",
    "4pd.io/",
    "volcano.sh",
    "scheduling.",
    "nvidia.com/",
    "leaderworkerset.sigs.k8s.io/",
    "ray.io/",
    "serving.kserve.io/",
    "llm-d.ai/",
    "llmgw-admin/",
)
"""Annotations that say something about devices or models; the others are not kept."""


def read_node(item: Mapping[str, Any]) -> NodeFacts:
    """Raises `NotTakenError` with the reason where it cannot be counted."""
    metadata, spec = mapping(item.get("metadata")), mapping(item.get("spec"))
    named = name(metadata.get("name"))
    status = item.get("status")
    if not isinstance(status, dict) or not status:
        raise NotTakenError("no status, so no capacity")
    try:
        capacity = read_quantities(status.get("capacity"))
        allocatable = read_quantities(status.get("allocatable"))
    except QuantityError as error:
        raise NotTakenError(str(error)) from None
    if not capacity and not allocatable:
        raise NotTakenError("its status tells no capacity")
    return NodeFacts(
        name=named,
        uid=line(metadata.get("uid")),
        labels=labels(metadata.get("labels")),
        annotations=kept_annotations(metadata.get("annotations"), ANNOTATIONS),
        taints=taints(spec.get("taints")),
        unschedulable=spec.get("unschedulable") is True,
        deleting=bool(metadata.get("deletionTimestamp")),
        ready=condition(status, "Ready") or "Unknown",
        created_at=moment(metadata.get("creationTimestamp")),
        capacity=capacity,
        allocatable=allocatable,
    )
