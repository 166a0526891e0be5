"""Small words for people: numbers with separators, lists, plurals, what a variant needs."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sizing.domain.specs import VariantSpec

NAMES_SHOWN = 5


def number(value: int | Decimal) -> str:
    """A number with thousands separators and no trailing zeros."""
    if isinstance(value, Decimal):
        text = f"{value:,f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:,}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


def names(all_names: Sequence[str], what: str = "") -> str:
    """Up to five names, then `and 211 more`."""
    shown, rest = list(all_names[:NAMES_SHOWN]), len(all_names) - NAMES_SHOWN
    if rest > 0:
        return f"{', '.join(shown)} and {number(rest)} more{' ' + what if what else ''}"
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def needs(variant: VariantSpec) -> str:
    """What one replica of a variant needs, such as `4 free NVIDIA-H100-80GB-HBM3 on one node`."""
    types = " or ".join(variant.gpu_types)
    if variant.whole_gpu:
        what = f"{variant.gpus} free {types or _gpus(variant.gpus)}"
    else:
        what = f"{variant.gpus} {types or _gpus(variant.gpus)} with {claim(variant)} free"
        what += " each" if variant.gpus > 1 else ""
    if variant.gpus > 1 and len(variant.gpu_types) != 1:
        what += " of one type" if variant.whole_gpu else ", of one type,"
    if variant.nodes > 1:
        where = f"on each of {variant.nodes} nodes"
        return f"{what} {where}" + (f" of one {variant.topology_key}" if variant.topology_key else "")
    return f"{what} on one node"


def claim(variant: VariantSpec) -> str:
    """The claim on one GPU, such as `20,000 MiB` or `90 % of its memory`."""
    if variant.gpu_memory_fraction is not None:
        return f"{number(variant.gpu_memory_fraction * 100)} % of its memory"
    if variant.gpu_memory_mib is not None:
        return f"{number(variant.gpu_memory_mib)} MiB"
    return "the whole GPU"


def _gpus(count: int) -> str:
    return "GPU" if count == 1 else "GPUs"
