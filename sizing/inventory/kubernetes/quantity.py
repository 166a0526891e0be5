"""Kubernetes' quantities as whole numbers: `7910m` CPU is 7910 millicores, `1.9Ti` is 2089072092775 bytes.

What a quantity may look like and how it is rounded (up) follows
https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/; the arithmetic is the
official client's. The client would take more than the cluster does (NaN, underscores, `2K`), hence the
pattern before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal
from functools import cache, lru_cache
from sys import intern
from typing import Any, cast

from sizing.inventory.kubernetes.facts import CPU, Quantities

LARGEST = 2**63 - 1
"""The largest number that the API keeps."""

MOST_DEVICES = 10_000
"""More devices than that of one kind no node has, nor asks a pod for; some hundreds of vGPUs are common."""

_QUANTITY = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,3})?", re.ASCII
)
_LONGEST = 64
_LONGEST_NAME = 317
# Counted devices, by the names that vendors give them; not what counts memory or shares of them.
_DEVICES = re.compile(
    r"gpu|tpu|npu|hpu|gaudi|neuron|mig-|[csdq]px|dcu|mlu|xpu|ascend|accelerator", re.IGNORECASE
)
_SHARES = re.compile(r"mem|(?<!neuron)core|percent", re.IGNORECASE)


class QuantityError(ValueError):
    """Something that is no quantity, or none of its resource; the message is one line that says which."""


def read_quantities(value: Any) -> Quantities:
    """A mapping of resources to quantities. What is null counts as not told; `QuantityError` otherwise."""
    found: Quantities = {}
    if isinstance(value, dict):
        for resource, amount in value.items():
            if type(amount) is str:
                found[_resource(resource)] = _read(resource, amount)
            elif amount is not None:
                found[_resource(resource)] = read_quantity(resource, amount)
    return found


def read_quantity(resource: str, value: Any) -> int:
    """One quantity: CPU in millicores, all else in its own unit, rounded up.

    An extended resource (`vendor/name`) must be whole. Raises `QuantityError`.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise QuantityError(f"{resource} {_shown(value)} is no quantity")
    return _read(resource, value)


@lru_cache(maxsize=20_000, typed=True)
def _read(resource: str, value: str | float | Decimal) -> int:
    amount = _amount(resource, value)
    if amount < 0:
        raise QuantityError(f"{resource} {_shown(value)} is a negative quantity")
    # Compared before it is made whole, which would write out every digit of an exponent.
    if amount > LARGEST:
        raise QuantityError(f"{resource} {_shown(value)} is beyond all sizes")
    if resource == CPU:
        amount *= 1000
    whole = int(amount.to_integral_value(ROUND_CEILING))
    if "/" in resource:
        if whole != amount:
            raise QuantityError(f"{resource}: an extended resource must be whole ({value})")
        if whole > MOST_DEVICES and _DEVICES.search(resource) and not _SHARES.search(resource):
            raise QuantityError(f"{resource} {_shown(value)}: no node has more than {MOST_DEVICES:,} devices")
    return whole


def _amount(resource: str, value: str | float | Decimal) -> Decimal:
    if isinstance(value, str):
        if len(value) > _LONGEST or not _QUANTITY.fullmatch(value):
            raise QuantityError(f"{resource} {_shown(value)} is no quantity")
        return _parser()(value)
    # 0.1 as it is written, not the nearest binary fraction.
    amount = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not amount.is_finite():
        raise QuantityError(f"{resource} {_shown(value)} is no quantity")
    return amount


@cache
def _parser() -> Callable[[str], Decimal]:
    """The official client's; imported when the first quantity is read, for that takes half a second."""
    from kubernetes.utils.quantity import parse_quantity  # type: ignore[import-untyped]

    return cast("Callable[[str], Decimal]", parse_quantity)


@lru_cache(maxsize=1_000)
def _resource(name: str) -> str:
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise QuantityError(f"{_shown(name)} is no name of a resource")
    return intern(name)


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "(a mapping)" if isinstance(value, dict) else "(a list)"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
