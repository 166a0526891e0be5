"""How many replicas a wish needs, exactly."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from math import ceil

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 64

LARGEST_RATE = Decimal(10) ** 12
"""Tokens per second beyond which no wish is taken seriously."""

SMALLEST_SHARE = Decimal("0.000001")
"""The smallest utilization: decimals keep six places."""

_NEXT_TO_NOTHING = Decimal("1e-30")


def parse_number(text: str) -> Decimal | None:
    """A plain ASCII number of at most 64 characters, or None: no sign, space, underscore, NaN or infinity."""
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except ArithmeticError:
        return None


def parse_rate(text: str) -> Decimal | None:
    """Tokens per second above 0 and up to 1e12, or None."""
    number = parse_number(text)
    if number is None or not 0 < number <= LARGEST_RATE:
        return None
    return number


def parse_utilization(text: str) -> Decimal | None:
    """A share in (0, 1] of at least a millionth, or None."""
    number = parse_number(text)
    return number if number is not None and SMALLEST_SHARE <= number <= 1 else None


def replicas_needed(
    tokens_per_sec: Decimal, per_replica: Decimal, utilization: Decimal, others: Iterable[Decimal] = ()
) -> int:
    """Replicas that the wish needs in all, at least one.

    `others` are the measured rates of replicas that run another variant and are kept (0 where
    unmeasured); the rest is served by the variant asked for:
    `others + ceil(rest / (per_replica × utilization))`.
    """
    rates = Counter(others)  # of hundreds of replicas there are few rates
    other = sum((number * Fraction(rate) for rate, number in rates.items()), Fraction(0))
    share = Fraction(utilization)
    # An exponent of minus a billion would not fit in memory as a fraction; one replica does anyway.
    rest = Fraction(max(tokens_per_sec, _NEXT_TO_NOTHING)) - share * other
    return max(rates.total() + max(ceil(rest / (Fraction(per_replica) * share)), 0), 1)
