"""YAML into plain values, from the parser's events.

No tree of nodes is built, so a large fleet stays small in memory and deep nesting cannot exhaust the
stack. A subset of YAML: no anchors or aliases (a few bytes could stand for gigabytes), no
tags. Plain scalars are YAML 1.2 numbers, YAML 1.1 booleans, null, and else texts; times stay texts, to be
read where a time is expected. Keys are texts as written.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

import yaml

from sizing.inventory.words import quoted

DEEPEST = 100
"""Levels of nesting that are read."""

_LONGEST_NUMBER = 64
_REMEMBERED = 50_000
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {
    spelling: value
    for words, value in ((("true", "yes", "on"), True), (("false", "no", "off"), False))
    for word in words
    for spelling in (word, word.capitalize(), word.upper())
}
# A leading zero makes no number: YAML 1.1 would read 010 as 8, YAML 1.2 as 10.
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z")
_MAYBE_NUMBER = frozenset("+-.0123456789")
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class UnreadableError(ValueError):
    """A document that cannot be read; the message is one line and names the place."""


class Readable(Protocol):
    """A stream of characters."""

    def read(self, size: int) -> str: ...


def read_yaml(document: bytes) -> Any:
    """The value of the only document; `UnreadableError` where there is none or it cannot be read."""
    with building(document) as builder:
        return builder.document()


@contextmanager
def building(document: bytes | Readable) -> Iterator[Builder]:
    """A builder of the values in a document or stream; what is wrong with it is an `UnreadableError`."""
    loader = _Loader(document)
    try:
        yield Builder(loader)
    except yaml.MarkedYAMLError as error:
        words = " ".join(" ".join(filter(None, (error.context, error.problem))).split())
        mark = error.problem_mark or error.context_mark
        raise UnreadableError(f"{_place(mark)}: {words}" if mark else words) from None
    except yaml.YAMLError as error:
        raise UnreadableError(" ".join(str(error).split())) from None
    finally:
        loader.dispose()


def plain_value(text: str) -> Any:
    """What a plain (unquoted) scalar stands for; raises ValueError for a number out of reach."""
    if text and text[0] in _MAYBE_NUMBER:
        if _NUMBER.match(text):
            if len(text) > _LONGEST_NUMBER:
                raise ValueError(f"the number is longer than {_LONGEST_NUMBER} characters")
            if _WHOLE.match(text):
                return int(text)
            try:
                return Decimal(text)
            except InvalidOperation:
                raise ValueError(f"{text} is beyond all numbers") from None
        return text
    if text in _NULLS:
        return None
    return _BOOLEANS.get(text, text)


def _place(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"


class Builder:
    """Builds values from events with an explicit stack.

    Who reads a stream piece by piece takes the events with `next` and hands back the first one of a key
    or a value.
    """

    def __init__(self, loader: Any) -> None:
        self.next = loader.get_event
        self._plain: dict[str, Any] = {}

    def document(self) -> Any:
        self.next()  # the start of the stream
        event = self.next()
        if isinstance(event, yaml.StreamEndEvent):
            raise UnreadableError("the document is empty")
        value = self.value(self.next())
        self.next()  # the end of the document
        event = self.next()
        if not isinstance(event, yaml.StreamEndEvent):
            raise UnreadableError(f"{_place(event.start_mark)}: a second document; only one is read")
        return value

    def value(self, event: Any) -> Any:
        """The value that begins with this event."""
        root: list[Any] = []
        stack: list[Any] = []
        container: Any = root
        key: str | None = None
        while True:
            kind = type(event)
            if kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                container = stack.pop()
            elif kind is not yaml.ScalarEvent and len(stack) >= DEEPEST:
                raise UnreadableError(f"{_place(event.start_mark)}: nested more than {DEEPEST} levels deep")
            elif type(container) is dict and key is None:
                key = self.key(event, container)
                event = self.next()
                continue
            else:
                value = self._begin(event)
                if type(container) is dict:
                    container[key] = value
                else:
                    container.append(value)
                key = None
                if kind is not yaml.ScalarEvent:
                    stack.append(container)
                    container = value
            if container is root:
                return root[0]
            event = self.next()

    def _begin(self, event: Any) -> Any:
        self._check(event)
        kind = type(event)
        if kind is yaml.MappingStartEvent:
            return {}
        if kind is yaml.SequenceStartEvent:
            return []
        text = event.value
        if not event.implicit[0]:  # quoted, or a block
            return text
        found = self._plain.get(text, self)
        if found is not self:
            return found
        try:
            value = plain_value(text)
        except ValueError as error:
            raise UnreadableError(f"{_place(event.start_mark)}: {error}") from None
        if len(self._plain) < _REMEMBERED:
            self._plain[text] = value
        return value

    def key(self, event: Any, mapping: Container[str]) -> str:
        """The key that this event is; refused where the mapping has it already."""
        self._check(event)
        if type(event) is not yaml.ScalarEvent:
            raise UnreadableError(f"{_place(event.start_mark)}: a key must be a text")
        key = sys.intern(event.value)  # the same few keys, many times
        if key in mapping:
            raise UnreadableError(f"{_place(event.start_mark)}: duplicate key {quoted(key)}")
        return key

    def _check(self, event: Any) -> None:
        if type(event) is yaml.AliasEvent or event.anchor is not None:
            raise UnreadableError(
                f"{_place(event.start_mark)}: anchors and aliases are not read; write it out"
            )
        if event.tag is not None and event.tag != "!":
            raise UnreadableError(f"{_place(event.start_mark)}: tags such as {event.tag} are not read")
