"""Numbers as people read them: thin-space separators, units, ages."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from django import template

register = template.Library()

THIN = "\N{NARROW NO-BREAK SPACE}"
NOTHING = "–"

MINUTE, HOUR, DAY = 60, 3600, 86400


@register.filter
def num(value: Any, unit: str = "") -> str:
    """`12345.50` as `12 345.5`, with the unit behind it; a dash for None or what is no number."""
    if value is None or value == "" or isinstance(value, bool):
        return NOTHING
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return NOTHING
    if not number.is_finite():
        return NOTHING
    text = f"{number:,f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    text = text.replace(",", THIN).replace("-", "−")
    return f"{text}{THIN}{unit}" if unit else text


@register.filter
def age(seconds: Any) -> str:
    """Seconds as the largest sensible unit: `45 s`, `12 min`, `6 h`, `3 d`."""
    if seconds is None or seconds == "":
        return NOTHING
    whole = max(int(seconds), 0)
    for size, unit in ((2 * DAY, "d"), (2 * HOUR, "h"), (2 * MINUTE, "min")):
        if whole >= size:
            return num(whole // (size // 2), unit)
    return num(whole, "s")
