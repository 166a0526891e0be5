"""Remove objects by name before others are written."""

from __future__ import annotations

from collections.abc import Collection

from sizing.inventory.applying.rows import delete
from sizing.inventory.stored import Stored
from sizing.models import Gpu, Node, Placement, Replica, ServedModel, Variant


def remove_replicas_and_nodes(stored: Stored, replicas: Collection[str], nodes: Collection[str]) -> int:
    """Remove replicas, and nodes with their GPUs and whatever stands on them; `stored` forgets them.

    Returns the number of objects that were removed.
    """
    places = [p for p in stored.placement_ids if p[0] in replicas or p[1] in nodes]
    delete(Placement.objects.all(), "pk", [stored.placement_ids.pop(place) for place in places])
    delete(Replica.objects.all(), "pk", [stored.replica_ids.pop(name) for name in replicas])
    gpus = [place for place in stored.gpu_ids if place[0] in nodes]
    delete(Gpu.objects.all(), "pk", [stored.gpu_ids.pop(place) for place in gpus])
    delete(Node.objects.all(), "pk", [stored.node_ids.pop(name) for name in nodes])
    for name in replicas:
        del stored.document.replicas[name]
    for name in nodes:
        del stored.document.nodes[name]
    return len(replicas) + len(gpus) + len(nodes)


def remove_models(stored: Stored, models: Collection[str]) -> int:
    """Remove models of which nothing runs, with their variants."""
    variants = [place for place in stored.variant_ids if place[0] in models]
    delete(Variant.objects.all(), "pk", [stored.variant_ids.pop(place) for place in variants])
    delete(ServedModel.objects.all(), "pk", [stored.model_ids.pop(name) for name in models])
    for name in models:
        del stored.document.models[name]
    return len(models) + len(variants)
