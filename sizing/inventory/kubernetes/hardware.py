"""A node's hardware as its labels, annotations and slices tell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sizing.inventory.kubernetes import amd, mig
from sizing.inventory.kubernetes import dra as dynamic
from sizing.inventory.kubernetes.counted import NodeCount
from sizing.inventory.kubernetes.hami import Cards
from sizing.inventory.kubernetes.labels import DISCOVERED, Memory, memory_of, number, type_label
from sizing.inventory.kubernetes.sharing import Sharing, sharing_of
from sizing.inventory.kubernetes.signs import signed_vendor
from sizing.inventory.kubernetes.vendors import NVIDIA_GPU, is_called, vendor_of

_VIRTUAL_LABELS = {"type": "virtual-kubelet", "kubernetes.azure.com/virtual-kubelet": "true"}
_VIRTUAL_TAINT = "virtual-kubelet.io/provider"


@dataclass(frozen=True, slots=True)
class Model:
    """What labels tell of a vendor's devices; `label` is empty where they tell no model."""

    label: str = ""
    memory: Memory = field(default_factory=Memory)


@dataclass(slots=True)
class Hardware:
    """A node's hardware as its labels, annotations and slices tell it.

    `vendor` is the one that the report names, `models` are those of all vendors. `labeled` is of how many
    devices the labels tell the model where they tell it of some only (None: of all); `unlabeled` are
    resources of which they do not.
    """

    vendor: str | None = None
    models: dict[str, Model] = field(default_factory=dict)
    sharing: Sharing | None = None
    mig_profile: str = ""
    amd_cut: str = ""
    cards: Cards | None = None
    published: list[dynamic.Published] = field(default_factory=list)
    virtual: bool = False
    labeled: int | None = None
    unlabeled: frozenset[str] = frozenset()

    @classmethod
    def of(cls, node: NodeCount, cards: Cards | None, published: list[dynamic.Published]) -> Hardware:
        facts, resources = node.facts, node.resources
        found = cls(cards=cards, published=published, virtual=is_virtual(node))
        vendors = {vendor for name in resources if (vendor := vendor_of(name))}
        vendors.update(v for one in published if (v := dynamic.vendor_of_driver(one.driver)))
        signed = signed_vendor(facts.labels)
        for vendor in vendors or ({signed} if signed else set()):
            memory = memory_of(vendor, facts.labels, facts.capacity)
            found.models[vendor] = Model(type_label(vendor, facts.labels), memory)
        found.vendor = _vendor(node, published, found.models) or signed
        if resources:
            found.sharing = sharing_of(facts.labels, facts.capacity)
        if "nvidia" in found.models:
            found.mig_profile = mig.single_profile(facts.labels)
        if "amd" in found.models:
            found.amd_cut = amd.label_cut(facts.labels)
        found.labeled = _labeled(found, node)
        found.unlabeled = _unlabeled(found, node)
        return found

    @property
    def label(self) -> str:
        return self.model_of(self.vendor).label

    @property
    def memory(self) -> Memory:
        return self.model_of(self.vendor).memory

    def model_of(self, vendor: str | None) -> Model:
        return self.models.get(vendor or "") or Model()

    def label_of(self, resource: str) -> str:
        return "" if resource in self.unlabeled else self.model_of(vendor_of(resource)).label

    def amd_cut_of(self, resource: str) -> str:
        return amd.resource_cut(resource) or self.amd_cut


def is_virtual(node: NodeCount) -> bool:
    """Whether a virtual kubelet stands behind the node: its figures are quotas, no hardware."""
    labels = node.facts.labels
    return any(labels.get(key) == value for key, value in _VIRTUAL_LABELS.items()) or any(
        taint.key == _VIRTUAL_TAINT for taint in node.facts.taints
    )


def _vendor(node: NodeCount, published: list[dynamic.Published], models: Mapping[str, Model]) -> str | None:
    """Of several vendors the one whose model is told, else the one with most devices."""
    offered: dict[str, int] = {}
    for name, count in sorted(node.resources.items()):
        vendor = vendor_of(name)
        if vendor:
            offered[vendor] = offered.get(vendor, 0) + count.capacity
    if published and not any(offered.values()):
        return dynamic.vendor_of_driver(published[0].driver)
    order = sorted(offered, key=lambda v: (not offered[v], not models[v].label, -offered[v], v))
    return order[0] if order else None


def _labeled(hardware: Hardware, node: NodeCount) -> int | None:
    """Of how many GPUs the labels tell the model; None where of all.

    GPU feature discovery labels one of several models, with the number of its cards.
    https://github.com/NVIDIA/k8s-device-plugin/blob/main/internal/lm/mig-strategy.go (newGPULabelers)
    """
    whole = node.resources.get(NVIDIA_GPU)
    told = number(node.facts.labels.get(DISCOVERED))
    cut = hardware.mig_profile or any(
        mig.profile_of(name) and n.capacity for name, n in node.resources.items()
    )
    if whole is None or not told or cut or hardware.cards or hardware.virtual:
        return None
    if hardware.sharing is not None or not hardware.model_of("nvidia").label:
        return None
    # Where no more can be used, the ones that are missing in the label are those that were withdrawn.
    return told if told < whole.allocatable else None


def _unlabeled(hardware: Hardware, node: NodeCount) -> frozenset[str]:
    """Of several names that GPUs were given by model, those that the label's model does not explain."""
    label = hardware.model_of("nvidia").label
    given = [
        name
        for name, count in node.resources.items()
        if count.capacity and vendor_of(name) == "nvidia" and not mig.profile_of(name)
    ]
    return frozenset(name for name in given if len(given) > 1 and not is_called(name, label))
