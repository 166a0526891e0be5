"""What the report tells of a node's hardware: model, memory, cards, and how they are cut and shared."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from sizing.inventory.kubernetes import amd, mig
from sizing.inventory.kubernetes import dra as dynamic
from sizing.inventory.kubernetes.counted import NodeCount
from sizing.inventory.kubernetes.hardware import Hardware
from sizing.inventory.kubernetes.labels import count_label, counted_models, intel_cards, number
from sizing.inventory.kubernetes.signs import promised
from sizing.inventory.kubernetes.vendors import (
    NEURON,
    NEURON_CORE,
    NEURON_DEVICE,
    NVIDIA_GPU,
    is_vgpu,
    plain_type,
    vendor_of,
)

UNKNOWN = "unknown"
"""Stands for the model of devices of which nothing tells it."""


def describe(hardware: Hardware, node: NodeCount) -> None:
    """Put what the report tells of the hardware into the node's count."""
    node.vendor = hardware.vendor
    for resource in node.resources:
        label = hardware.label_of(resource)
        if label:
            node.models[resource] = plain_type(label)
    if hardware.sharing is not None:
        node.shared = hardware.sharing.resources
    models = _models(hardware, node)
    node.physical = _physical(hardware, node)
    if models is not None and len(models) > 1:
        node.details["models"] = models
        if hardware.cards is None and not hardware.published and hardware.label:
            node.type = plain_type(hardware.label)
    elif models:
        node.type = next(iter(models))
    elif hardware.label:
        node.type = plain_type(hardware.label)
    node.memory_mib = _reported_memory(hardware, node)
    _detail(hardware, node)


def _models(hardware: Hardware, node: NodeCount) -> dict[str, int] | None:
    """How many cards there are of each model, where that is told card by card."""
    if hardware.cards is not None:
        names = [card.type for card in hardware.cards.cards if card.type]
    elif hardware.published:
        names = [one.model for one in hardware.published if one.model]
    elif hardware.vendor == "amd" and not hardware.label:
        return {plain_type(name): n for name, n in counted_models(node.facts.labels).items()}
    else:
        return _models_by_label(hardware, node)
    counts: dict[str, int] = {}
    for name in names:
        counts[plain_type(name)] = counts.get(plain_type(name), 0) + 1
    return counts


def _models_by_label(hardware: Hardware, node: NodeCount) -> dict[str, int] | None:
    """The models where labels do not tell the one of all devices: of several vendors, or of some only."""
    if hardware.labeled is not None:
        whole = node.resources[NVIDIA_GPU].capacity
        return {plain_type(hardware.label): hardware.labeled, UNKNOWN: whole - hardware.labeled}
    offered = {name: n.capacity for name, n in node.resources.items() if n.capacity and not is_vgpu(name)}
    vendors = dict.fromkeys(vendor_of(name) for name in offered)
    found: dict[str, int] = {}
    if len(vendors) > 1:
        for vendor in vendors:
            first = next(name for name in offered if vendor_of(name) == vendor)
            found[node.models.get(first, first)] = _cards_of_vendor(hardware, node, vendor) or 0
    elif hardware.unlabeled:
        for name, devices in offered.items():
            model = node.models.get(name, name)
            found[model] = found.get(model, 0) + (0 if mig.profile_of(name) else devices)
    found = {model: cards for model, cards in found.items() if cards}
    return found if len(found) > 1 else None


def _physical(hardware: Hardware, node: NodeCount) -> int | None:
    if hardware.virtual:
        return None
    if hardware.cards is not None:
        return len(hardware.cards.cards)
    if not node.resources and not hardware.published:
        return None if promised(node.facts.labels) else 0
    total = dynamic.cards_of(hardware.published)
    by_vendor = {vendor_of(resource) for resource in node.resources}
    for vendor in by_vendor:
        cards = _cards_of_vendor(hardware, node, vendor)
        if cards is None:
            return None
        total += cards
    return total


def _cards_of_vendor(hardware: Hardware, node: NodeCount, vendor: str | None) -> int | None:
    offered = {name: n.capacity for name, n in node.resources.items() if vendor_of(name) == vendor}
    if vendor == "nvidia":
        return _nvidia_cards(hardware, node.facts.labels, offered)
    if vendor == "amd":
        label = hardware.model_of(vendor).label
        return sum(n // amd.parts(hardware.amd_cut_of(name), label) for name, n in offered.items())
    if vendor == "intel":
        return intel_cards(node.facts.labels) or sum(offered.values())
    if vendor == "aws":
        devices = max(offered.get(NEURON, 0), offered.get(NEURON_DEVICE, 0))
        return devices or (None if offered.get(NEURON_CORE) else 0)
    return sum(offered.values())


def _nvidia_cards(hardware: Hardware, labels: Mapping[str, str], offered: Mapping[str, int]) -> int | None:
    counted = count_label(labels)
    if any(mig.profile_of(name) and n for name, n in offered.items()):
        # Under the mixed strategy nothing but the label tells how many cards the slices are cut from.
        return counted
    devices = sum(offered.values())
    per_card: int | None = 1
    sharing = hardware.sharing if hardware.sharing and hardware.sharing.resources & set(offered) else None
    if sharing is not None:
        per_card = sharing.replicas
    if hardware.mig_profile:
        slices = mig.slices_per_gpu(hardware.mig_profile, hardware.model_of("nvidia").label)
        per_card = per_card * slices if per_card and slices else None
    elif sharing is not None and counted and per_card is None:
        return counted
    return devices // per_card if per_card else None


def _reported_memory(hardware: Hardware, node: NodeCount) -> int | None:
    if hardware.cards is not None or hardware.published:
        told = _told_memory(hardware)
        return next(iter(told)) or None if len(told) == 1 else None
    memory = hardware.memory.mib
    amds = [name for name in node.resources if vendor_of(name) == "amd"]
    if memory is not None and hardware.vendor == "amd" and hardware.amd_cut and amds == ["amd.com/gpu"]:
        return memory // amd.parts(hardware.amd_cut, hardware.label)
    return memory


def _told_memory(hardware: Hardware) -> set[int | None]:
    """The memory that cards or devices tell one by one; beside whole cards that of slices is left out."""
    if hardware.cards is not None:
        return {card.memory_mib for card in hardware.cards.cards}
    devices = [one.as_device() for one in hardware.published]
    whole = {device.memory_mib for device in devices if not device.partition}
    return whole or {device.memory_mib for device in devices}


def _detail(hardware: Hardware, node: NodeCount) -> None:
    details = node.details
    if hardware.virtual:
        details["virtual"] = True
    if hardware.memory.gb is not None and hardware.cards is None:
        details["memory_gb_label"] = hardware.memory.gb
    if hardware.memory.from_product:
        details["memory_from"] = "product"
    if hardware.memory.unparsed:
        details["memory_unparsed"] = hardware.memory.unparsed
    if hardware.amd_cut and hardware.amd_cut.partition("_")[0] != "spx":
        details["partition"] = hardware.amd_cut
    if hardware.sharing is not None and hardware.cards is None:
        details["sharing"] = hardware.sharing.as_report()
    details.update(_mig_detail(hardware, node))
    details.update(_places(node))


def _mig_detail(hardware: Hardware, node: NodeCount) -> dict[str, Any]:
    if hardware.mig_profile:
        told: dict[str, Any] = {"strategy": "single", "profile": hardware.mig_profile}
        slices = mig.slices_per_gpu(hardware.mig_profile, hardware.model_of("nvidia").label)
        return {"mig": told | ({"slices_per_gpu": slices} if slices else {})}
    offered = [mig.profile_of(name) for name, n in node.resources.items() if n.capacity]
    profiles = [profile for profile in offered if profile]
    if not profiles:
        return {}
    alone = len(profiles) == 1 == len(offered)
    return {"mig": {"strategy": "mixed"} | ({"profile": profiles[0]} if alone else {})}


def _places(node: NodeCount) -> dict[str, Any]:
    """Where the node stands among others: its NVLink domain, its TPU slice."""
    labels = node.facts.labels
    found: dict[str, Any] = {}
    if labels.get("nvidia.com/gpu.clique"):
        found["clique"] = labels["nvidia.com/gpu.clique"]
    topology = labels.get("cloud.google.com/gke-tpu-topology", "")
    sides = [number(side) for side in topology.split("x")]
    chips = prod(side or 0 for side in sides)
    if chips:
        per_host = count_label(labels) or max((n.capacity for n in node.resources.values()), default=0)
        found["slice"] = {
            "nodepool": labels.get("cloud.google.com/gke-nodepool"),
            "topology": topology,
            "chips": chips,
            "hosts": -(-chips // per_host) if per_host else None,
        }
    return found
