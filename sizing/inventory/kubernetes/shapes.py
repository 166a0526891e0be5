"""The shape of a replica: what its variant must be like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from sizing.domain.gpu_types import type_key
from sizing.domain.specs import Toleration, VariantSpec
from sizing.inventory.kubernetes.counted import Counted
from sizing.inventory.kubernetes.facts import CPU, MEMORY, PodFacts
from sizing.inventory.kubernetes.mapping import MappedReplica, Member
from sizing.inventory.kubernetes.placing import Placed
from sizing.inventory.kubernetes.wants import Claim, by_node, claim_of, wants_of
from sizing.models.fields import LARGEST_COUNT

MIB = 2**20
TPU = "google.com/tpu"
TPU_SLICE = "cloud.google.com/gke-nodepool"
"""Multi-host TPU slices are node pools of their own (GKE documentation of TPUs)."""
CLIQUE = "nvidia.com/gpu.clique"
"""The NVLink domain of a node, by GPU feature discovery."""
COMPUTE_DOMAIN = "compute-domain"
LWS_TOPOLOGY = "leaderworkerset.sigs.k8s.io/exclusive-topology"

# Admission adds these to every pod; they are about nodes that stop answering.
_ADDED = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


class Shape(NamedTuple):
    """GPUs per node, nodes, types by their stored spelling, claim, and what the nodes must share.

    With `waiting` no node is known yet: `types` are then those that would do, or empty for any.
    """

    gpus: int
    nodes: int
    types: tuple[str, ...]
    mib: int | None
    fraction: Decimal | None
    topology_key: str | None
    waiting: bool = False

    @property
    def key(self) -> tuple[int, int, tuple[str, ...], int, Decimal, str]:
        """What tells shapes apart, and their order."""
        types = tuple(sorted(type_key(t) for t in self.types))
        return (
            self.gpus,
            self.nodes,
            types,
            self.mib or 0,
            self.fraction or Decimal(0),
            self.topology_key or "",
        )

    @property
    def name(self) -> str:
        """As `4x-h100-80gb-hbm3`, or `1x-l4-2n-20000m`."""
        parts = [f"{self.gpus}x", *(type_key(t).replace("/", "-") for t in self.types)]
        if self.nodes > 1:
            parts.append(f"{self.nodes}n")
        if self.fraction is not None:
            parts.append(f"{self.fraction.normalize():f}")
        elif self.mib is not None:
            parts.append(f"{self.mib}m")
        return "-".join(parts)

    def may_be(self, other: Shape) -> bool:
        """Whether what waits could come to be of the other shape."""
        if (self.gpus, self.nodes, self.mib, self.fraction) != (
            other.gpus,
            other.nodes,
            other.mib,
            other.fraction,
        ):
            return False
        allowed = {type_key(t) for t in self.types}
        return self.waiting and (not allowed or {type_key(t) for t in other.types} <= allowed)

    def fits(self, spec: VariantSpec) -> bool:
        """Whether a variant that people wrote down is of this shape; no types are any types."""
        if (spec.gpus, spec.nodes) != (self.gpus, self.nodes):
            return False
        if (spec.gpu_memory_mib, spec.gpu_memory_fraction) != (self.mib, self.fraction):
            return False
        allowed = {type_key(t) for t in spec.gpu_types}
        enough = any if self.waiting else all
        return not allowed or not self.types or enough(type_key(t) in allowed for t in self.types)


def partition_types(counted: Counted) -> dict[str, tuple[str, ...]]:
    """The types of the devices of each resource of which the cluster has nothing but partitions."""
    found: dict[str, dict[str, str]] = {}
    whole = set()
    for name in sorted(counted.nodes):
        for pool in counted.nodes[name].pools:
            types = found.setdefault(pool.resource, {})
            for device in pool.devices:
                if device.partition:
                    types.setdefault(type_key(device.type), device.type)
                else:
                    whole.add(pool.resource)
    return {
        resource: tuple(types[key] for key in sorted(types))
        for resource, types in found.items()
        if types and resource not in whole
    }


def shape_of(
    replica: MappedReplica, placed: Placed, counted: Counted, partitions: Mapping[str, tuple[str, ...]]
) -> Shape:
    """The shape of a replica: where it is placed by what it holds, else by what it asks for.

    `partitions` are the `partition_types`, which a variant must name.
    """
    holding = [m for m in replica.members if m.needs]
    waiting = [wants_of(m.needs) for m in holding if not m.pod.bound]
    layout = _layout(replica)
    claim = placed.claims.get(replica.name) or Claim()
    types = _types(replica, placed, counted)
    if not types:
        asked = [want for wants in waiting for want in wants]
        claim = claim_of(asked)
        types = partitions.get(asked[0].resource, ()) if asked else ()
    return Shape(
        gpus=layout.gpus,
        nodes=layout.nodes,
        types=types,
        mib=claim.mib,
        fraction=claim.fraction,
        topology_key=_topology(holding, counted) if layout.nodes > 1 else None,
        waiting=replica.name not in placed.places,
    )


class _Layout(NamedTuple):
    """GPUs per node and nodes; with `apart` each pod counts as if it had a node of its own."""

    gpus: int
    nodes: int
    apart: bool = False


def _layout(replica: MappedReplica) -> _Layout:
    """How the replica stands, or will when it is whole.

    Pods that ask alike and lie unevenly (three of 4 GPUs as two and one) are taken one by one, for by the
    fullest node the variant would ask for more than they do (12 GPUs, not 16).
    """
    bound = by_node(replica.bound)
    holding = [m for m in replica.members if m.needs]
    each = [wants_of(m.needs) for m in holding]
    pods_on = set(Counter(m.pod.node for m in replica.bound).values()) or {1}
    pods = len(holding) + replica.missing
    alike = len({frozenset(Counter((w.resource, w.claim) for w in wants).items()) for wants in each}) == 1
    if alike and (len(pods_on) > 1 or pods % max(pods_on)):
        return _Layout(len(each[0]), pods, apart=True)
    waiting = [wants for m, wants in zip(holding, each, strict=True) if not m.pod.bound]
    largest = max(len(wants) for wants in (*bound.values(), *waiting))
    if alike:
        return _Layout(largest, pods // max(pods_on))
    return _Layout(largest, len(bound) + len(waiting) + replica.missing)


def _types(replica: MappedReplica, placed: Placed, counted: Counted) -> tuple[str, ...]:
    found: dict[str, str] = {}
    for node, indexes in placed.places.get(replica.name, {}).items():
        devices = [device for pool in counted.nodes[node].pools for device in pool.devices]
        for index in indexes:
            found.setdefault(type_key(devices[index].type), devices[index].type)
    return tuple(found[key] for key in sorted(found))


def _topology(members: Sequence[Member], counted: Counted) -> str | None:
    """The label whose value all nodes of the replica share, where the pods ask for it."""
    pods = [m.pod for m in members]
    for pod in pods:
        if pod.annotations.get(LWS_TOPOLOGY):
            return pod.annotations[LWS_TOPOLOGY]
    if any(need.resource == TPU for m in members for need in m.needs):
        nodes = [counted.nodes[p.node].facts.labels for p in pods if p.node in counted.nodes]
        return TPU_SLICE if all(TPU_SLICE in labels for labels in nodes) else None
    return CLIQUE if any(_asks_for_clique(pod, counted) for pod in pods) else None


def _asks_for_clique(pod: PodFacts, counted: Counted) -> bool:
    if any(key == CLIQUE for term in pod.selector_terms for key, _, _ in term):
        return True
    for name in pod.claims:
        claim = counted.listing.claims.get((pod.namespace, name))
        if claim and any(asked.startswith(COMPUTE_DOMAIN) for asked in claim.asks):
            return True
    return False


def spec_of(name: str, shape: Shape, newest: MappedReplica) -> tuple[VariantSpec, list[str]]:
    """A variant of the shape as its newest replica asks for it, and what of that cannot be kept, in words."""
    holding = [m for m in newest.members if m.needs]
    cpu, memory = _host(newest, holding, _layout(newest).apart)
    pod = holding[0].pod
    selector, notes = _selector(pod)
    spec = VariantSpec(
        name=name,
        gpus=shape.gpus,
        nodes=shape.nodes,
        gpu_memory_mib=shape.mib,
        gpu_memory_fraction=shape.fraction,
        gpu_types=shape.types,
        node_selector=tuple(sorted(selector.items())),
        tolerations=_tolerations(pod),
        cpu_millis=min(cpu, LARGEST_COUNT),
        memory_mib=min(-(-memory // MIB), LARGEST_COUNT),
        topology_key=shape.topology_key,
    )
    return spec, notes


def _host(replica: MappedReplica, holding: Sequence[Member], apart: bool) -> tuple[int, int]:
    """Millicores and bytes that the replica asks for on the node where it asks for most; `apart`: by pod."""
    cpu: dict[str, int] = {}
    memory: dict[str, int] = {}
    nodes = {m.pod.node for m in holding if m.pod.node}
    for number, member in enumerate(replica.members):
        pod = member.pod
        if not member.needs and pod.node not in nodes:
            continue
        place = f"{number} alone" if apart or not pod.node else pod.node
        cpu[place] = cpu.get(place, 0) + pod.requests.get(CPU, 0)
        memory[place] = memory.get(place, 0) + pod.requests.get(MEMORY, 0)
    return max(cpu.values(), default=0), max(memory.values(), default=0)


def _selector(pod: PodFacts) -> tuple[Mapping[str, str], list[str]]:
    """The labels that its node must have. Of affinities one label with one value can be kept."""
    selector = dict(pod.node_selector)
    notes = []
    if len(pod.selector_terms) > 1:
        notes.append("one of several required node affinities")
    elif pod.selector_terms:
        for key, operator, values in pod.selector_terms[0]:
            if operator == "In" and len(values) == 1:
                selector.setdefault(key, values[0])
            else:
                notes.append(f"{key} {operator} {', '.join(values)}".strip())
    return selector, notes


def _tolerations(pod: PodFacts) -> tuple[Toleration, ...]:
    kept = (t for t in pod.tolerations if not (t.key in _ADDED and t.effect == "NoExecute"))
    return tuple(dict.fromkeys(kept))
