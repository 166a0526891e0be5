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
# Slices with all or one of the card's media engines: a card has one such slice.
_MEDIA = re.compile(r"gb[+.]me(?:\.all)?$")
# A GH200 tells the memory of its processor (`480GB`), or that of its GPU (`144G`).
_GRACE_HOPPER = re.compile(r"GH200(?:-(\d{3})G(?!B))?", re.IGNORECASE)
_GRACE_HOPPER_GB = 96
# Memory (GB) of cards whose name does not tell it.
_CARD_GB = (
    ("H200", 141),
    ("H20-3E", 141),
    ("H20", 96),
    ("H100-NVL", 94),
    ("H100", 80),
    ("H800", 80),
    ("B200", 180),
    ("B300", 270),
    ("A30", 24),
    ("RTX-PRO-6000", 96),
)
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
        # Where the cards are not all cut alike, discovery writes `INVALID`.
        return found[1] if _PROFILE.match(found[1]) else ""
    return labels.get(_GKE_PARTITION, "")


def slices_per_gpu(profile: str, product: str) -> int | None:
    """How many slices of this profile one GPU of this model holds; None for a profile of unknown form."""
    found = _PROFILE.match(profile)
    if found is None:
        return None
    compute, memory = int(found[2]), int(found[3])
    if not compute or not memory:
        return None
    if _MEDIA.search(profile):
        return 1
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
    grace = _GRACE_HOPPER.search(product)
    if grace:
        return int(grace[1] or _GRACE_HOPPER_GB)
    found = _GB.search(product)
    if found:
        return int(found[1])
    upper = product.upper()
    return next((gb for name, gb in _CARD_GB if name in upper), None)
