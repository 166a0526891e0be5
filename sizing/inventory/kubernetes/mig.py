"""MIG: how many slices of a profile a GPU holds.

A profile `3g.40gb` takes 3 of 7 compute slices and so many of 8 memory slices as its memory needs; GPUs of
the A30 and RTX PRO kind have 4 of both. https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sizing.inventory.kubernetes.vendors import MIG, whole_type

_PROFILE = re.compile(r"(?:(\d{1,3})c\.)?(\d{1,3})g\.(\d{1,4})gb")
_SINGLE = re.compile(r"-MIG-(.+?)(?:-SHARED)?$")
_GB = re.compile(r"(\d{1,4})\s*GB", re.IGNORECASE)
_GKE_PARTITION = "cloud.google.com/gke-gpu-partition-size"
# Memory (GB) of cards whose name does not tell it, or tells that of the processor.
_CARD_GB = (("GH200", 96), ("H200", 141), ("B200", 180), ("B300", 270), ("H100-NVL", 94), ("A30", 24))
_FOUR_SLICES = re.compile(r"A30\b|RTX-PRO", re.IGNORECASE)
# Memory slices by compute slices where the card's memory is not known.
_USUAL_MEMORY_SLICES = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}


def profile_of(resource: str) -> str:
    """The profile of a resource of the mixed strategy, `3g.40gb` of `nvidia.com/mig-3g.40gb`; else empty."""
    return resource[len(MIG) :].removesuffix(".shared") if resource.startswith(MIG) else ""


def single_profile(labels: Mapping[str, str]) -> str:
    """The profile into which every GPU of a node is cut, all called `nvidia.com/gpu`; else empty.

    GPU feature discovery writes it behind the product (`…-MIG-1g.10gb`), GKE in a label of its own.
    """
    found = _SINGLE.search(labels.get("nvidia.com/gpu.product", ""))
    if found:
        return found[1]
    return labels.get(_GKE_PARTITION, "")


def slices_per_gpu(profile: str, product: str) -> int | None:
    """How many slices of this profile one GPU of this model holds; None for a profile of unknown form."""
    found = _PROFILE.match(profile)
    if found is None:
        return None
    compute, memory = int(found[2]), int(found[3])
    if not compute or not memory:
        return None
    card = _card_gb(whole_type(product).replace(" ", "-"))
    units = 4 if _FOUR_SLICES.search(product) else 7
    memory_units = 4 if units == 4 else 8
    if card is None:
        taken = _USUAL_MEMORY_SLICES.get(compute, compute)
    else:
        taken = max(1, round(memory * memory_units / card))
    slices = max(1, min(units // compute, memory_units // taken))
    # Compute instances (`1c.3g.40gb`) divide an instance further.
    return slices * (compute // int(found[1])) if found[1] and int(found[1]) else slices


def _card_gb(product: str) -> int | None:
    """The memory of a card in GB; None where it is not known."""
    upper = product.upper()
    if "RTX-PRO-6000" in upper:
        return 96
    for name, gb in _CARD_GB:
        if name in upper:
            return gb
    found = _GB.search(product)
    return int(found[1]) if found else None
