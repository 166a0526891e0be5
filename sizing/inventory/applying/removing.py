"""Remove what the file leaves out."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Model

from sizing.inventory.applying.rows import Work, delete
from sizing.models import BenchProfile, Gpu, Node, Placement, Replica, ServedModel, Target, Variant


def remove_holders(work: Work) -> None:
    """Replicas and targets, and places that replicas have left."""
    file, stored = work.file, work.stored
    if work.replace:
        gone = [pk for name, pk in stored.replica_ids.items() if name not in file.replicas]
        delete(Placement.objects.all(), "replica_id", gone)
        _remove(work, "replicas", Replica, gone)
        _remove(
            work, "targets", Target, [pk for key, pk in stored.target_ids.items() if key not in file.targets]
        )
    held = {
        name: {(node, index) for node, indexes in replica.placement for index in indexes}
        for name, replica in file.replicas.items()
        if name in stored.replica_ids
    }
    left = [
        pk
        for (name, node, index), pk in stored.placement_ids.items()
        if name in held and (node, index) not in held[name]
    ]
    delete(Placement.objects.all(), "pk", left)


def remove_held(work: Work) -> None:
    """Variants and GPUs left out of their object's list; with `replace` also whole objects."""
    file, stored = work.file, work.stored
    variants = [
        pk
        for (model, name), pk in stored.variant_ids.items()
        if (name not in (file.models[model].variants or {}) if model in file.models else work.replace)
    ]
    gpus = [
        pk
        for (node, index), pk in stored.gpu_ids.items()
        if (index not in (file.nodes[node].gpus or {}) if node in file.nodes else work.replace)
    ]
    _remove(work, "variants", Variant, variants)
    _remove(work, "gpus", Gpu, gpus)
    if work.replace:
        models = [pk for name, pk in stored.model_ids.items() if name not in file.models]
        nodes = [pk for name, pk in stored.node_ids.items() if name not in file.nodes]
        profiles = [pk for name, pk in stored.profile_ids.items() if name not in file.profiles]
        _remove(work, "models", ServedModel, models)
        _remove(work, "nodes", Node, nodes)
        _remove(work, "profiles", BenchProfile, profiles)


def _remove(work: Work, kind: str, table: type[Model], ids: Sequence[int]) -> None:
    delete(table._default_manager.all(), "pk", ids)
    work.changes.note(kind, removed=len(ids))
