"""Nodes as they could be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sizing.domain.specs import NodeSpec


def empty(like: NodeSpec) -> NodeSpec:
    """A node of that kind as it comes: open, its GPUs healthy, and with nothing on it."""
    gpus = tuple(replace(gpu, healthy=True, used_outside_mib=0) for gpu in like.gpus)
    return replace(like, gpus=gpus, ready=True, schedulable=True, stale=False)


def as_if(node: NodeSpec, flags: Mapping[str, bool]) -> NodeSpec:
    """A node with other flags (see `Hardware.as_if`)."""
    gpus = tuple(
        replace(
            gpu,
            healthy=flags.get("healthy", gpu.healthy),
            used_outside_mib=gpu.used_outside_mib if flags.get("outside", True) else 0,
        )
        for gpu in node.gpus
    )
    return replace(
        node,
        gpus=gpus,
        ready=flags.get("ready", node.ready),
        schedulable=flags.get("schedulable", node.schedulable),
        stale=flags.get("stale", node.stale),
    )
