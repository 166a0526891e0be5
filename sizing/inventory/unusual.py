"""What is accepted with a warning, for it is what real clusters look like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sizing.domain.fleet import Fleet
from sizing.domain.gpu_types import type_key
from sizing.domain.placement import room
from sizing.domain.specs import SERVING_STATES, GpuSpec, NodeSpec, VariantSpec
from sizing.domain.taints import untolerated
from sizing.inventory.document import Document, Findings, GpuEntry, ModelEntry, NodeEntry
from sizing.inventory.holding import Holder, gpu_words, holders_in
from sizing.inventory.places import FilePlaces
from sizing.inventory.words import counted, listed, quoted


def check_unusual(state: Document, places: FilePlaces, findings: Findings) -> None:
    """Warn of everything unusual that the file has a part in."""
    holders = holders_in(state)
    for holder in holders:
        _check_replica(holder, state, places, findings)
    _check_hosts(holders, state, places, findings)
    _check_models(state, places, findings)


# Where replicas stand ----------------------------------------------------------------------------


def _check_replica(holder: Holder, state: Document, places: FilePlaces, findings: Findings) -> None:
    replica, spec = holder.replica, holder.variant.spec
    variant_path = places.variant(holder.model, holder.variant)
    wanted = {type_key(t) for t in spec.gpu_types}
    types: dict[str, str] = {}
    domains: set[str | None] = set()
    who = f"replica {quoted(replica.name)}"
    for node_name, indexes in replica.placement:
        node = state.nodes.get(node_name)
        if node is None or node.broken:
            continue
        held = [node.gpus[i] for i in indexes if i in node.gpus] if node.gpus else []
        domains.add(node.labels.get(spec.topology_key) if spec.topology_key else None)
        for gpu in held:
            types.setdefault(type_key(gpu.type), gpu.type)
        path = places.replica(replica, node_name) or places.node(node) or variant_path
        if path is None:
            continue
        for reason in _closed_reasons(node, spec):
            findings.warn(path, f"{who} is on node {quoted(node_name)}, which {reason}")
        _check_held(who, node, held, places.replica(replica, node_name, indexes[0]) or path, findings)
        if any(g.partition for g in held) and (spec.gpus > 1 or spec.nodes > 1 or not spec.gpu_types):
            findings.warn(
                path,
                f"{who} is on a partition, which is for variants with 1 GPU on 1 node that name its type",
            )
    path = places.replica(replica) or variant_path
    if path is None:
        return
    if len(types) > 1:
        findings.warn(path, f"{who} is on GPUs of different types: {listed(sorted(types.values()))}")
    if wanted and not types.keys() <= wanted:
        strange = sorted(name for key, name in types.items() if key not in wanted)
        findings.warn(
            path,
            f"{who} is on {listed(strange)}, but variant {quoted(spec.name)} takes {listed(spec.gpu_types)}",
        )
    if spec.nodes > 1 and spec.topology_key and len(domains) > 1:
        findings.warn(path, f"{who} is on nodes with different values of {quoted(spec.topology_key)}")


def _check_held(who: str, node: NodeEntry, held: list[GpuEntry], path: str, findings: Findings) -> None:
    unhealthy = [g.index for g in held if not g.healthy]
    if unhealthy:
        words = gpu_words(unhealthy, node.name)
        findings.warn(path, f"{who} is on {words}, which {'is' if len(unhealthy) == 1 else 'are'} unhealthy")


def _closed_reasons(node: NodeEntry, spec: VariantSpec) -> Iterator[str]:
    if not node.ready:
        yield "is not ready"
    if not node.schedulable:
        yield "is cordoned"
    if node.stale:
        yield "is stale"
    for key, value in spec.node_selector:
        if node.labels.get(key) != value:
            yield f"lacks the label {key}={value} that variant {quoted(spec.name)} selects"
    if spec.nodes > 1 and spec.topology_key and spec.topology_key not in node.labels:
        yield f"lacks the label {spec.topology_key} that variant {quoted(spec.name)} needs"
    for taint in untolerated(node.taints, spec.tolerations):
        value = f"={taint.value}" if taint.value else ""
        words = f"{taint.key}{value}:{taint.effect}"
        yield f"has the taint {words} that variant {quoted(spec.name)} does not tolerate"


# Hosts -------------------------------------------------------------------------------------------


def _check_hosts(holders: list[Holder], state: Document, places: FilePlaces, findings: Findings) -> None:
    cpu: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    pods: Counter[str] = Counter()
    path_of: dict[str, str] = {}
    for holder in holders:
        spec = holder.variant.spec
        for node, _ in holder.replica.placement:
            cpu[node] += spec.cpu_millis
            memory[node] += spec.memory_mib
            pods[node] += 1
            path = places.replica(holder.replica, node) or places.variant(holder.model, holder.variant)
            if path:
                path_of[node] = path
    for name in pods:
        entry = state.nodes.get(name)
        if entry is None or entry.broken:
            continue
        place = places.node(entry) or path_of.get(name)
        if place is None:
            continue
        for used, limit, words in (
            (cpu[name], entry.cpu_millis, "millicores of CPU"),
            (memory[name], entry.memory_mib, "MiB of host memory"),
            (pods[name], entry.pods, "pods"),
        ):
            if limit is not None and used > limit:
                findings.warn(place, f"replicas on node {quoted(name)} take {used} of {limit} {words}")


# Models ------------------------------------------------------------------------------------------


def _check_models(state: Document, places: FilePlaces, findings: Findings) -> None:
    serving: Counter[str] = Counter()
    path_of: dict[str, str] = {}
    for replica in state.replicas.values():
        if replica.state in SERVING_STATES:
            serving[replica.model] += 1
        path = places.replica(replica)
        if path:
            path_of[replica.model] = path
    for name, model in state.models.items():
        path = places.model(model) or path_of.get(name)
        if path is not None and not model.broken:
            _check_count(model, serving[name], path, findings)
    _check_fits_nowhere(state, places, findings)


def _check_count(model: ModelEntry, serving: int, path: str, findings: Findings) -> None:
    who, least, most = f"model {quoted(model.name)}", model.min_replicas, model.max_replicas
    if most is not None and least > most:
        findings.warn(path, f"{who}: min_replicas {least} is above max_replicas {most}")
    runs = f"{who} runs {counted(serving, 'replica')}"
    if most is not None and serving > most:
        findings.warn(path, f"{runs}, more than its max_replicas of {most}")
    if serving < least:
        findings.warn(path, f"{runs}, fewer than its min_replicas of {least}")


def _check_fits_nowhere(state: Document, places: FilePlaces, findings: Findings) -> None:
    asked = [
        (path, variant.spec)
        for model in state.models.values()
        for variant in (model.variants or {}).values()
        if not variant.broken and (path := places.variant(model, variant))
    ]
    if not asked or any(node.broken for node in state.nodes.values()):
        return
    empty = Fleet.build([_at_its_best(node) for node in state.nodes.values()], [], [])
    for path, spec in asked:
        if room(empty, spec) == 0:
            findings.warn(path, f"variant {quoted(spec.name)} fits nowhere, even if the cluster were empty")


def _at_its_best(node: NodeEntry) -> NodeSpec:
    """The node open and healthy, with nothing on it."""
    return NodeSpec(
        name=node.name,
        gpus=tuple(
            GpuSpec(g.index, g.type, g.memory_mib, partition=g.partition) for g in (node.gpus or {}).values()
        ),
        labels=node.labels,
        taints=node.taints,
        cpu_millis=node.cpu_millis,
        memory_mib=node.memory_mib,
        pods=node.pods,
    )
