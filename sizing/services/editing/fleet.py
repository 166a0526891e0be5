"""Writes of nodes with their GPUs, and of replicas with their placement."""

from __future__ import annotations

from typing import Any

from sizing.inventory.node_checking import MOST_GPUS
from sizing.inventory.words import quoted
from sizing.models import Gpu, Node, Placement, Replica
from sizing.services.editing.holders import told
from sizing.services.editing.rows import (
    Given,
    assign,
    check_holdings,
    conflict,
    model_named,
    nodes_of,
    refusal,
    refuse_taken_name,
    row_of,
    save,
    variant_named,
    writing,
    wrong,
)

GPU_FIELDS = ("uuid", "type", "memory_mib", "healthy", "used_outside_mib", "partition")


def save_node(given: Given, pk: int | None = None) -> int:
    """Make or change a node; `gpus` replaces them all, by index. Gives the id."""
    with writing():
        node = row_of(Node, pk)
        assign(node, {k: v for k, v in given.items() if k != "gpus"})
        refuse_taken_name(node)
        save(node)
        if "gpus" in given:
            _save_gpus(node, given["gpus"])
            if pk is not None:
                check_holdings({node.pk}, path="gpus")
        return int(node.pk)


def _save_gpus(node: Node, given: list[Given]) -> None:
    wanted = _indexed(given)
    uuids = {gpu["uuid"] for gpu in wanted.values() if gpu["uuid"]}
    elsewhere = Gpu.objects.filter(uuid__in=uuids).exclude(node=node).select_related("node").first()
    if elsewhere:
        raise wrong("gpus", f"the uuid {quoted(elsewhere.uuid)} is that of {elsewhere}")
    there = {gpu.index: gpu for gpu in node.gpus.all()}
    gone = [gpu.pk for index, gpu in there.items() if index not in wanted]
    held = told(Replica.objects.filter(placements__gpu__in=gone).distinct())
    if held:
        raise conflict(f"GPUs left out are in use by {held}")
    Gpu.objects.filter(pk__in=gone).delete()
    new, changed = [], []
    for index, values in wanted.items():
        gpu = there.get(index)
        if gpu is None:
            new.append(Gpu(node=node, index=index, **values))
        elif any(getattr(gpu, field) != values[field] for field in GPU_FIELDS):
            assign(gpu, values)
            changed.append(gpu)
    # Two GPUs may have changed places: no uuid may stand twice in between.
    Gpu.objects.filter(pk__in=[gpu.pk for gpu in changed]).exclude(uuid="").update(uuid="")
    Gpu.objects.bulk_update(changed, GPU_FIELDS)
    Gpu.objects.bulk_create(new)


def _indexed(given: list[Given]) -> dict[int, dict[str, Any]]:
    """GPUs by index; those without one come after the highest so far, `count` of them alike."""
    gpus: dict[int, dict[str, Any]] = {}
    uuids: set[str] = set()
    highest = -1
    for i, gpu in enumerate(given):
        start = gpu.get("index", highest + 1)
        if start in gpus:
            raise wrong(f"gpus[{i}].index", f"{start} stands there twice")
        if gpu["uuid"] and gpu["uuid"] in uuids:
            raise wrong(f"gpus[{i}].uuid", f"{quoted(gpu['uuid'])} stands there twice")
        uuids.add(gpu["uuid"])
        if len(gpus) + gpu.get("count", 1) > MOST_GPUS:
            raise wrong(f"gpus[{i}].count", f"makes more than {MOST_GPUS} GPUs on one node")
        for index in range(start, start + gpu.get("count", 1)):
            highest = max(highest, index)
            gpus[index] = {field: gpu[field] for field in GPU_FIELDS}
    return gpus


def save_replica(given: Given, pk: int | None = None) -> int:
    """Make or change a replica; `placement` replaces all of it. Gives the id."""
    with writing():
        replica = row_of(Replica, pk)
        if "model" in given or "variant" in given:
            old = replica.variant if pk is not None else None
            model = model_named(given["model"]) if "model" in given or old is None else old.model
            replica.variant = variant_named(model, given.get("variant", old.name if old else ""))
        assign(replica, {k: v for k, v in given.items() if k not in ("model", "variant", "placement")})
        refuse_taken_name(replica)
        held = {p.gpu_id: p for p in replica.placements.all()} if pk is not None else {}
        nodes = nodes_of(Placement.objects.filter(replica=replica)) if held else set()
        gpus = _placed(given["placement"]) if "placement" in given else None
        if replica.state != Replica.State.PENDING and not (held if gpus is None else gpus):
            raise wrong("placement", "may be empty only for a pending replica")
        save(replica)
        if gpus is not None:
            Placement.objects.filter(pk__in=[p.pk for gpu, p in held.items() if gpu not in gpus]).delete()
            Placement.objects.bulk_create(
                Placement(replica=replica, gpu_id=gpu) for gpu in sorted(gpus) if gpu not in held
            )
            nodes |= set(gpus.values())
        check_holdings(nodes, replica.pk, path="placement")
        return int(replica.pk)


def _placed(placement: list[Given]) -> dict[int, int]:
    """The GPUs of a placement, each with the id of its node."""
    names = [part["node"] for part in placement]
    there = {
        (gpu.node.name, gpu.index): gpu
        for gpu in Gpu.objects.filter(node__name__in=names).select_related("node")
    }
    known = set(Node.objects.filter(name__in=names).values_list("name", flat=True))
    problems: dict[str, list[str]] = {}
    gpus: dict[int, int] = {}
    seen: set[str] = set()
    for i, part in enumerate(placement):
        name = part["node"]
        if name not in known:
            problems[f"placement[{i}].node"] = [f"no node {quoted(name)}"]
        elif name in seen:
            problems[f"placement[{i}].node"] = [f"{quoted(name)} stands there twice"]
        else:
            seen.add(name)
            for j, index in enumerate(part["gpus"]):
                gpu = there.get((name, index))
                if gpu is None:
                    problems[f"placement[{i}].gpus[{j}]"] = [f"node {quoted(name)} has no GPU {index}"]
                elif gpu.pk in gpus:
                    problems[f"placement[{i}].gpus[{j}]"] = [f"GPU {index} stands there twice"]
                else:
                    gpus[gpu.pk] = gpu.node_id
    if problems:
        raise refusal(problems)
    return gpus
