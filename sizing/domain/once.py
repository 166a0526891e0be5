"""Values that are found once, and by one thread where several ask at the same time."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")

_MISSING: Any = object()


class once(Generic[T]):  # noqa: N801  it reads as a decorator
    """A property that is computed once for each object and kept in its `__dict__`.

    As `functools.cached_property`, which up to Python 3.11 has one lock for all objects: a search for the
    one would hold up all others of the process.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, owner: None, kind: type | None = None) -> once[T]: ...
    @overload
    def __get__(self, owner: object, kind: type | None = None) -> T: ...
    def __get__(self, owner: object | None, kind: type | None = None) -> once[T] | T:
        if owner is None:
            return self
        kept = owner.__dict__
        return found_once(kept, kept.setdefault("_once", {}), self._name, lambda: self._compute(owner))


def found_once(kept: dict[Any, Any], finding: dict[Any, RLock], key: Hashable, compute: Callable[[], T]) -> T:
    """What `kept` has under a key, else what `compute` gives, which is kept then.

    `finding` has a lock for each key that is being computed: who asks meanwhile waits for the one result.
    """
    found: T = kept.get(key, _MISSING)
    if found is _MISSING:
        with finding.setdefault(key, RLock()):
            found = kept.get(key, _MISSING)
            if found is _MISSING:
                found = kept[key] = compute()
        finding.pop(key, None)
    return found
