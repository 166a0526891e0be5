"""What a cluster has and what is used of it, counted the slow way: the yardstick for the product's counting.

It goes by the public rules of Kubernetes alone (quantities: the `resource.Quantity` grammar; pods: "Resource
sharing within containers" of init and sidecar containers; pod-level resources; resizing in place; taints and
tolerations), on plain dictionaries and exact fractions. A pod's request is found by starting it step by step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Object = dict[str, Any]

QUANTITY = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?", re.ASCII)
POWERS = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
VENDORS = ("nvidia.com/", "amd.com/", "gpu.intel.com/", "habana.ai/", "google.com/tpu", "aws.amazon.com/")
GPU_LABELS = ("nvidia.com/gpu.present", "nvidia.com/gpu.product")
ASSUMED: Sequence[Object] = ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},)


# ---------------------------------------------------------------- quantities


def quantity(written: Any) -> Fraction:
    """The number that a quantity stands for; ValueError where it is none."""
    found = QUANTITY.fullmatch(str(written))
    if found is None or isinstance(written, bool):
        raise ValueError(f"{written!r} is no quantity")
    sign, number, suffix = found[1], found[2], found[3] or ""
    before, _, after = number.partition(".")
    value = Fraction(int(before + after or "0"), 10 ** len(after))
    if suffix in BINARY:
        value *= 1024 ** (BINARY.index(suffix) + 1)
    elif suffix in POWERS:
        value *= Fraction(10) ** POWERS[suffix]
    elif suffix:
        value *= Fraction(10) ** int(suffix[1:])
    return -value if sign == "-" else value


def units(resource: str, written: Any) -> int:
    """Thousandths of a core, bytes, or devices; a part of one is taken as one."""
    value = quantity(written) * (1000 if resource == "cpu" else 1)
    below = value.numerator // value.denominator
    return below if below == value else below + 1


# ---------------------------------------------------------------- one pod


def written_out(resources: Object | None) -> dict[str, int]:
    """Requests as amounts; what is not requested is asked for up to its limit."""
    limits = (resources or {}).get("limits") or {}
    requests = (resources or {}).get("requests") or {}
    found = {}
    for resource in {*limits, *requests}:
        written = requests[resource] if resource in requests else limits[resource]
        found[resource] = units(resource, written)
    return found


def larger(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {*one, *other}}


def asked(container: Object, pod: Object) -> dict[str, int]:
    """What a container asks for; while it is being resized, the largest of what it asks for, was given and
    has. A size that its node can never give it does not count."""
    status = pod.get("status") or {}
    found = written_out(container.get("resources"))
    [now] = [
        one
        for one in status.get("containerStatuses") or []
        if one["name"] == container.get("name") and "resources" in one
    ] or [None]
    if now is None:
        return found
    pending = [c for c in status.get("conditions") or [] if c["type"] == "PodResizePending"]
    if pending and pending[0]["reason"] == "Infeasible":
        found = {}
    for given in (now["resources"].get("requests"), now.get("allocatedResources")):
        found = larger(found, written_out({"requests": given}))
    return found


def moments(pod: Object) -> Iterator[list[Object]]:
    """The containers that run side by side, from moment to moment, while a pod starts."""
    running: list[Object] = []
    for container in pod["spec"].get("initContainers") or []:
        yield [*running, container]
        if container.get("restartPolicy") == "Always":
            running.append(container)
    yield [*running, *(pod["spec"].get("containers") or [])]


def request(pod: Object) -> dict[str, int]:
    """What a pod needs so that no moment of its start lacks anything, or says to need as a whole; with its
    overhead on top."""
    need: dict[str, int] = {}
    for together in moments(pod):
        now: dict[str, int] = {}
        for container in together:
            for resource, amount in asked(container, pod).items():
                now[resource] = now.get(resource, 0) + amount
        need = larger(need, now)
    need |= written_out({"requests": (pod["spec"].get("resources") or {}).get("requests")})
    for resource, written in (pod["spec"].get("overhead") or {}).items():
        need[resource] = need.get(resource, 0) + units(resource, written)
    return need


def holds(pod: Object) -> bool:
    """Whether it is booked on its node: bound, and not over; one that is being deleted still is."""
    phase = (pod.get("status") or {}).get("phase")
    return bool(pod["spec"].get("nodeName")) and phase != "Succeeded" and phase != "Failed"


# ---------------------------------------------------------------- one node


@dataclass
class Row:
    """One resource of a node."""

    capacity: int = 0
    allocatable: int = 0
    used: int = 0

    @property
    def free(self) -> int:
        return self.allocatable - self.used if self.allocatable > self.used else 0

    @property
    def overcommitted(self) -> int:
        return self.used - self.allocatable if self.used > self.allocatable else 0


@dataclass
class PlainNode:
    """A node counted. `rows` are its devices, `host` what it says of cpu, memory and pods."""

    labels: dict[str, str]
    taints: list[Object]
    ready: str
    cordoned: bool
    deleting: bool
    rows: dict[str, Row] = field(default_factory=dict)
    host: dict[str, Row] = field(default_factory=dict)

    def closing(self) -> list[Object]:
        """The taints that close it by themselves: not those by which Kubernetes only repeats the rest."""
        return [
            taint
            for taint in self.taints
            if taint["effect"] in ("NoSchedule", "NoExecute")
            and not (self.cordoned and taint["key"] == "node.kubernetes.io/unschedulable")
            and not (
                self.ready != "True"
                and taint["key"] in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
            )
        ]

    def codes(self) -> set[str]:
        """Why a pod that tolerates NVIDIA's taint cannot come here; empty where it can."""
        found = set()
        if self.ready != "True":
            found.add(f"not_ready:{self.ready}")
        if self.cordoned:
            found.add("cordoned")
        if self.deleting:
            found.add("deleting")
        for taint in self.closing():
            if not any(tolerates(toleration, taint) for toleration in ASSUMED):
                value = f"={taint['value']}" if taint.get("value") else ""
                found.add(f"taint:{taint['key']}{value}:{taint['effect']}")
        if not self.rows:
            labeled = any(label in self.labels for label in GPU_LABELS)
            found.add("no_device_plugin" if labeled else "no_gpu")
        elif all(row.allocatable == 0 for row in self.rows.values()):
            found.add("allocatable_zero")
        return found


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Whether a toleration answers to a taint."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def is_device(resource: str) -> bool:
    return resource.startswith(VENDORS)


def plain_node(one: Object) -> PlainNode:
    conditions = [c for c in one["status"].get("conditions") or [] if c["type"] == "Ready"]
    found = PlainNode(
        labels=one["metadata"].get("labels") or {},
        taints=one["spec"].get("taints") or [],
        ready=conditions[0]["status"] if conditions else "Unknown",
        cordoned=bool(one["spec"].get("unschedulable")),
        deleting="deletionTimestamp" in one["metadata"],
    )
    for column in ("capacity", "allocatable"):
        for resource, written in (one["status"].get(column) or {}).items():
            if is_device(resource):
                setattr(found.rows.setdefault(resource, Row()), column, units(resource, written))
            elif column == "allocatable" and resource in ("cpu", "memory", "pods"):
                found.host[resource] = Row(allocatable=units(resource, written))
    return found


# ---------------------------------------------------------------- the cluster


def count(objects: Sequence[Object]) -> dict[str, PlainNode]:
    """Every node of a cluster with what is used of it. What is listed twice is there once."""
    once = {one["metadata"]["uid"]: one for one in objects}.values()
    found = {one["metadata"]["name"]: plain_node(one) for one in once if one["kind"] == "Node"}
    for one in once:
        if one["kind"] == "Pod" and holds(one) and one["spec"]["nodeName"] in found:
            machine = found[one["spec"]["nodeName"]]
            for resource, amount in {**request(one), "pods": 1}.items():
                rows = machine.rows if is_device(resource) else machine.host
                if resource in rows:
                    rows[resource].used += amount
    return found


def names(objects: Sequence[Object], held: bool, known: bool = True) -> set[str]:
    """The pods (namespace/name) that ask for devices, by whether they are booked on a node, and on one that
    is listed; one that is over is neither."""
    listed = {one["metadata"]["name"] for one in objects if one["kind"] == "Node"}
    return {
        f"{one['metadata']['namespace']}/{one['metadata']['name']}"
        for one in objects
        if one["kind"] == "Pod"
        and one["status"].get("phase") not in ("Succeeded", "Failed")
        and holds(one) is held
        and (not held or (one["spec"]["nodeName"] in listed) is known)
        and any(is_device(resource) and amount for resource, amount in request(one).items())
    }
