"""A mapping that shares what did not change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_MOST_CHANGES = 1024


class Overlay(Mapping[K, V], Generic[K, V]):
    """An immutable mapping whose changed copy costs what changed, not what it holds.

    Copying a dict of 40,000 values touches each of them: milliseconds that every changed replica would cost.
    """

    def __init__(self, base: dict[K, V], changes: dict[K, V | None] | None = None, size: int | None = None):
        self._base = base
        self._changes = changes or {}
        self._size = len(base) if size is None else size

    def changed(self, changes: Mapping[K, V | None]) -> Overlay[K, V]:
        """The mapping with some values set, and those that are None removed."""
        merged = {**self._changes, **changes}
        if len(merged) > _MOST_CHANGES:
            return Overlay({**{k: v for k, v in self.items() if k not in changes}, **_present(changes)})
        size = self._size
        for key, value in changes.items():
            size += (value is not None) - (key in self)
        return Overlay(self._base, merged, size)

    def differing(self, other: Overlay[K, V]) -> set[K]:
        """The keys that have another object here than there, or none; cheap between copies of one mapping."""
        shared = self._base is other._base
        keys = self._changes.keys() | other._changes.keys() if shared else {*self, *other}
        return {key for key in keys if self.get(key) is not other.get(key)}

    def __getitem__(self, key: K) -> V:
        if key in self._changes:
            value = self._changes[key]
            if value is None:
                raise KeyError(key)
            return value
        return self._base[key]

    def __contains__(self, key: object) -> bool:
        if key in self._changes:
            return self._changes[key] is not None
        return key in self._base

    def __iter__(self) -> Iterator[K]:
        for key in self._base:
            if key not in self._changes:
                yield key
        for key, value in self._changes.items():
            if value is not None:
                yield key

    def __len__(self) -> int:
        return self._size


def _present(changes: Mapping[K, V | None]) -> dict[K, V]:
    return {key: value for key, value in changes.items() if value is not None}
