"""The makers of load that a measurement may use, by name."""

from __future__ import annotations

from sizing.measuring.guidellm import GuideLlm
from sizing.measuring.loadgen.builtin import Builtin
from sizing.measuring.seam import Maker, MeasuringError


def maker(name: str, guidellm_bin: str) -> Maker:
    """`builtin`, or `guidellm` where that program is installed; MeasuringError where it cannot be had."""
    if name == "builtin":
        return Builtin()
    if name == "guidellm":
        return GuideLlm(guidellm_bin)
    raise MeasuringError(f'no load generator "{name}"; there are builtin, guidellm')
