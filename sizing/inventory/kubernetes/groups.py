"""Pods that only work together: the groups of a LeaderWorkerSet, a Ray cluster.

https://lws.sigs.k8s.io/docs/reference/labels-annotations-and-environment-variables/ and KubeRay's labels.
"""

from __future__ import annotations

from typing import Any

from sizing.inventory.kubernetes.counted import Counted
from sizing.inventory.kubernetes.facts import Listing, PodFacts
from sizing.inventory.kubernetes.vendors import is_device

_LWS = "leaderworkerset.sigs.k8s.io"
_RAY = "ray.io/cluster"


def groups(counted: Counted) -> list[dict[str, Any]]:
    """Every group that holds or waits for devices: its pods, how many are ready, and its size when whole."""
    found: dict[str, list[PodFacts]] = {}
    for pod in counted.listing.pods.values():
        name = group_of(pod) if not pod.ended else ""
        if name:
            found.setdefault(name, []).append(pod)
    return [
        _as_report(name, pods, counted.listing)
        for name, pods in sorted(found.items())
        if any(pod.key in counted.needs for pod in pods)
    ]


def group_of(pod: PodFacts) -> str:
    """`namespace/name-index` of the group that a pod is part of; empty where it stands alone."""
    name = pod.labels.get(f"{_LWS}/name")
    if name:
        index = pod.labels.get(f"{_LWS}/group-index")
        return f"{pod.namespace}/{name}-{index}" if index else f"{pod.namespace}/{name}"
    cluster = pod.labels.get(_RAY)
    return f"{pod.namespace}/{cluster}" if cluster else ""


def _as_report(name: str, pods: list[PodFacts], listing: Listing) -> dict[str, Any]:
    request: dict[str, int] = {}
    for pod in pods:
        for resource, number in pod.requests.items():
            if number and is_device(resource):
                request[resource] = request.get(resource, 0) + number
    return {
        "group": name,
        "pods": len(pods),
        "ready": sum(pod.ready and not pod.deleting for pod in pods),
        "size": _size(pods[0], listing),
        "nodes": sorted({pod.node for pod in pods if pod.node}),
        "request": dict(sorted(request.items())),
    }


def _size(pod: PodFacts, listing: Listing) -> int | None:
    """The pods of the whole group; None where nothing tells it."""
    told = pod.annotations.get(f"{_LWS}/size") or pod.labels.get(f"{_LWS}/size") or ""
    if told.isascii() and told.isdecimal():
        return int(told)
    name = pod.labels.get(f"{_LWS}/name")
    if name:
        return listing.sizes.get(("LeaderWorkerSet", pod.namespace, name))
    return listing.sizes.get(("RayCluster", pod.namespace, pod.labels.get(_RAY, "")))
