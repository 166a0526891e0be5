"""Names that point at nothing once the file is loaded, and what the file leaves out but others still use."""

from __future__ import annotations

from collections.abc import Iterable

from sizing.inventory.document import Document, Findings, MeasurementEntry, ReplicaEntry, TargetEntry
from sizing.inventory.words import listed, quoted


def check_references(file: Document, state: Document, findings: Findings) -> None:
    """Check every name that the file's entries mention against the merged state."""
    for model in file.models.values():
        if model.default_profile is not None:
            _check_profile(model.default_profile, f"models[{model.at}].default_profile", state, findings)
    for measurement in file.measurements:
        path = f"measurements[{measurement.at}]"
        _check_variant(measurement.model, measurement.variant, path, state, findings)
        _check_profile(measurement.profile, f"{path}.profile", state, findings)
    for replica in file.replicas.values():
        if replica.model and replica.variant:
            _check_variant(replica.model, replica.variant, f"replicas[{replica.at}]", state, findings)
        _check_placement(replica, state, findings)
    for target in file.targets.values():
        path = f"targets[{target.at}]"
        _check_variant(target.model, target.variant, path, state, findings)
        if target.profile is not None:
            _check_profile(target.profile, f"{path}.profile", state, findings)


def _check_profile(name: str, path: str, state: Document, findings: Findings) -> None:
    if name not in state.profiles and "profiles" not in state.unread:
        findings.error(path, f"no profile {quoted(name)}")


def _check_variant(model: str, variant: str | None, path: str, state: Document, findings: Findings) -> None:
    owner = state.models.get(model)
    if owner is None:
        if "models" not in state.unread:
            findings.error(f"{path}.model", f"no model {quoted(model)}")
    elif variant is not None and variant not in (owner.variants or {}) and not owner.broken:
        findings.error(f"{path}.variant", f"model {quoted(model)} has no variant {quoted(variant)}")


def _check_placement(replica: ReplicaEntry, state: Document, findings: Findings) -> None:
    for node_name, indexes in replica.placement:
        node = state.nodes.get(node_name)
        if node is None:
            if "nodes" in state.unread:
                continue
            path = replica.spots.get((node_name, None), f"replicas[{replica.at}].placement")
            findings.error(path, f"no node {quoted(node_name)}")
        elif not node.broken:
            for index in indexes:
                if index not in (node.gpus or {}):
                    path = replica.spots[node_name, index]
                    findings.error(path, f"node {quoted(node_name)} has no GPU {index}")


def check_left_out(file: Document, stored: Document, state: Document, findings: Findings) -> None:
    """Refuse to drop a variant or a GPU that something stays to use (a load that keeps the rest).

    Entries of the file that use it have been told so at their own place.
    """
    dropped_variants = {
        (name, variant): model.at
        for name, model in file.models.items()
        if name in stored.models and not model.broken
        for variant in stored.models[name].variants or {}
        if variant not in (model.variants or {})
    }
    dropped_gpus = {
        (name, index): node.at
        for name, node in file.nodes.items()
        if name in stored.nodes and not node.broken
        for index in stored.nodes[name].gpus or {}
        if index not in (node.gpus or {})
    }
    staying = [r for r in state.replicas.values() if r.at is None]
    if dropped_variants:
        used: dict[tuple[str, str], list[str]] = {}
        for user, words in _variant_users(staying, stored.measurements, state.targets.values()):
            if user in dropped_variants:
                used.setdefault(user, []).append(words)
        for (model, variant), at in dropped_variants.items():
            users = sorted(used.get((model, variant), []), key=_replicas_first)
            if not users:
                continue
            findings.error(
                f"models[{at}].variants",
                f"leaves out {quoted(variant)}, which {_some(users)} still {_use(users)}",
            )
    if dropped_gpus:
        holders: dict[tuple[str, int], list[str]] = {}
        for replica in staying:
            for node, indexes in replica.placement:
                for index in indexes:
                    if (node, index) in dropped_gpus:
                        holders.setdefault((node, index), []).append(replica.name)
        for (node, index), at in dropped_gpus.items():
            names = holders.get((node, index), [])
            if not names:
                continue
            findings.error(
                f"nodes[{at}].gpus",
                f"leaves out GPU {index}, which {'replica' if len(names) == 1 else 'replicas'}"
                f" {listed(sorted(names))} still {_use(names)}",
            )


def _variant_users(
    replicas: Iterable[ReplicaEntry],
    measurements: Iterable[MeasurementEntry],
    targets: Iterable[TargetEntry],
) -> Iterable[tuple[tuple[str, str], str]]:
    for replica in replicas:
        yield (replica.model, replica.variant), f"replica {quoted(replica.name)}"
    for measurement in measurements:
        words = f"the measurement of {measurement.measured_at:%Y-%m-%d} on {quoted(measurement.profile)}"
        yield (measurement.model, measurement.variant), words
    for target in targets:
        if target.at is None and target.variant is not None:
            yield (target.model, target.variant), "a target"


def _replicas_first(words: str) -> tuple[bool, str]:
    return (not words.startswith("replica"), words)


def _some(users: list[str]) -> str:
    return users[0] if len(users) == 1 else f"{users[0]} and {len(users) - 1:,} more"


def _use(users: list[str]) -> str:
    return "uses" if len(users) == 1 else "use"


def check_uuids(file: Document, state: Document, findings: Findings) -> None:
    """Refuse a uuid of a GPU of the file that another GPU of the merged state has."""
    seen: dict[str, str] = {}
    # Those of the file last, so that the error stands at one of them.
    for node in sorted(state.nodes.values(), key=lambda n: -1 if n.at is None else n.at):
        for gpu in (node.gpus or {}).values():
            if not gpu.uuid:
                continue
            said = node.at is not None and gpu.at is not None
            place = (
                f"nodes[{node.at}].gpus[{gpu.at}]" if said else f"GPU {gpu.index} of node {quoted(node.name)}"
            )
            first = seen.setdefault(gpu.uuid, place)
            if first != place and said:
                findings.error(f"{place}.uuid", f"{quoted(gpu.uuid)} is also that of {first}")
