"""The cluster's nodes with their GPUs as entries of the inventory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sizing.domain.claims import claim_mib
from sizing.domain.gpu_types import type_key
from sizing.inventory.document import Document, GpuEntry, NodeEntry
from sizing.inventory.holding import holders_in
from sizing.inventory.kubernetes.closed import mig_reconfiguring
from sizing.inventory.kubernetes.counted import Counted, Device, NodeCount
from sizing.inventory.kubernetes.placing import Placed
from sizing.inventory.kubernetes.rows import UNKNOWN_MIB
from sizing.inventory.kubernetes.shapes import MIB
from sizing.inventory.kubernetes.variants import KUBERNETES
from sizing.models.fields import LARGEST_COUNT, NAME_LENGTH, name_problem


@dataclass(slots=True)
class Share:
    """What the replicas on a node take of its host by their variants, of what is used there."""

    cpu_millis: int = 0
    memory_mib: int = 0
    pods: int = 0


def node_entries(
    counted: Counted, placed: Placed, shares: Mapping[str, Share], stored: Document
) -> dict[str, NodeEntry]:
    """All nodes of the cluster, also those without devices, by name."""
    entries = {}
    uuids = _Uuids(counted.nodes[name] for name in sorted(counted.nodes))
    filled = _filled(stored)
    for name in sorted(counted.nodes):
        if name_problem(name):
            continue
        node = counted.nodes[name]
        facts = node.facts
        known = stored.nodes.get(name)
        entry = NodeEntry(
            name=name,
            ready=facts.ready == "True" and not facts.deleting and not mig_reconfiguring(facts),
            schedulable=not facts.unschedulable,
            labels=dict(facts.labels),
            taints=node.taints_that_count,
            cost_per_hour=known.cost_per_hour if known else None,
            source=KUBERNETES,
        )
        _set_host(entry, node, shares.get(name) or Share())
        entry.gpus = _gpus(node, placed.unhealthy.get(name, set()), (known and known.gpus) or {}, uuids)
        outside = placed.outside.get(name, {})
        for index, gpu in entry.gpus.items():
            if index in outside:
                gpu.used_outside_mib = outside[index]
            elif (name, index) in filled:
                gpu.used_outside_mib = 0
        entries[name] = entry
    return entries


def _filled(stored: Document) -> set[tuple[str, int]]:
    """The GPUs, by node and index, of which what is used outside is all that replicas leave, to the last MiB.

    This is how it is written that the cluster gives nothing more of a GPU; what people measure is less.
    """
    gpus = {
        (node.name, gpu.index): gpu
        for node in stored.nodes.values()
        if node.source == KUBERNETES
        for gpu in (node.gpus or {}).values()
        if gpu.used_outside_mib
    }
    if not gpus:
        return set()
    held = dict.fromkeys(gpus, 0)
    for holder in holders_in(stored):
        for node, indexes in holder.replica.placement:
            for place in ((node, index) for index in indexes):
                memory = gpus[place].memory_mib if place in gpus else None
                if memory is not None:
                    held[place] += claim_mib(holder.variant.spec, memory)
    return {
        place
        for place, gpu in gpus.items()
        if gpu.used_outside_mib == (UNKNOWN_MIB if gpu.memory_mib is None else gpu.memory_mib) - held[place]
    }


def _set_host(entry: NodeEntry, node: NodeCount, share: Share) -> None:
    """What replicas may use: what is left, and what they have of it, so that as much is free as in truth."""
    host = node.host
    if host.cpu is not None:
        entry.cpu_millis = _count(host.cpu - host.cpu_used + share.cpu_millis)
    if host.memory is not None:
        used = -(-host.memory_used // MIB)
        entry.memory_mib = _count(host.memory // MIB - used + share.memory_mib)
    if host.pods is not None:
        entry.pods = _count(host.pods - host.pods_used + share.pods)


def _count(number: int) -> int:
    return max(0, min(number, LARGEST_COUNT))


def _gpus(
    node: NodeCount, unhealthy: set[int], known: Mapping[int, GpuEntry], uuids: _Uuids
) -> dict[int, GpuEntry]:
    """A row for each device; what the cluster does not tell of a GPU stays as it was while its type does."""
    rows = {}
    devices = [(pool.resource, device) for pool in node.pools for device in pool.devices]
    for index, (resource, device) in enumerate(devices):
        before = known.get(index)
        if before is not None and type_key(before.type) != type_key(device.type):
            before = None
        rows[index] = GpuEntry(
            index=index,
            type=_printable(device.type) or _printable(resource) or "unknown",
            memory_mib=device.memory_mib or None,
            uuid=uuids.of(device, before),
            healthy=index not in unhealthy,
            used_outside_mib=before.used_outside_mib if before else 0,
            partition=device.partition,
        )
    return rows


def _printable(text: str) -> str:
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    return text.strip()[:NAME_LENGTH].strip()


class _Uuids:
    """Each uuid once: a list that is wrong may tell one of several devices."""

    def __init__(self, nodes: Iterable[NodeCount]) -> None:
        self.told = {d.uuid for node in nodes for pool in node.pools for d in pool.devices if d.uuid}
        self.given: set[str] = set()

    def of(self, device: Device, before: GpuEntry | None) -> str:
        uuid = _printable(device.uuid)
        if not uuid and before is not None and before.uuid not in self.told:
            uuid = before.uuid
        if uuid in self.given:
            return ""
        if uuid:
            self.given.add(uuid)
        return uuid
