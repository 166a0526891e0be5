"""What a replica reserves on each of its GPUs, exactly."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil

from sizing.domain.specs import VariantSpec


def fraction_mib(fraction: Decimal, memory_mib: int) -> int:
    """`ceil(fraction × memory_mib)` in exact arithmetic: 0.33 of 80,000 is 26,400."""
    return ceil(Fraction(fraction) * memory_mib)


def claim_mib(variant: VariantSpec, memory_mib: int) -> int:
    """The claim in MiB on a GPU of that memory: the fraction where there is one, else the size, else all."""
    if variant.gpu_memory_fraction is not None:
        return fraction_mib(variant.gpu_memory_fraction, memory_mib)
    if variant.gpu_memory_mib is not None:
        return variant.gpu_memory_mib
    return memory_mib


def fraction_below_need(variant: VariantSpec, memory_mib: int) -> bool:
    """Whether the variant's fraction of such a GPU is less than the size that it needs."""
    if variant.gpu_memory_fraction is None or variant.gpu_memory_mib is None:
        return False
    return fraction_mib(variant.gpu_memory_fraction, memory_mib) < variant.gpu_memory_mib
