"""Devices that drivers publish by dynamic resource allocation, and the claims that hold them.

Of a pool only the slices of the highest generation count. A device is held once, however many pods share
its claim; a NoSchedule or NoExecute taint of a device keeps new pods off it.
https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from sizing.domain.specs import CLOSING_EFFECTS
from sizing.inventory.kubernetes.counted import Device
from sizing.inventory.kubernetes.facts import Listing, PodFacts, SliceDevice, SliceFacts, TaintRuleFacts
from sizing.inventory.kubernetes.labels import plausible
from sizing.inventory.kubernetes.vendors import is_device

Key = tuple[str, str, str]
"""A device: its driver, pool and name."""

_DRIVER = re.compile(r"(?:.*\.)?(?:gpus?|mig|tpus?|npus?|gaudi|neuron|accelerators?)\.[\w.-]+")
_KINDS = frozenset({"gpu", "mig", "tpu", "npu", "gaudi", "amdgpu", "amdgpu-partition"})
# Kinds of parts of a card. AMD: https://github.com/ROCm/k8s-gpu-dra-driver/blob/main/docs/driver-attributes.md
_CUT_KINDS = frozenset({"mig", "amdgpu-partition"})
_VENDORS = (
    ("nvidia", "nvidia"),
    ("amd", "amd"),
    ("intel", "intel"),
    ("habana", "habana"),
    ("google", "google"),
    ("aws", "aws"),
    ("amazon", "aws"),
    ("huawei", "huawei"),
)


@dataclass(frozen=True, slots=True)
class Published:
    """A device of a node."""

    driver: str
    pool: str
    device: SliceDevice
    closed_by_rule: bool = False

    @property
    def key(self) -> Key:
        return (self.driver, self.pool, self.device.name)

    @property
    def name(self) -> str:
        """What the cluster calls it: `pool/device`."""
        return f"{self.pool}/{self.device.name}"

    @property
    def kind(self) -> str:
        return self.device.attributes.get("type", "").lower()

    @property
    def model(self) -> str:
        """Its product; empty where no attribute tells it."""
        attributes = self.device.attributes
        return attributes.get("productName") or attributes.get("model") or attributes.get("device") or ""

    @property
    def tainted(self) -> bool:
        by_driver = any(taint.effect in CLOSING_EFFECTS for taint in self.device.taints)
        return by_driver or self.closed_by_rule

    @property
    def cut(self) -> bool:
        """Whether it is a part of a card."""
        return self.kind in _CUT_KINDS

    @property
    def profile(self) -> str:
        """How its card is cut, as in the type of such devices: `MIG-1g.10gb`, `CPX_NPS4`."""
        attributes = self.device.attributes
        if self.kind == "mig":
            return f"MIG-{attributes['profile']}" if attributes.get("profile") else ""
        return attributes.get("partitionProfile", "").upper() if self.cut else ""

    @property
    def card(self) -> str:
        """The card that it is or is cut from: by the parent's uuid, or by name (`gpu-0-mig-1g10gb-19-0`);
        AMD tells the parent's address."""
        attributes = self.device.attributes
        if self.kind == "amdgpu-partition":
            told = (attributes.get(key) for key in ("parentPciAddr", "pciAddr", "deviceID"))
            return next(filter(None, told), self.device.name)
        if not self.cut:
            return attributes.get("uuid") or self.device.name
        return attributes.get("parentUUID") or self.device.name.partition("-mig-")[0]

    def as_device(self) -> Device:
        """The device as the inventory stores it."""
        model = self.model or self.driver
        memory = self.device.memory_bytes
        return Device(
            f"{model}-{self.profile}" if self.profile else model,
            plausible(memory // 2**20 if memory else None),
            healthy=not self.tainted,
            partition=self.cut,
            uuid=self.device.attributes.get("uuid", ""),
            name=self.name,
        )


@dataclass(slots=True)
class Dra:
    """All that was published and given. `nodes` has the devices of each node, `stale` its ignored slices."""

    nodes: dict[str, list[Published]] = field(default_factory=dict)
    stale: dict[str, list[str]] = field(default_factory=dict)
    held: set[Key] = field(default_factory=set)
    where: dict[Key, str] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)

    def is_class(self, name: str) -> bool:
        """Whether a device class gives accelerators."""
        return name in self.classes or _is_driver(name)


def read(listing: Listing) -> Dra:
    """The accelerators of the slices, and which of them claims hold."""
    found = Dra()
    pools: dict[tuple[str, str], list[SliceFacts]] = defaultdict(list)
    for one in listing.slices.values():
        pools[(one.driver, one.pool)].append(one)
    rules = [rule for rule in listing.taint_rules.values() if rule.taint.effect in CLOSING_EFFECTS]
    for rule in rules:
        if rule.unread:
            found.warnings.append(
                f"device taint rule {rule.name} selects by class or expression, which is not worked out: "
                "the devices that it taints look free"
            )
    rules = [rule for rule in rules if not rule.unread]
    for (driver, pool), slices in pools.items():
        newest = max(one.generation for one in slices)
        current = [one for one in slices if one.generation == newest]
        told = max(one.slices for one in current)
        if len(current) < told and any(_is_accelerator(driver, d) for one in current for d in one.devices):
            found.warnings.append(
                f"pool {pool} of {driver}: {len(current)} of its {told} resource slices are listed, so"
                " that it may have more devices"
            )
        for one in slices:
            if one.generation < newest:
                if any(_is_accelerator(one.driver, device) for device in one.devices):
                    found.stale.setdefault(one.node, []).append(one.name)
            else:
                _publish(found, one, rules)
    found.classes = {name for name, resource in listing.device_classes.items() if is_device(resource)}
    for claim in listing.claims.values():
        found.held.update(key for key in claim.devices if key in found.where)
        gone = sorted(name for driver, _, name in claim.devices if _is_driver(driver))
        if gone and not any(key in found.where for key in claim.devices):
            names = ", ".join(gone)
            found.warnings.append(
                f"claim {claim.namespace}/{claim.name} holds {names}, which no listed slice publishes"
            )
    for node in list(found.nodes):
        found.nodes[node] = _without_overlaps(found.nodes[node], found.held)
    return found


def _publish(found: Dra, one: SliceFacts, rules: Iterable[TaintRuleFacts]) -> None:
    devices = [
        Published(one.driver, one.pool, device, any(_taints(rule, one, device) for rule in rules))
        for device in one.devices
        if _is_accelerator(one.driver, device)
    ]
    if not devices:
        return
    if not one.node:
        found.warnings.append(
            f"resource slice {one.name}: its {len(devices)} devices are of no single node, not counted"
        )
        return
    found.nodes.setdefault(one.node, []).extend(devices)
    for device in devices:
        found.where[device.key] = one.node


def _taints(rule: TaintRuleFacts, one: SliceFacts, device: SliceDevice) -> bool:
    selected = ((rule.driver, one.driver), (rule.pool, one.pool), (rule.device, device.name))
    return all(not wanted or wanted == told for wanted, told in selected)


def _without_overlaps(devices: list[Published], held: set[Key]) -> list[Published]:
    """Devices that stand for different hardware.

    A driver that partitions on demand publishes a card and every slice that could be cut from it. A card of
    which a slice is held is no whole card any more: the held slices remain; else the card does.
    """
    cards = {one.card: one for one in devices if not one.cut}
    by_name = {one.device.name: one.card for one in devices if not one.cut}
    cut = {by_name.get(one.card, one.card) for one in devices if one.cut and one.key in held}
    remaining = []
    for one in devices:
        card = by_name.get(one.card, one.card)
        only_if_held = one.cut and card in cards
        if one.key in held if only_if_held else one.cut or card not in cut:
            remaining.append(one)
    return remaining


def held_by(pod: PodFacts, listing: Listing, dra: Dra) -> dict[str, list[Key]]:
    """The accelerators that a pod's claims hold, by claim."""
    found: dict[str, list[Key]] = {}
    for name in (*pod.claims, *((pod.extended_claim,) if pod.extended_claim else ())):
        claim = listing.claims.get((pod.namespace, name))
        if claim is not None:
            keys = [key for key in claim.devices if key in dra.where]
            if keys:
                found[name] = keys
    return found


def asked_by(pod: PodFacts, listing: Listing, dra: Dra) -> dict[str, int]:
    """How many accelerators a pod's claims ask for, by device class."""
    asks: dict[str, int] = {}
    for name in pod.claims:
        claim = listing.claims.get((pod.namespace, name))
        for device_class, count in (claim.asks if claim is not None else {}).items():
            if count and dra.is_class(device_class):
                asks[device_class] = asks.get(device_class, 0) + count
    return asks


def vendor_of_driver(driver: str) -> str | None:
    """The vendor of a driver's devices."""
    return next((vendor for word, vendor in _VENDORS if word in driver), None)


def cards_of(devices: Iterable[Published]) -> int:
    """How many cards the devices are, or are cut from."""
    return len({(one.driver, one.pool, one.card) for one in devices})


def _is_driver(name: str) -> bool:
    return _DRIVER.fullmatch(name) is not None


def _is_accelerator(driver: str, device: SliceDevice) -> bool:
    """Network devices, channels of compute domains and passthrough twins (vfio) are none."""
    kind = device.attributes.get("type", "").lower()
    return kind in _KINDS or (_is_driver(driver) and kind in ("", driver.partition(".")[0]))
