"""A node's devices as the inventory stores them: slices and shares are devices of their own type."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from sizing.inventory.kubernetes import amd, mig
from sizing.inventory.kubernetes.counted import Device, NodeCount, Pool
from sizing.inventory.kubernetes.hardware import Hardware
from sizing.inventory.kubernetes.labels import number, plausible
from sizing.inventory.kubernetes.neuron import cores_per_device
from sizing.inventory.kubernetes.sharing import MPS
from sizing.inventory.kubernetes.vendors import (
    NEURON,
    NEURON_CORE,
    NEURON_DEVICE,
    NVIDIA_GPU,
    is_vgpu,
    vendor_of,
    vgpu_mib,
    whole_type,
)


def device(hardware: Hardware, resource: str, labels: Mapping[str, str]) -> Device:
    """One device of a resource as the inventory stores it."""
    vendor = vendor_of(resource)
    model, sharing = hardware.model_of(vendor), hardware.sharing
    name, memory = hardware.label_of(resource) or resource, model.memory.stored_mib
    partition = sharing is not None and resource in sharing.resources
    profile = mig.profile_of(resource)
    cut = hardware.amd_cut_of(resource) if vendor == "amd" else ""
    if resource in hardware.unlabeled:
        memory = None
    if profile:
        name = labels.get(f"nvidia.com/mig-{profile}.product") or f"{whole_type(name)}-MIG-{profile}"
        memory = None if partition else number(labels.get(f"nvidia.com/mig-{profile}.memory"))
    elif is_vgpu(resource):
        name, memory = resource, vgpu_mib(resource)
    elif hardware.mig_profile and resource in (NVIDIA_GPU, f"{NVIDIA_GPU}.shared"):
        name = name if "-MIG-" in name else f"{name}-MIG-{hardware.mig_profile}"
        profile = hardware.mig_profile
    elif cut and amd.parts(cut, model.label) > 1:
        parts = amd.parts(cut, model.label)
        name, profile = f"{name}-{cut.upper()}", cut
        memory = memory // parts if memory else None
    if sharing is not None and partition:
        name = _shared(name)
        if not sharing.isolated:
            memory = None
        elif sharing.strategy == MPS:
            memory = memory // sharing.replicas if memory and sharing.replicas else None
    return Device(name, plausible(memory), partition=partition or bool(profile))


def _rows(hardware: Hardware, resource: str, labels: Mapping[str, str], rows: int) -> list[Device]:
    """So many devices of a resource; where labels tell the model of some, those come first."""
    told = rows
    if resource == NVIDIA_GPU and hardware.labeled is not None:
        told = min(rows, hardware.labeled)
    return [device(hardware, resource, labels)] * told + [Device(resource)] * (rows - told)


def pools(
    hardware: Hardware,
    node: NodeCount,
    held: Mapping[str, int],
    reconfiguring: bool,
    full: Collection[str] = (),
) -> list[Pool]:
    """The node's devices by resource. `held` are the devices that pods hold by resource, `full` the uuids of
    cards that take no more pods."""
    found = _named(hardware, node, held, full)
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
            found.append(Pool(resource, _rows(hardware, resource, node.facts.labels, rows), withdrawn))
    return found


def _named(hardware: Hardware, node: NodeCount, held: Mapping[str, int], full: Collection[str]) -> list[Pool]:
    """Devices that the cluster tells one by one: published by DRA, or the cards of HAMi."""
    found: list[Pool] = []
    for driver in dict.fromkeys(one.driver for one in hardware.published):
        found.append(Pool(driver, [one.as_device() for one in hardware.published if one.driver == driver]))
    cards = hardware.cards
    if cards is not None:
        working = _offered(node, cards.resource)[1] > 0
        if working or held.get(cards.resource):
            devices = cards.devices(full)
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
