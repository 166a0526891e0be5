"""A node's hardware as its labels, annotations and slices tell it."""

from __future__ import annotations

from dataclasses import dataclass, field

from sizing.inventory.kubernetes import amd, mig
from sizing.inventory.kubernetes import dra as dynamic
from sizing.inventory.kubernetes.counted import NodeCount
from sizing.inventory.kubernetes.hami import Cards
from sizing.inventory.kubernetes.labels import Memory, memory_of, signed_vendor, type_label
from sizing.inventory.kubernetes.sharing import Sharing, sharing_of
from sizing.inventory.kubernetes.vendors import vendor_of

_VIRTUAL_LABELS = {"type": "virtual-kubelet", "kubernetes.azure.com/virtual-kubelet": "true"}
_VIRTUAL_TAINT = "virtual-kubelet.io/provider"


@dataclass(slots=True)
class Hardware:
    """A node's hardware as its labels, annotations and slices tell it."""

    vendor: str | None = None
    label: str = ""
    memory: Memory = field(default_factory=Memory)
    sharing: Sharing | None = None
    mig_profile: str = ""
    amd_cut: str = ""
    cards: Cards | None = None
    published: list[dynamic.Published] = field(default_factory=list)
    virtual: bool = False

    @classmethod
    def of(cls, node: NodeCount, cards: Cards | None, published: list[dynamic.Published]) -> Hardware:
        facts, resources = node.facts, node.resources
        found = cls(cards=cards, published=published, virtual=is_virtual(node))
        found.vendor = _vendor(node, published)
        if found.vendor is None:
            return found
        found.label = type_label(found.vendor, facts.labels)
        found.memory = memory_of(found.vendor, facts.labels, facts.capacity)
        if resources:
            found.sharing = sharing_of(facts.labels, facts.capacity)
        if found.vendor == "nvidia":
            found.mig_profile = mig.single_profile(facts.labels)
        elif found.vendor == "amd":
            found.amd_cut = amd.label_cut(facts.labels)
        return found

    def amd_cut_of(self, resource: str) -> str:
        return amd.resource_cut(resource) or self.amd_cut


def is_virtual(node: NodeCount) -> bool:
    """Whether a virtual kubelet stands behind the node: its figures are quotas, no hardware."""
    labels = node.facts.labels
    return any(labels.get(key) == value for key, value in _VIRTUAL_LABELS.items()) or any(
        taint.key == _VIRTUAL_TAINT for taint in node.facts.taints
    )


def _vendor(node: NodeCount, published: list[dynamic.Published]) -> str | None:
    offered = sorted(node.resources, key=lambda name: not node.resources[name].capacity)
    if published and (not offered or not node.resources[offered[0]].capacity):
        return dynamic.vendor_of_driver(published[0].driver)
    return vendor_of(offered[0]) if offered else signed_vendor(node.facts.labels)
