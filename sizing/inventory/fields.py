"""Reads the keys of one mapping of an inventory file; what is wrong goes to the findings, with its path."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Any

from sizing.inventory.document import Findings
from sizing.inventory.words import cut_number, quoted, shown
from sizing.models.fields import LARGEST_COUNT, MILLIONTH, Source, text_problem

__all__ = ["REQUIRED", "Fields", "exact", "plain_decimal", "text_problem"]

REQUIRED: Any = object()
"""As a default: the key must be there."""

# 19 digits hold 1e12 with six places.
_EXACT = Context(prec=40, rounding=ROUND_HALF_EVEN)
_TIME = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)"
    r"(?:(?:[Tt]|[ \t]+)(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d{1,9})\d*)?)?"
    r"[ \t]*(?:([Zz])|([-+])(\d\d?)(?::?(\d\d))?)?)?\Z",
    re.ASCII,
)


class Fields:
    """One mapping at `path`. Every reader gives a usable value; `broken`: one of them made it up."""

    __slots__ = ("_known", "_raw", "broken", "findings", "is_mapping", "path")

    def __init__(self, findings: Findings, raw: Any, path: str) -> None:
        self.findings = findings
        self.path = path
        self.broken = False
        self._known: set[str] = set()
        self._raw: Mapping[Any, Any] = {}
        self.is_mapping = isinstance(raw, Mapping)
        if self.is_mapping:
            self._raw = raw
        else:
            self.error("", f"must be a mapping, not {shown(raw)}")

    def at(self, key: str) -> str:
        """The path of a key."""
        if not key:
            return self.path
        return f"{self.path}.{key}" if self.path else key

    def error(self, key: str, message: str) -> None:
        self.broken = True
        self.findings.error(self.at(key), message)

    def has(self, key: str) -> bool:
        return key in self._raw

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._raw))

    def raw(self, key: str, default: Any = None) -> Any:
        """The value as it stands; a missing required key is an error once."""
        self._known.add(key)
        value = self._raw.get(key, default)
        if value is REQUIRED:
            if self.is_mapping:
                self.error(key, "is required")
            else:
                self.broken = True
        return value

    def done(self) -> None:
        """Refuse the keys that nobody asked for."""
        for key in self._raw:
            if key not in self._known:
                word = key if isinstance(key, str) else str(key)
                plain = word if re.fullmatch(r"[\w-]{1,60}", word) else quoted(word)
                self.error(plain, "unknown key")

    def text(
        self,
        key: str,
        default: Any = "",
        longest: int = 255,
        problem_of: Callable[[str], str | None] = text_problem,
    ) -> str:
        """A text of one line; null where the default is a text means the default."""
        value = self.raw(key, default)
        if value is REQUIRED:
            return ""
        if value is default or (value is None and default is not REQUIRED):
            return str(default)
        if not isinstance(value, str):
            self.error(key, f"must be a text, not {shown(value)}{_hint(value)}")
            return ""
        too_long = f"must have at most {longest} characters" if len(value) > longest else None
        problem = too_long or problem_of(value)
        if problem:
            self.error(key, problem)
            return ""
        return value

    def name(self, key: str, problem_of: Callable[[str], str | None], default: Any = REQUIRED) -> Any:
        """A name, or None where it is wrong, or missing with a default of None."""
        value = self.raw(key, default)
        if value is REQUIRED or (value is None and default is None):
            return None
        if not isinstance(value, str):
            self.error(key, f"must be a text, not {shown(value)}{_hint(value)}")
            return None
        problem = problem_of(value)
        if problem:
            self.error(key, problem)
            return None
        return value

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        value = self.raw(key, default)
        if isinstance(value, bool):
            return value
        self.error(key, f"must be true or false, not {shown(value)}")
        return default

    def choice(self, key: str, choices: Collection[str], default: Any) -> Any:
        """One of a few words, or null where that is the default."""
        value = self.raw(key, default)
        if value is REQUIRED:
            return next(iter(choices))
        if value is default or (isinstance(value, str) and value in choices):
            return value
        words = ", ".join(choice or '""' for choice in choices)
        null = " or null" if default is None else ""
        self.error(key, f"must be one of {words}{null}, not {shown(value)}")
        return next(iter(choices)) if default is REQUIRED else default

    def source(self) -> str:
        """Who keeps the object: people and their scripts where the file does not say."""
        return str(self.choice("source", Source.values, Source.HAND.value))

    def whole(self, key: str, default: Any, low: int = 0, high: int = LARGEST_COUNT) -> Any:
        """A whole number from `low` to `high`; null only where that is the default."""
        value = self.raw(key, default)
        if value is default:
            return low if value is REQUIRED else value
        return self.whole_value(key, value, low, high, low if default is REQUIRED else default)

    def whole_value(self, key: str, value: Any, low: int, high: int, default: Any = 0) -> Any:
        """As `whole`, for a value at hand."""
        if type(value) is not int:
            number = exact(value)
            if number is None:
                self.error(key, f"must be a whole number, not {shown(value)}")
                return default
            if low <= number <= high and number != number.to_integral_value():
                self.error(key, f"must be a whole number, not {shown(value)}")
                return default
            value = int(number) if low <= number <= high else number
        if not low <= value <= high:
            self.error(key, f"must be from {low} to {high}, not {cut_number(str(value))}")
            return default
        return value

    def number(self, key: str, default: Any, high: Decimal, *, zero: bool = False, most: bool = True) -> Any:
        """A number with six places: above 0 (or from 0) and up to `high` (or below it).

        More places are rounded half-even, with a warning. null only where that is the default.
        """
        value = self.raw(key, default)
        if value is default:
            return Decimal(1) if value is REQUIRED else value
        fallback = Decimal(1) if default is REQUIRED else default
        number = exact(value)
        if number is None:
            self.error(key, f"must be a number, not {shown(value)}")
            return fallback
        low_is_met = number >= 0 if zero else number > 0
        if not low_is_met or not (number <= high if most else number < high):
            bounds = f"{'from' if zero else 'above'} 0 and {'at most' if most else 'below'} {high:f}"
            self.error(key, f"must be {bounds}, not {shown(value)}")
            return fallback
        rounded = number.quantize(MILLIONTH, context=_EXACT)
        if rounded != number:
            given, kept = cut_number(str(value)), plain_decimal(rounded)
            if not zero and not rounded:
                self.error(key, f"must be at least 0.000001, not {given}")
                return fallback
            if not most and rounded >= high:
                self.error(key, f"must be below {high:f}, not {given}")
                return fallback
            self.findings.warn(self.at(key), f"{given} is kept with six places, as {kept}")
        return rounded

    def time(self, key: str, default: Any) -> Any:
        """A time in ISO 8601; without an offset it is UTC. Kept to the microsecond."""
        value = self.raw(key, default)
        if value is default:
            return datetime(1, 1, 1, tzinfo=UTC) if value is REQUIRED else value
        try:
            if isinstance(value, datetime):
                return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
            if isinstance(value, str):
                return self._parse_time(key, value)
        except (ValueError, OverflowError):
            pass
        self.error(key, f"must be a time such as 2026-11-02T09:00:00Z, not {shown(value)}")
        return datetime(1, 1, 1, tzinfo=UTC) if default is REQUIRED else default

    def _parse_time(self, key: str, text: str) -> datetime:
        match = _TIME.match(text) if len(text) <= 64 else None
        if match is None:
            raise ValueError
        year, month, day, hour, minute, second, fraction, _, sign, hours, minutes = match.groups()
        digits = (fraction or "").ljust(6, "0")
        offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        if int(minutes or 0) > 59:
            raise ValueError
        moment = datetime(
            int(year),
            int(month),
            int(day),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int(digits[:6]),
            tzinfo=timezone(-offset if sign == "-" else offset),
        )
        if digits[6:].strip("0"):
            self.findings.warn(self.at(key), f"{text} is kept to the microsecond")
        return moment.astimezone(UTC)

    def items(self, key: str) -> list[Any]:
        """A list; null and a missing key are the empty one."""
        value = self.raw(key, None)
        if value is None:
            return []
        if not isinstance(value, list | tuple):
            self.error(key, f"must be a list, not {shown(value)}")
            return []
        return list(value)

    def texts(
        self, key: str, problem_of: Callable[[str], str | None], unique: bool = False
    ) -> tuple[str, ...]:
        """A list of texts."""
        kept: list[str] = []
        seen: set[str] = set()
        for i, value in enumerate(self.items(key)):
            if isinstance(value, str):
                problem = problem_of(value)
            else:
                problem = f"must be a text, not {shown(value)}{_hint(value)}"
            if problem is None and unique and value in seen:
                problem = "stands here twice"
            if problem:
                self.error(f"{key}[{i}]", problem)
            else:
                seen.add(value)
                kept.append(value)
        return tuple(kept)

    def children(self, key: str) -> Iterator[Fields]:
        """The mappings of a list, each at its path."""
        for i, value in enumerate(self.items(key)):
            yield Fields(self.findings, value, f"{self.at(key)}[{i}]")

    def child(self, key: str) -> Fields:
        """A mapping; null and a missing key are the empty one."""
        value = self.raw(key, None)
        return Fields(self.findings, {} if value is None else value, self.at(key))


def exact(value: Any) -> Decimal | None:
    """A finite number as a decimal; None for anything else, booleans included."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        value = repr(value)
    elif not isinstance(value, int | Decimal):
        return None
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def plain_decimal(number: Decimal) -> str:
    """A decimal without an exponent and without trailing zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _hint(value: Any) -> str:
    return "; put it in quotes" if isinstance(value, bool | int | float | Decimal) else ""
