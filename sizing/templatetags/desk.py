"""Values as people read them: numbers with separators and units, ages, what a form shows to be read."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

from django import template
from django.contrib.admin.utils import lookup_field
from django.core.exceptions import ObjectDoesNotExist
from django.db import models
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

THIN = "\N{NARROW NO-BREAK SPACE}"
NOTHING = "–"

MINUTE, HOUR, DAY = 60, 3600, 86400


@register.filter
def num(value: Any, unit: str = "") -> str:
    """`12345.50` as `12,345.5`, with the unit behind it; a dash for None or what is no number."""
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
    text = text.replace("-", "−")
    return f"{text}{THIN}{unit}" if unit else text


@register.filter
def rate(value: Any) -> str:
    """Tokens/s as one reads them off: `1,180.5`; small ones with more places, none rounded to 0."""
    if value is None or value == "":
        return NOTHING
    places = 1 if value >= 100 else 2 if value >= 1 else 6
    return num(f"{value:.{places}f}")


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


@register.filter
def size(count: int) -> str:
    """Bytes in the largest sensible unit: `812 B`, `14.2 KiB`, `3.1 MiB`."""
    for unit, of in (("MiB", 1024 * 1024), ("KiB", 1024)):
        if count >= of:
            return num(f"{count / of:.1f}", unit)
    return num(count, "B")


@register.filter
def coded(text: str) -> SafeString:
    """A message with what stands between backticks set as code."""
    return mark_safe(re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text)))


@register.filter
def shown(field: Any) -> str:
    """A read-only field of a form: yes or no in words, numbers as `num` writes them, else as Django does."""
    try:
        column, _attribute, value = lookup_field(field.field["field"], field.form.instance, field.model_admin)
    except (AttributeError, ValueError, ObjectDoesNotExist):
        column = value = None
    if isinstance(column, models.BooleanField) and value is not None:
        return "yes" if value else "no"
    if isinstance(column, models.DecimalField | models.IntegerField) and not column.choices:
        return num(value)
    return str(field.contents())
