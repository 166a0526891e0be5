"""The count as people and scripts read it: plain JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sizing.inventory.kubernetes.counted import Counted, HostCount, NodeCount, ResourceCount
from sizing.inventory.kubernetes.facts import PodFacts
from sizing.inventory.kubernetes.groups import groups
from sizing.inventory.kubernetes.vendors import is_device

_MIB = 2**20

Revisions = dict[tuple[str, str], set[tuple[str, str] | None]]


def report(counted: Counted) -> dict[str, Any]:
    """Nodes by name, the pods that wait, ended or have lost their node, and the sums by resource.

    Memory is in MiB per device, CPU in millicores. `free_schedulable` counts only nodes that nothing closes
    to a pod with NVIDIA's usual toleration.
    """
    revisions = _revisions(counted)
    return {
        "nodes": {name: _node(node) for name, node in sorted(counted.nodes.items())},
        "cluster": _cluster(counted),
        "pods_ignored": [{"pod": pod.key, "why": _ended(pod)} for pod in _by_key(counted.ended)],
        "pods_unplaced": [_waiting(pod, counted, revisions) for pod in _by_key(counted.unplaced)],
        "orphan_pods": [_placed(pod, counted) for pod in _by_key(counted.orphans)],
        "soon_free": [_placed(pod, counted) for pod in _by_key(counted.terminating)],
        "groups": groups(counted),
        "warnings": list(counted.warnings),
    }


def _by_key(pods: list[PodFacts]) -> list[PodFacts]:
    return sorted(pods, key=lambda pod: pod.key)


def _node(node: NodeCount) -> dict[str, Any]:
    return {
        "vendor": node.vendor,
        "type": node.type,
        "memory_mib_per_device": node.memory_mib,
        "physical_devices": node.physical,
        "resources": {name: _resource(numbers) for name, numbers in node.resources.items()},
        "schedulable": node.schedulable,
        "blocked_by": list(node.blocked),
        "say": node.say,
        **node.details,
        "host": _host(node.host),
    }


def _resource(numbers: ResourceCount) -> dict[str, int]:
    told = {
        "capacity": numbers.capacity,
        "allocatable": numbers.allocatable,
        "used": numbers.used,
        "free": numbers.free,
    }
    if numbers.overcommitted:
        told["overcommitted"] = numbers.overcommitted
    return told


def _host(host: HostCount) -> dict[str, dict[str, int | None]]:
    def told(allocatable: int | None, used: int, unit: int) -> dict[str, int | None]:
        free = None if allocatable is None else max(0, allocatable - used) // unit
        whole = None if allocatable is None else allocatable // unit
        return {"allocatable": whole, "used": -(-used // unit), "free": free}

    return {
        "cpu_milli": told(host.cpu, host.cpu_used, 1),
        "memory_mib": told(host.memory, host.memory_used, _MIB),
        "pods": told(host.pods, host.pods_used, 1),
    }


def _cluster(counted: Counted) -> dict[str, dict[str, int]]:
    sums: dict[str, dict[str, int]] = {}
    for node in counted.nodes.values():
        for name, numbers in node.resources.items():
            row = sums.setdefault(
                name, dict.fromkeys(("allocatable", "used", "free_all", "free_schedulable"), 0)
            )
            row["allocatable"] += numbers.allocatable
            row["used"] += numbers.used
            row["free_all"] += numbers.free
            row["free_schedulable"] += numbers.free if node.schedulable else 0
    return dict(sorted(sums.items()))


def _ended(pod: PodFacts) -> str:
    return f"{pod.phase} ({pod.reason}): holds nothing" if pod.reason else f"{pod.phase}: holds nothing"


def _request(pod: PodFacts, counted: Counted) -> dict[str, int]:
    """What a pod asks for: its resources, else its claims by device class or driver."""
    plain = {name: n for name, n in sorted(pod.requests.items()) if n and is_device(name)}
    if plain:
        return plain
    told: dict[str, int] = {}
    for need in counted.needs.get(pod.key, ()):
        told[need.resource] = told.get(need.resource, 0) + need.count
    return told


def _placed(pod: PodFacts, counted: Counted) -> dict[str, Any]:
    return {"pod": pod.key, "node": pod.node, "request": _request(pod, counted)}


def _waiting(pod: PodFacts, counted: Counted, revisions: Revisions) -> dict[str, Any]:
    why = "; ".join(_why(pod, counted, revisions))
    return {"pod": pod.key, "request": _request(pod, counted)} | ({"why": why} if why else {})


def _why(pod: PodFacts, counted: Counted, revisions: Revisions) -> Iterator[str]:
    """Why a pod waits, as far as it shows."""
    if pod.deleting:
        yield "being deleted before it was placed"
    if pod.gates:
        yield f"scheduling gate {', '.join(pod.gates)}"
        return
    if pod.nominated:
        yield f"nominated to node {pod.nominated}, waits for its victims to end"
    workload = _workload(pod, counted)
    if workload and revisions.get((pod.namespace, workload), set()) - {pod.owner}:
        yield "surge pod of a rolling update: a pod of the old revision still holds its devices"
    elif pod.reason and not pod.nominated:
        yield pod.reason


def _revisions(counted: Counted) -> Revisions:
    """Of each Deployment the ReplicaSets whose pods hold devices."""
    found: Revisions = {}
    for pod in counted.listing.pods.values():
        if pod.bound and pod.key in counted.needs:
            workload = _workload(pod, counted)
            if workload:
                found.setdefault((pod.namespace, workload), set()).add(pod.owner)
    return found


def _workload(pod: PodFacts, counted: Counted) -> str:
    """The Deployment of a pod: its ReplicaSet's owner, else that one's name without its hash."""
    if pod.owner is None or pod.owner[0] != "ReplicaSet":
        return ""
    owner = counted.listing.owners.get(("ReplicaSet", pod.namespace, pod.owner[1]))
    if owner is not None:
        return owner[1]
    name, _, revision = pod.owner[1].rpartition("-")
    return name if revision == pod.labels.get("pod-template-hash") else ""
