"""Benchmark Reports as llm-d writes them: YAML. Read without constructing anything but plain values.

Aliases are refused, since a few lines of them stand for gigabytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from sizing.measuring.files.documents import MOST_DEPTH
from sizing.measuring.files.points import FileRefused
from sizing.measuring.files.values import Node, shown_text

MOST_BYTES = 256 * 1024

_RESULTS = re.compile(rb"^results:", re.MULTILINE)
_RUN = re.compile(rb"^(?:run|scenario|version):", re.MULTILINE)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL, _BOOL = "tag:yaml.org,2002:null", "tag:yaml.org,2002:bool"
_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
_TRUE = ("true", "yes", "on")


def matches(text: bytes) -> bool:
    """Whether the text has the keys of a report at the start of lines, which JSON does not."""
    if text.lstrip()[:1] in (b"{", b"["):
        return False
    return _RESULTS.search(text) is not None and _RUN.search(text) is not None


def documents(text: bytes) -> Iterator[Node]:
    """Each YAML document; FileRefused where it is not YAML, too large, too deep, or has aliases."""
    if len(text) > MOST_BYTES:
        raise FileRefused(f"larger than {MOST_BYTES // 1024} KiB, the most that is read as YAML")
    try:
        _check(text)
        roots = list(yaml.compose_all(text, Loader=_Loader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        problem = shown_text(str(getattr(error, "problem", None) or "not YAML"))
        raise FileRefused(f"{where}YAML was expected ({problem})") from None
    for root in roots:
        path = f"line {root.start_mark.line + 1}: " if len(roots) > 1 else ""
        yield Node(_plain(root), path)


def _check(text: bytes) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            raise FileRefused(f"{_line(event)}: an alias, which is not read")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MOST_DEPTH:
            raise FileRefused(f"{_line(event)}: nested more than {MOST_DEPTH} deep")


def _line(event: yaml.Event) -> str:
    return f"line {event.start_mark.line + 1}" if event.start_mark else "the document"


def _plain(node: yaml.Node) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return [_plain(child) for child in node.value]
    if isinstance(node, yaml.MappingNode):
        return _mapping(node)
    return _scalar(str(node.tag), str(node.value))


def _mapping(node: yaml.MappingNode) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, child in node.value:
        name, line = str(key.value), key.start_mark.line + 1
        if name in values:
            raise FileRefused(f'line {line}: "{shown_text(name)}" stands twice in one object')
        values[name] = _plain(child)
    return values


def _scalar(tag: str, text: str) -> Any:
    """Null, true or false, a number, or text, also for what YAML would make a date."""
    if tag == _NULL:
        return None
    if tag == _BOOL:
        return text.lower() in _TRUE
    if tag in (_INT, _FLOAT):
        plain = text.lower().replace("_", "").replace(".inf", "inf").replace(".nan", "nan")
        try:
            return float(plain)
        except ValueError:
            return text
    return text
