"""Bytes of an inventory file into plain values: mappings, lists, texts, numbers, booleans, null.

Numbers with a fraction or an exponent become `Decimal`; no float is ever made. Whatever cannot be read
raises `UnreadableError` with one line that names the place.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from sizing.inventory.words import quoted
from sizing.inventory.yaml_reading import UnreadableError, read_yaml

LARGEST_DOCUMENT = 100 * 1024 * 1024
"""Bytes of the largest document that is read."""

_LONGEST_NUMBER = 64
_BOM = b"\xef\xbb\xbf"
# What YAML calls non-printable, but tab and line ends; a lone 0x85 is a line end to YAML and to nobody else.
_CONTROL = re.compile(b"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\xef\xbf[\xbe\xbf]")


def read(document: bytes) -> Any:
    """Read JSON where the first character is `{`, else YAML. UTF-8; a byte order mark is skipped."""
    if len(document) > LARGEST_DOCUMENT:
        raise UnreadableError(f"the document is larger than {LARGEST_DOCUMENT // 1024**2} MiB")
    document = document.removeprefix(_BOM)
    _check_characters(document)
    if document.lstrip()[:1] == b"{":
        return _read_json(document)
    return read_yaml(document)


def _check_characters(document: bytes) -> None:
    try:
        document.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"{_place(document, error.start)}: this is not UTF-8") from None
    found = _CONTROL.search(document)
    if found:
        code = ord(found.group().decode("utf-8"))
        raise UnreadableError(f"{_place(document, found.start())}: control character U+{code:04X}")


def _place(document: bytes, at: int) -> str:
    line = document.count(b"\n", 0, at) + 1
    start = document.rfind(b"\n", 0, at) + 1
    column = len(document[start:at].decode("utf-8", "replace")) + 1
    return f"line {line}, column {column}"


class _DuplicateKeyError(Exception):
    pass


def _read_json(document: bytes) -> Any:
    try:
        return json.loads(
            document.decode("utf-8"),
            parse_float=_decimal,
            parse_int=_whole,
            parse_constant=_refuse_constant,
            object_pairs_hook=_mapping,
        )
    except json.JSONDecodeError as error:
        problem = error.msg[:1].lower() + error.msg[1:]
        raise UnreadableError(f"line {error.lineno}, column {error.colno}: {problem}") from None
    except RecursionError:
        raise UnreadableError("the document is nested too deeply") from None
    except _DuplicateKeyError as error:
        key = str(error)
    # Python's reader does not say where; JSON is near enough to YAML that the other reader can.
    try:
        read_yaml(document)
    except UnreadableError as found:
        if "duplicate key" in str(found):
            raise
    raise UnreadableError(f"duplicate key {quoted(key)}")


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKeyError(key)
            seen.add(key)
    return mapping


def _decimal(text: str) -> Decimal:
    if len(text) > _LONGEST_NUMBER:
        raise UnreadableError(f"the number {text[:20]}… is longer than {_LONGEST_NUMBER} characters")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise UnreadableError(f"{text} is beyond all numbers") from None


def _whole(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise UnreadableError(f"the number {text[:20]}… is longer than {_LONGEST_NUMBER} characters")
    return int(text)


def _refuse_constant(text: str) -> NoReturn:
    raise UnreadableError(f"{text} is not a number")
