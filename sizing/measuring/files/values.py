"""Typed access to a parsed document, which knows where in the document it is.

Whatever stands in a file may be missing or null; what is of another type than expected refuses the file
with its path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

from sizing.domain.levels import NOT_STREAMED_SHARE, Spread
from sizing.measuring.files.points import FileRefused

LARGEST = 1e15
"""Larger numbers are no time, rate or count."""

SMALLEST = 1e-12
"""Smaller numbers above 0 are 0, so that no quotient of two numbers is beyond all bounds."""

LEAST_TOKEN_MS = 1.0
"""No engine decodes a token of one stream faster; less is an answer that came in one piece."""

LONGEST_TEXT = 300


def shown_text(text: str, longest: int = 80) -> str:
    """Text of a file for a message: on one line, without control characters, not endless."""
    clean = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:longest])
    return clean if len(text) <= longest else f"{clean}…"


@dataclass(frozen=True, slots=True)
class Node:
    """A value in a document, and its path; the value None is "not there"."""

    value: Any
    path: str = ""

    def __getitem__(self, key: str) -> Node:
        if self.value is None:
            return Node(None, self._below(key))
        if not isinstance(self.value, Mapping):
            raise self.refused("an object")
        return Node(self.value.get(key), self._below(key))

    def at(self, *keys: str) -> Node:
        """The value below, key by key."""
        node = self
        for key in keys:
            node = node[key]
        return node

    def has(self, *keys: str) -> bool:
        """Whether this is an object with all these keys, whatever their values."""
        return isinstance(self.value, Mapping) and all(key in self.value for key in keys)

    def first(self, *keys: str) -> Node:
        """The first of these keys that is there and not null; else the last."""
        for key in keys[:-1]:
            if self[key].there:
                return self[key]
        return self[keys[-1]]

    @property
    def there(self) -> bool:
        return self.value is not None

    def inside(self, *keys: str) -> Node:
        """The value below, key by key; not there where something else than an object is on the way."""
        node = self
        for key in keys:
            node = node[key] if isinstance(node.value, Mapping) else Node(None, node.path)
        return node

    def items(self) -> Iterator[Node]:
        """The elements of a list one by one, of which there may be millions; none where it is not there."""
        if self.value is None:
            return
        if not isinstance(self.value, list):
            raise self.refused("a list")
        for index, value in enumerate(self.value):
            yield Node(value, f"{self.path}[{index}]")

    def names(self) -> list[str]:
        """The keys of an object; none where it is not there."""
        if self.value is None:
            return []
        if not isinstance(self.value, Mapping):
            raise self.refused("an object")
        return list(self.value)

    def number(self, low: float = 0.0) -> float | None:
        """A number from `low` on; None where it is not there, NaN or infinite."""
        value = self.value
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refused("a number")
        if not isfinite(value):
            return None
        if not low <= value <= LARGEST:
            raise self.refused(f"a number from {low:g} to {LARGEST:g}")
        return float(value) if abs(value) >= SMALLEST else 0.0

    def number_or_none(self) -> float | None:
        """A number from 0 on; None for whatever else stands here."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LARGEST:
            return None
        return self.number()

    def numbers(self) -> list[float | None]:
        """The numbers of a list from 0 on, of which there may be millions; None as for `number`."""
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            raise self.refused("a list")
        return [
            value
            if type(value) is float and SMALLEST <= value <= LARGEST
            else Node(value, f"{self.path}[{index}]").number()
            for index, value in enumerate(self.value)
        ]

    def count(self) -> int | None:
        """A whole number from 0 on, also where it is written as 64.0."""
        value = self.number()
        if value is not None and not value.is_integer():
            raise self.refused("a whole number")
        return None if value is None else int(value)

    def rate(self) -> float | None:
        """A number, or infinity, also written as text ("inf"), for "all at once"; other words tell none."""
        if self.value in ("inf", "Infinity", inf):
            return inf
        return None if isinstance(self.value, str) else self.number()

    def text(self) -> str | None:
        """Text, on one line and not endless."""
        if self.value is None:
            return None
        if not isinstance(self.value, str):
            raise self.refused("text")
        return shown_text(self.value, LONGEST_TEXT)

    def flag(self) -> bool | None:
        if self.value is not None and not isinstance(self.value, bool):
            raise self.refused("true or false")
        return self.value

    def refused(self, expected: str) -> FileRefused:
        """The refusal of the file for what stands here."""
        return FileRefused(f"{self.place}: {expected} was expected, {self._found()} found")

    @property
    def place(self) -> str:
        """The path for a message."""
        return self.path.removesuffix(": ") or "the document"

    def _found(self) -> str:
        value = self.value
        if value is None:
            return "nothing"
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int | float):
            return f"{float(value):g}"
        if isinstance(value, str):
            return f'"{shown_text(value)}"'
        return "a list" if isinstance(value, list) else "an object"

    def _below(self, key: str) -> str:
        joint = "." if self.path and not self.path.endswith(" ") else ""
        return f"{self.path}{joint}{key}"


def scaled(value: float | None, factor: float) -> float | None:
    """A number in another unit."""
    return None if value is None else value * factor


def spread(mean: Node | None, at: Iterable[tuple[float, Node]], factor: float = 1.0) -> Spread:
    """A latency in ms from the values that are there; `factor` is the ms of one unit of the file."""
    known = {p: value * factor for p, node in at if (value := node.number()) is not None}
    return Spread(scaled(mean.number(), factor) if mean else None, known)


def share(part: float | None, whole: float | None) -> float | None:
    """One number by another; None where either is not known, the second is 0, or the result is no number."""
    if part is None or not whole:
        return None
    quotient = part / whole
    return quotient if isfinite(quotient) else None


def ended(completed: int | None, failed: int | None) -> int | None:
    """Requests sent and ended; None where either count is not known."""
    return None if completed is None or failed is None else completed + failed


def streamed(ttft: Spread, tpot: Spread, e2e: Spread, output_tokens: float | None) -> bool | None:
    """Whether answers came token by token; None where TTFT is not known.

    They did not where TTFT is nearly all of the end-to-end time of several tokens. A long queue does that
    too, but then the rest of the time is still worth a token each. An end-to-end time that is not known is
    TTFT and TPOT for each further token.
    """
    if not ttft.known:
        return None
    if output_tokens is None or output_tokens <= 1:
        return True
    pairs = [(ttft.mean, e2e.mean), *((ttft.at.get(p), e2e.at.get(p)) for p in (50.0, 95.0, 99.0))]
    if not e2e.known:
        parts = ((ttft.mean, tpot.mean), (ttft.at.get(50.0), tpot.at.get(50.0)))
        pairs = [
            (first, first + rest * (output_tokens - 1))
            for first, rest in parts
            if first is not None and rest is not None
        ]
    both = [(first, whole) for first, whole in pairs if first is not None and whole]
    if not both:
        return True
    first, whole = both[0]
    per_token = (whole - first) / (output_tokens - 1)
    return not (first >= NOT_STREAMED_SHARE * whole and per_token < LEAST_TOKEN_MS)
