"""Write nodes, GPUs, replicas and their placement."""

from __future__ import annotations

from sizing.inventory.applying.rows import Work, batches, columns, insert, overwrite
from sizing.inventory.document import GpuEntry, NodeEntry, ReplicaEntry
from sizing.inventory.scheduling import taints_form
from sizing.models import Gpu, Node, Placement, Replica


def write_nodes(work: Work) -> None:
    ids = work.stored.node_ids
    new = [_node_row(work, e) for n, e in work.file.nodes.items() if n not in ids]
    changed = [_node_row(work, e) for n, e in work.file.nodes.items() if n in ids and e != work.old.nodes[n]]
    insert(Node, new)
    overwrite(Node, changed, keep=("seen_at",))
    ids.update((row.name, row.pk) for row in new)
    work.changes.note("nodes", created=len(new), updated=len(changed), of=len(work.file.nodes))


def _node_row(work: Work, entry: NodeEntry) -> Node:
    return Node(
        pk=work.stored.node_ids.get(entry.name),
        taints=taints_form(entry.taints),
        **columns(entry, "taints", "gpus", "broken"),
    )


def write_gpus(work: Work) -> None:
    ids = work.stored.gpu_ids
    new, changed, places = [], [], []
    there = 0
    for name, node in work.file.nodes.items():
        before = work.old.nodes.get(name)
        old_gpus = (before.gpus if before else None) or {}
        there += len(node.gpus or {})
        for index, entry in (node.gpus or {}).items():
            if index not in old_gpus:
                new.append(_gpu_row(work, name, entry))
                places.append((name, index))
            elif entry != old_gpus[index]:
                changed.append(_gpu_row(work, name, entry))
    _free_uuids(work)
    insert(Gpu, new)
    overwrite(Gpu, changed)
    ids.update((place, row.pk) for place, row in zip(places, new, strict=True))
    work.changes.note("gpus", created=len(new), updated=len(changed), of=there)


def _free_uuids(work: Work) -> None:
    """Take away the uuids that GPUs are about to lose: one may move, and none may stand twice in between."""
    losing = []
    for name, node in work.old.nodes.items():
        after = work.file.nodes.get(name)
        if after is None and not work.replace:
            continue
        gpus = (after.gpus if after else None) or {}
        for index, old in (node.gpus or {}).items():
            if old.uuid and (index not in gpus or gpus[index].uuid != old.uuid):
                losing.append(work.stored.gpu_ids[name, index])
    for batch in batches(losing):
        Gpu.objects.filter(pk__in=batch).update(uuid="")


def _gpu_row(work: Work, node: str, entry: GpuEntry) -> Gpu:
    ids = work.stored
    return Gpu(pk=ids.gpu_ids.get((node, entry.index)), node_id=ids.node_ids[node], **columns(entry))


def write_replicas(work: Work) -> None:
    ids = work.stored.replica_ids
    new = [_replica_row(work, e) for n, e in work.file.replicas.items() if n not in ids]
    differing = [e for n, e in work.file.replicas.items() if n in ids and e != work.old.replicas[n]]
    # A replica that only moved has the same row; its placement is in others.
    changed = [_replica_row(work, e) for e in differing if not _same_row(e, work.old.replicas[e.name])]
    insert(Replica, new)
    overwrite(Replica, changed)
    ids.update((row.name, row.pk) for row in new)
    work.changes.note("replicas", created=len(new), updated=len(differing), of=len(work.file.replicas))


def _same_row(one: ReplicaEntry, other: ReplicaEntry) -> bool:
    away = ("placement", "spots", "broken")
    return columns(one, *away) == columns(other, *away)


def _replica_row(work: Work, entry: ReplicaEntry) -> Replica:
    return Replica(
        pk=work.stored.replica_ids.get(entry.name),
        name=entry.name,
        variant_id=work.stored.variant_ids[entry.model, entry.variant],
        state=entry.state,
        started_at=entry.started_at,
        endpoint=entry.endpoint,
        benchable=entry.benchable,
        priority=entry.priority,
        source=entry.source,
    )


def write_placements(work: Work) -> None:
    stored = work.stored
    new = [
        Placement(replica_id=stored.replica_ids[name], gpu_id=stored.gpu_ids[node, index])
        for name, replica in work.file.replicas.items()
        for node, indexes in replica.placement
        for index in indexes
        if (name, node, index) not in stored.placement_ids
    ]
    insert(Placement, new)
