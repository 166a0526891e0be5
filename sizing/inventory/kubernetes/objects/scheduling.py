"""Objects that say how pods are grouped, ranked and protected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sizing.inventory.kubernetes.facts import BudgetFacts
from sizing.inventory.kubernetes.objects.pods import PREEMPTS
from sizing.inventory.kubernetes.texts import (
    NotTakenError,
    expressions,
    labels,
    line,
    mapping,
    mappings,
    name,
    whole,
)

SYSTEM_CLASSES = {
    "system-cluster-critical": (2_000_000_000, PREEMPTS),
    "system-node-critical": (2_000_001_000, PREEMPTS),
}
"""Priority classes that every cluster has
(https://kubernetes.io/docs/tasks/administer-cluster/guaranteed-scheduling-critical-addon-pods/)."""


def read_budget(item: Mapping[str, Any]) -> BudgetFacts:
    """A PodDisruptionBudget; raises `NotTakenError` where it protects nothing."""
    namespace, named = namespaced(item)
    spec = mapping(item.get("spec"))
    selector = spec.get("selector")
    if not isinstance(selector, dict):
        raise NotTakenError("it has no selector, so it protects no pod")
    status = mapping(item.get("status"))
    frozen = _could_not_be_worked_out(status)
    return BudgetFacts(
        namespace=namespace,
        name=named,
        match=labels(selector.get("matchLabels")),
        expressions=expressions(selector.get("matchExpressions")),
        min_available=line(spec.get("minAvailable")),
        max_unavailable=line(spec.get("maxUnavailable")),
        desired_healthy=_trusted(status, frozen),
        frozen=frozen,
    )


def _trusted(status: Mapping[str, Any], frozen: bool) -> int | None:
    """The healthy pods that the cluster wants; None before it has counted the pods, or where it could not."""
    expected = whole(status.get("expectedPods"))
    return None if frozen or expected == 0 else whole(status.get("desiredHealthy"))


def _could_not_be_worked_out(status: Mapping[str, Any]) -> bool:
    """Whether the controller failed, as where nothing tells how many pods an owner should have.

    It then lets no pod go, and the other figures are those of before
    (https://kubernetes.io/docs/reference/kubernetes-api/policy-resources/pod-disruption-budget-v1/).
    """
    failed = any(
        one.get("type") == "DisruptionAllowed" and one.get("reason") == "SyncFailed"
        for one in mappings(status.get("conditions"))
    )
    return failed and not whole(status.get("disruptionsAllowed"))


def read_priority_class(item: Mapping[str, Any]) -> tuple[int, str]:
    """Its value, and whether its pods preempt."""
    value = whole(item.get("value"))
    if value is None:
        raise NotTakenError("its value is no whole number")
    return value, line(item.get("preemptionPolicy")) or PREEMPTS


def read_group_size(item: Mapping[str, Any]) -> int:
    """Pods of one whole group: of a LeaderWorkerSet its size, of a RayCluster its head and all workers.

    KubeRay keeps the workers within their bounds
    (https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/config.html).
    """
    spec = mapping(item.get("spec"))
    if item.get("kind") == "LeaderWorkerSet":
        return max(_number(mapping(spec.get("leaderWorkerTemplate")).get("size"), 1), 1)
    return 1 + sum(_workers(group) for group in mappings(spec.get("workerGroupSpecs")))


def _workers(group: Mapping[str, Any]) -> int:
    if group.get("suspend") is True:
        return 0
    least, most = _number(group.get("minReplicas"), 0), _number(group.get("maxReplicas"), 2**31)
    replicas = min(max(_number(group.get("replicas"), least), least), most)
    return replicas * _number(group.get("numOfHosts"), 1)


def _number(value: Any, otherwise: int) -> int:
    found = whole(value)
    return otherwise if found is None else max(found, 0)


def namespaced(item: Mapping[str, Any]) -> tuple[str, str]:
    """Namespace and name of an object; raises `NotTakenError`."""
    metadata = mapping(item.get("metadata"))
    namespace = name(metadata.get("namespace") or "default", "its namespace")
    return namespace, name(metadata.get("name"))
