"""YAML object by object, of one or more documents."""

from __future__ import annotations

from typing import Any

import yaml

from sizing.inventory.kubernetes.reading.refusing import ASK
from sizing.inventory.kubernetes.reading.source import Source
from sizing.inventory.kubernetes.reading.taking import Taking
from sizing.inventory.yaml_reading import Builder, UnreadableError, building

LARGEST = 100 * 1024**2
"""Characters of the largest YAML: it is read some twenty times slower than JSON."""


def walk_yaml(source: Source, taking: Taking) -> None:
    """Tell all that stands in a file; empty documents are passed over."""
    try:
        with building(_Capped(source)) as builder:
            builder.next()  # the start of the stream
            while not isinstance(builder.next(), yaml.StreamEndEvent):
                _walk_document(builder, taking)
                builder.next()  # the end of the document
    except _TooLargeError:
        raise UnreadableError(
            f"the YAML is larger than {LARGEST // 1024**2} MiB; bring it as JSON (`-o json`)"
        ) from None


class _TooLargeError(Exception):
    pass


class _Capped:
    """The text of a source up to what is read at most."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._taken = 0

    def read(self, size: int) -> str:
        text = self._source.read()  # whatever its size: the parser keeps what is too much
        self._taken += len(text)
        if self._taken > LARGEST:
            raise _TooLargeError
        return text


def _walk_document(builder: Builder, taking: Taking) -> None:
    event = builder.next()
    if isinstance(event, yaml.SequenceStartEvent):
        taking.begin(bare=True)
        _walk_items(builder, taking)
        taking.end()
    elif isinstance(event, yaml.MappingStartEvent):
        _walk_mapping(builder, taking)
    elif builder.value(event) is not None:
        line = event.start_mark.line + 1
        raise UnreadableError(f"line {line:,}: this is neither a Kubernetes object nor a list of them; {ASK}")


def _walk_mapping(builder: Builder, taking: Taking) -> None:
    taking.begin()
    while not isinstance(event := builder.next(), yaml.MappingEndEvent):
        key = builder.key(event, taking.keys)
        event = builder.next()
        if key == "items" and isinstance(event, yaml.SequenceStartEvent):
            taking.items()
            _walk_items(builder, taking)
        else:
            taking.key(key, builder.value(event))
    taking.end()


def _walk_items(builder: Builder, taking: Taking) -> None:
    event: Any
    while not isinstance(event := builder.next(), yaml.SequenceEndEvent):
        taking.item(builder.value(event))
