"""AMD Instinct cards that are cut into partitions.

Under the single naming strategy every partition is an `amd.com/gpu` and a label tells the cut; under the
mixed one each cut has a resource of its own (`amd.com/cpx_nps4`). Memory labels are those of the card.
https://github.com/ROCm/k8s-device-plugin/blob/master/docs/user-guide/configuration.md
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_CUT = re.compile(r"([sdtqc]px)_nps\d+")
_LABELS = (
    "amd.com/compute-memory-partition",
    "amd.com/gpu.compute-memory-partition",
    "beta.amd.com/gpu.compute-memory-partition",
)
_PARTS = {"spx": 1, "dpx": 2, "tpx": 3, "qpx": 4}
# CPX makes a partition of each accelerator die.
_DIES = (("MI300A", 6), ("MI308", 4))


def label_cut(labels: Mapping[str, str]) -> str:
    """The cut of all cards of a node (`cpx_nps4`); empty where the labels do not tell one."""
    value = next((labels[key] for key in _LABELS if labels.get(key)), "").lower()
    return value if _CUT.fullmatch(value) else ""


def resource_cut(resource: str) -> str:
    """The cut that a resource names, `cpx_nps1` of `amd.com/cpx_nps1`; else empty."""
    name = resource.removeprefix("amd.com/")
    return name if _CUT.fullmatch(name) else ""


def parts(cut: str, product: str) -> int:
    """Into how many partitions a card is cut."""
    mode = cut.partition("_")[0]
    if mode != "cpx":
        return _PARTS.get(mode, 1)
    return next((dies for name, dies in _DIES if name in product.upper()), 8)
