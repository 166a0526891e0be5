"""One pod, or a group of pods, as a replica: its state, its priority, its address."""

from __future__ import annotations

from collections.abc import Sequence

from sizing.inventory.kubernetes.facts import ContainerFacts, PodFacts
from sizing.inventory.kubernetes.mapping.commands import serving_of
from sizing.inventory.kubernetes.mapping.identity import Identity
from sizing.inventory.kubernetes.mapping.mapped import MappedReplica, Member
from sizing.models.fields import endpoint_problem

BENCHABLE = "llmgw-admin/benchable"


def replica_of(name: str, members: Sequence[Member], identity: Identity, missing: int) -> MappedReplica:
    """The members, leader first, as a replica."""
    leader = members[0].pod
    started = [m.pod.started_at for m in members if m.pod.started_at is not None]
    return MappedReplica(
        name=name,
        model=identity.model,
        variant=identity.variant,
        by=identity.by,
        members=tuple(members),
        state=state_of(members, missing),
        missing=missing,
        priority=leader.priority,
        started_at=min(started, default=None),
        endpoint=endpoint_of(leader) if identity.workload == "model" else "",
        benchable=_benchable(leader),
    )


def state_of(members: Sequence[Member], missing: int) -> str:
    """`pending` while no device is held; a group that is not whole on its nodes is `failed`, for it serves
    nothing and holds what it has."""
    if not any(m.needs and m.pod.bound for m in members):
        return "pending"
    if any(m.pod.deleting for m in members):
        return "draining"
    if missing or not all(m.pod.bound for m in members):
        return "failed"
    return "ready" if all(m.pod.ready for m in members) else "starting"


def endpoint_of(pod: PodFacts) -> str:
    """The address of the server in the pod, where its IP and port are told; else empty."""
    serving = serving_of(pod.containers)
    port = serving.port if serving else None
    if port is None:
        port = _container_port([serving.container] if serving else pod.containers)
    if not pod.ip or port is None:
        return ""
    host = f"[{pod.ip}]" if ":" in pod.ip else pod.ip
    endpoint = f"http://{host}:{port}/v1"
    return "" if endpoint_problem(endpoint) else endpoint


def _container_port(containers: Sequence[ContainerFacts]) -> int | None:
    """The port that is named http, else the only one."""
    ports = [port for c in containers for port in c.ports]
    for name, number in ports:
        if name == "http" or name.startswith("http-"):
            return number
    return ports[0][1] if len(ports) == 1 else None


def _benchable(pod: PodFacts) -> bool | None:
    told = pod.labels.get(BENCHABLE) or pod.annotations.get(BENCHABLE, "")
    return {"true": True, "false": False}.get(told.strip().lower())
