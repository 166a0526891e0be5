"""Small clusters as facts: what reading makes of objects, for tests of what is made of facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from sizing.inventory.document import Document, Findings, GpuEntry, VariantEntry
from sizing.inventory.holding import check_holdings
from sizing.inventory.kubernetes.counted import Counted
from sizing.inventory.kubernetes.counting import count
from sizing.inventory.kubernetes.document import Brought, as_document
from sizing.inventory.kubernetes.facts import ContainerFacts, Listing, NodeFacts, PodFacts
from sizing.inventory.kubernetes.mapping import Identity, Mapped, identify, map_pods
from sizing.inventory.kubernetes.rules import Rule
from sizing.inventory.places import StoredPlaces

GPU = "nvidia.com/gpu"
MIB = 2**20
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"}
A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920"}
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def a_node(name: str = "n1", gpus: int = 8, withdrawn: int = 0, resource: str = GPU, **facts) -> NodeFacts:
    """A ready node of H100s with 100 CPUs, 1,000 MiB and 110 pods."""
    host = {"cpu": 100_000, "memory": 1000 * MIB, "pods": 110}
    facts = {"labels": H100, "ready": "True"} | facts
    return NodeFacts(
        name=name,
        uid=f"uid-{name}",
        capacity=host | {resource: gpus},
        allocatable=host | {resource: gpus - withdrawn},
        **facts,
    )


def a_container(*words: str, image: str = "vllm/vllm-openai:v0.11.0", **facts) -> ContainerFacts:
    facts = {"name": "main", "requests": {GPU: 1}} | facts
    return ContainerFacts(image=image, words=words, **facts)


def a_pod(
    name: str = "llama-0",
    node: str = "n1",
    gpus: int = 1,
    words: Sequence[str] = ("--model", "org/llama"),
    resource: str = GPU,
    **facts,
) -> PodFacts:
    """A running vLLM pod of the model org/llama."""
    facts = {"namespace": "llm", "phase": "Running" if node else "Pending", "ready": bool(node)} | facts
    requests = facts.pop("requests", {})
    containers = facts.pop("containers", (a_container(*words),) if gpus else ())
    return PodFacts(
        name=name,
        uid=f"uid-{facts['namespace']}-{name}",
        node=node,
        requests=dict(requests) | ({resource: gpus} if gpus else {}),
        containers=containers,
        **facts,
    )


def a_listing(nodes: Iterable[NodeFacts] = (), pods: Iterable[PodFacts] = (), **tables) -> Listing:
    return Listing(nodes={n.name: n for n in nodes}, pods={p.uid: p for p in pods}, **tables)


def identity(pod: PodFacts, *rules: Rule, problems: set[str] | None = None, **tables) -> Identity:
    return identify(pod, a_listing((), [pod], **tables), rules, problems)


def mapped(nodes: Iterable[NodeFacts], pods: Iterable[PodFacts], *rules: Rule, **tables) -> Mapped:
    return map_pods(count(a_listing(nodes, pods, **tables)), rules)


def states(found: Mapped) -> dict[str, str]:
    return {replica.name: replica.state for replica in found.replicas}


def brought(
    nodes: Iterable[NodeFacts],
    pods: Iterable[PodFacts],
    *rules: Rule,
    stored: Document | None = None,
    staying: Iterable[str] = (),
    **tables,
) -> Brought:
    """The cluster as a document, which the inventory's rules must find without a fault."""
    return from_counted(count(a_listing(nodes, pods, **tables)), *rules, stored=stored, staying=set(staying))


def from_counted(
    counted: Counted, *rules: Rule, stored: Document | None = None, staying: Iterable[str] = ()
) -> Brought:
    found = as_document(counted, map_pods(counted, rules), stored or Document(), set(staying))
    findings = Findings()
    check_holdings(found.document, StoredPlaces(), findings)
    assert not findings.errors
    return found


def places(found: Brought) -> dict[str, tuple[tuple[str, tuple[int, ...]], ...]]:
    return {name: replica.placement for name, replica in found.document.replicas.items()}


def gpus(found: Brought, node: str = "n1") -> dict[int, GpuEntry]:
    return found.document.nodes[node].gpus or {}


def unhealthy(found: Brought, node: str = "n1") -> list[int]:
    return [index for index, gpu in gpus(found, node).items() if not gpu.healthy]


def variants(found: Brought, model: str = "org/llama") -> dict[str, VariantEntry]:
    return found.document.models[model].variants or {}
