"""What is to be said of a node, in one sentence with its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sizing.inventory.kubernetes.counted import NodeCount, ResourceCount
from sizing.inventory.kubernetes.describing import UNKNOWN
from sizing.inventory.kubernetes.mig import profile_of
from sizing.inventory.kubernetes.vendors import NVIDIA_GPU
from sizing.inventory.words import counted

_VENDOR_NAMES = {"nvidia": "NVIDIA GPU", "amd": "AMD GPU", "intel": "Intel GPU", "google": "TPU"}


def say(node: NodeCount) -> str:
    """The sentence: what is there, how much of it is used and free, and what keeps new pods away."""
    if "no_gpu" in node.blocked:
        return _with_closing("no accelerator", node, ("no_gpu",))
    if "no_device_plugin" in node.blocked:
        kind = _VENDOR_NAMES.get(node.vendor or "", "accelerator")
        model = f" ({node.type})" if node.type else ""
        return _with_closing(
            f"labeled as {kind} node{model}, but no device plugin offers a device (none runs, or it has not "
            "registered yet): 0 usable",
            node,
            ("no_device_plugin",),
        )
    parts = [*_hami(node)] if "cards" in node.details else [*_resources(node)]
    parts.extend(_dra(node))
    if node.details.get("virtual"):
        parts.append("a virtual node: the figure is a quota, no hardware")
    if node.details.get("reserved_by_nominated"):
        reserved = _amounts(node.details["reserved_by_nominated"])
        parts.append(f"{reserved} reserved for pods that were nominated here")
    if node.details.get("used_below_priority"):
        parts.append(f"{node.details['used_below_priority']['0']} held by pods of negative priority")
    return _with_closing("; ".join(parts), node, ())


def _resources(node: NodeCount) -> Iterable[str]:
    told = {name: n for name, n in node.resources.items() if n.capacity or n.allocatable or n.used}
    if not told:
        if node.resources:
            yield f"0 devices of {', '.join(node.resources)}"
        return
    for name, numbers in told.items():
        yield f"{_what(node, name, numbers)}: {_numbers(node, numbers)}"


def _what(node: NodeCount, resource: str, numbers: ResourceCount) -> str:
    """`8 H100-80GB-HBM3`, `56 MIG slices 1g.10gb of 8 A100-SXM4-80GB (nvidia.com/gpu)`, …"""
    model = node.models.get(resource) or resource
    cards = f"{node.physical} {model}" if node.physical else model
    details = node.details
    if profile_of(resource) and resource in node.shared:
        slices = f"MIG slices {profile_of(resource)} ({model})"
        return f"{numbers.capacity} shares ({details['sharing']['strategy']}) of {slices}"
    if profile_of(resource):
        return f"{counted(numbers.capacity, 'MIG slice')} {profile_of(resource)} ({model})"
    if details.get("mig", {}).get("strategy") == "single":
        profile = details["mig"]["profile"]
        return f"{numbers.capacity} MIG slices {profile} of {cards}, all named {resource}, no whole GPU"
    if details.get("partition") and resource == "amd.com/gpu":
        memory = f" of {node.memory_mib} MiB" if node.memory_mib else ""
        return f"{numbers.capacity} partitions {details['partition']}{memory} of {cards}, no whole card"
    if resource.startswith("amd.com/") and resource != "amd.com/gpu":
        return f"{numbers.capacity} {resource.removeprefix('amd.com/')} of {model}"
    if resource in node.shared:
        return f"{numbers.capacity} shares ({details['sharing']['strategy']}) of {cards}, named {resource}"
    named = f" ({resource})" if model != resource and len(node.resources) > 1 else ""
    if UNKNOWN in details.get("models", {}) and resource == NVIDIA_GPU:
        unknown = details["models"][UNKNOWN]
        known = numbers.capacity - unknown
        return f"{numbers.capacity} {resource} ({known} {model} and {unknown} of unknown model)"
    return f"{numbers.capacity} {model}{named}"


def _numbers(node: NodeCount, numbers: ResourceCount) -> str:
    words = []
    withdrawn = numbers.capacity - numbers.allocatable
    if withdrawn > 0 and "mig_reconfiguring" not in node.blocked:
        words.append(f"{withdrawn} withdrawn by the device plugin")
    words.append(f"{numbers.used} used")
    words.append(f"{numbers.free} free")
    if numbers.overcommitted:
        words.append(f"{numbers.overcommitted} more used than the {numbers.allocatable} allocatable")
    return ", ".join(words)


def _hami(node: NodeCount) -> Iterable[str]:
    cards = node.details["cards"]
    unhealthy = node.details.get("unhealthy", 0)
    sick = f", {unhealthy} unhealthy" if unhealthy else ""
    free = sum(card["free_mib"] for card in cards)
    healthy = len(cards) - unhealthy
    for name, numbers in node.resources.items():
        yield (
            f"{len(cards)} {node.type or 'cards'} offered as {numbers.capacity} slots of {name} by HAMi{sick}"
            f": {numbers.used} slots used, {node.details['whole_devices_free']} whole cards and {free} MiB "
            f"free, at most {healthy} devices for one pod"
        )


def _dra(node: NodeCount) -> Iterable[str]:
    dra = node.details.get("dra")
    if dra and dra["devices"]:
        yield (
            f"{dra['devices']} {node.type or 'devices'} published by DRA driver {dra['driver']}: "
            f"{dra['allocated']} allocated, {dra['tainted']} tainted, {dra['free']} free"
        )


def _with_closing(sentence: str, node: NodeCount, told: tuple[str, ...]) -> str:
    words = []
    for code in node.blocked:
        if code not in told:
            kind, _, detail = code.partition(":")
            word = _CLOSING.get(kind, kind)
            words.append(f"{word} ({detail})" if detail else word)
    return f"{sentence}; closed to new pods: {', '.join(words)}" if words else sentence


_CLOSING = {
    "mig_reconfiguring": "its MIG layout is being changed, nothing can be promised",
    "not_ready": "not ready",
    "cordoned": "cordoned",
    "deleting": "being deleted",
    "taint": "tainted",
    "allocatable_zero": "no device is allocatable",
}


def _amounts(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in amounts.items())


def tell_broken_slices(nodes: Mapping[str, NodeCount]) -> None:
    """A TPU slice over several hosts is one unit: idle chips of one host are none where another is taken."""
    by_pool: dict[str, list[NodeCount]] = {}
    for node in nodes.values():
        place = node.details.get("slice")
        if place and place["nodepool"] and (place["hosts"] or 0) > 1:
            by_pool.setdefault(place["nodepool"], []).append(node)
    for pool, hosts in by_pool.items():
        taken = sorted(node.facts.name for node in hosts if any(n.used for n in node.resources.values()))
        if not taken:
            continue
        for node in hosts:
            if node.facts.name not in taken:
                place = node.details["slice"]
                node.say += (
                    f"; the {place['topology']} slice needs all {place['hosts']} hosts of pool {pool}, "
                    f"and {', '.join(taken)} is taken"
                )
