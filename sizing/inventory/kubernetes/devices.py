"""A node's devices as the inventory stores them: slices and shares are devices of their own type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sizing.inventory.kubernetes import amd, mig
from sizing.inventory.kubernetes.counted import Device, NodeCount, Pool
from sizing.inventory.kubernetes.hardware import Hardware
from sizing.inventory.kubernetes.holding import cores_per_device
from sizing.inventory.kubernetes.labels import number, plausible
from sizing.inventory.kubernetes.sharing import MPS
from sizing.inventory.kubernetes.vendors import (
    NEURON,
    NEURON_CORE,
    NEURON_DEVICE,
    NVIDIA_GPU,
    vendor_of,
    whole_type,
)


def device(hardware: Hardware, resource: str, labels: Mapping[str, str]) -> Device:
    """One device of a resource as the inventory stores it."""
    name, memory = hardware.label or resource, hardware.memory.stored_mib
    partition = False
    profile = mig.profile_of(resource)
    cut = hardware.amd_cut_of(resource) if vendor_of(resource) == "amd" else ""
    if vendor_of(resource) != hardware.vendor:
        name, memory = resource, None
    if profile:
        name = labels.get(f"nvidia.com/mig-{profile}.product") or f"{whole_type(name)}-MIG-{profile}"
        memory, partition = number(labels.get(f"nvidia.com/mig-{profile}.memory")), True
        replicas = number(labels.get(f"nvidia.com/mig-{profile}.replicas")) or 1
        if replicas > 1 or resource.endswith(".shared"):
            name, memory = _shared(name), None
    elif hardware.mig_profile and resource in (NVIDIA_GPU, f"{NVIDIA_GPU}.shared"):
        name, partition = name if "-MIG-" in name else f"{name}-MIG-{hardware.mig_profile}", True
    elif cut and amd.parts(cut, hardware.label) > 1:
        parts = amd.parts(cut, hardware.label)
        name, partition = f"{name}-{cut.upper()}", True
        memory = memory // parts if memory else None
    if hardware.sharing is not None and resource == hardware.sharing.resource:
        name, partition = _shared(name), True
        if not hardware.sharing.isolated:
            memory = None
        elif hardware.sharing.strategy == MPS:
            shares = hardware.sharing.replicas
            memory = memory // shares if memory and shares else None
    return Device(name, plausible(memory), partition=partition)


def pools(hardware: Hardware, node: NodeCount, held: Mapping[str, int], reconfiguring: bool) -> list[Pool]:
    """The node's devices by resource. `held` are the devices that pods hold by resource."""
    found = _named(hardware, node, held)
    known = {pool.resource for pool in found}
    if hardware.cards is not None:
        known.add(hardware.cards.resource)
    for resource in dict.fromkeys(_pool_name(name) for name in [*node.resources, *held]):
        if resource in known or vendor_of(resource) is None:
            continue
        capacity, allocatable = _offered(node, resource)
        used = held.get(resource, 0)
        rows = max(0 if hardware.virtual else capacity, used) if allocatable or used else 0
        if rows:
            withdrawn = 0 if reconfiguring else max(0, rows - allocatable)
            found.append(Pool(resource, [device(hardware, resource, node.facts.labels)] * rows, withdrawn))
    return found


def _named(hardware: Hardware, node: NodeCount, held: Mapping[str, int]) -> list[Pool]:
    """Devices that the cluster tells one by one: published by DRA, or the cards of HAMi."""
    found: list[Pool] = []
    for driver in dict.fromkeys(one.driver for one in hardware.published):
        found.append(Pool(driver, [one.as_device() for one in hardware.published if one.driver == driver]))
    cards = hardware.cards
    if cards is not None:
        working = _offered(node, cards.resource)[1] > 0
        if working or held.get(cards.resource):
            devices = cards.devices()
            lost = [replace(one, healthy=False) for one in devices]
            found.append(Pool(cards.resource, devices if working else lost))
    return found


def _offered(node: NodeCount, resource: str) -> tuple[int, int]:
    """Capacity and allocatable; cores of Neuron are counted in devices where only cores are told."""
    count = node.resources.get(resource)
    if resource == NEURON and count is None:
        count = node.resources.get(NEURON_DEVICE)
        cores = node.resources.get(NEURON_CORE)
        if count is None and cores is not None:
            per = cores_per_device(node.facts.capacity)
            return cores.capacity // per, cores.allocatable // per
    return (count.capacity, count.allocatable) if count is not None else (0, 0)


def _pool_name(resource: str) -> str:
    """Neuron offers the same hardware as devices and as cores."""
    return NEURON if resource in (NEURON_CORE, NEURON_DEVICE) else resource


def _shared(name: str) -> str:
    return name if name.endswith("-SHARED") else f"{name}-SHARED"
