"""Random fleets for the benchmarks: the same seed gives the same fleet."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from sizing.domain.specs import GpuSpec, ModelSpec, NodeSpec, ReplicaSpec, VariantSpec

GPU_TYPE = "NVIDIA-H100-80GB-HBM3"
GPU_MEMORY_MIB = 81559
GPUS_PER_NODE = 8
START = datetime(2026, 1, 1, tzinfo=UTC)


def nodes_of(count: int) -> list[NodeSpec]:
    """Open nodes of eight GPUs each."""
    gpus = tuple(GpuSpec(i, GPU_TYPE, GPU_MEMORY_MIB) for i in range(GPUS_PER_NODE))
    return [NodeSpec(f"node-{n:05}", gpus) for n in range(count)]


def shared_fleet(
    count: int, full: float = 0.7, seed: int = 1
) -> tuple[list[NodeSpec], list[ModelSpec], list[ReplicaSpec]]:
    """Nodes whose GPUs are held by shares and whole-GPU replicas at random."""
    chance = random.Random(seed)
    nodes = nodes_of(count)
    claims = (None, None, 40_000, 40_000, 20_000)
    variants = tuple(VariantSpec(f"v{i}", gpu_memory_mib=c) for i, c in enumerate(claims))
    model = ModelSpec("load", variants=variants)
    replicas = [
        ReplicaSpec(f"r-{n}-{g}", "load", chance.choice(variants).name, "ready", START, ((node.name, (g,)),))
        for n, node in enumerate(nodes)
        for g in range(GPUS_PER_NODE)
        if chance.random() < full
    ]
    return nodes, [model], replicas


def whole_fleet(
    count: int,
    models: int = 100,
    full: float = 0.97,
    seed: int = 1,
    sizes: tuple[int, ...] = (1, 1, 2, 2, 4, 8),
) -> tuple[list[NodeSpec], list[ModelSpec], list[ReplicaSpec]]:
    """Nodes filled with whole-GPU replicas of 1, 2, 4 and 8 GPUs of many models on five priorities."""
    chance = random.Random(seed)
    nodes = nodes_of(count)
    specs = [
        ModelSpec(
            f"model-{m:03}",
            priority=m % 5,
            min_replicas=chance.randrange(40),
            variants=tuple(VariantSpec(f"g{g}", gpus=g) for g in (1, 2, 4, 8)),
        )
        for m in range(models)
    ]
    replicas: list[ReplicaSpec] = []
    for node in nodes:
        at = 0
        while at < GPUS_PER_NODE:
            size = min(chance.choice(sizes), GPUS_PER_NODE - at)
            size = max(s for s in (1, 2, 4, 8) if s <= size)
            if chance.random() < full:
                replicas.append(
                    ReplicaSpec(
                        f"replica-{len(replicas):06}",
                        chance.choice(specs).name,
                        f"g{size}",
                        "ready",
                        START + timedelta(seconds=chance.randrange(10**7)),
                        ((node.name, tuple(range(at, at + size))),),
                    )
                )
            at += size
    return nodes, specs, replicas
