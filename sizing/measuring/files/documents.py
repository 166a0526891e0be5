"""From text to JSON documents, in little memory.

A file holds one document, several one after another, or one a line. GuideLLM keeps every request with its
text beside the figures, vLLM and SGLang every answer and every gap between its chunks: texts are cut out of
the bytes before anything is parsed, and a request's gaps are replaced by their sum, which is all that is
asked of them, so that a file of 50 MB costs little more than its own size.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sizing.measuring.files.points import FileRefused
from sizing.measuring.files.values import LARGEST, Node, shown_text

MOST_DEPTH = 64
MOST_CONTAINERS = 400_000
MOST_TEXTS = 500_000
MOST_VALUES = 3_000_000
MOST_DOCUMENTS = 5_000

_LONGEST_INTEGER = 300
_TOKEN = re.compile(rb'["{}\[\]]')
_COLON = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*")
_BLANK = re.compile(rb"[ \t\r\n]*")
_CUT_AT = [b"benchmarks", b""]
_BACKSLASH = ord("\\")
_NULL = b"null"
_MOST_GAPS = 100_000

Cut = tuple[int, int, bytes]
"""Start and end of a part of the bytes, and what stands in its place."""


def documents(data: bytes) -> Iterator[Node]:
    """Each JSON document of a UTF-8 text; where there are several, their paths begin with the line.

    FileRefused at the first place that is not JSON, nested too deeply, or too large to hold.
    """
    scan = _Scan(data)
    start = scan.blank(0)
    line = 1 + data.count(b"\n", 0, start)
    several = False
    found = 0
    while start < len(data):
        end, cuts = scan.document(start)
        following = scan.blank(end)
        several = several or following < len(data)
        found += 1
        if found > MOST_DOCUMENTS:
            raise FileRefused(f"{scan.line(start)}: more than {MOST_DOCUMENTS:,} JSON documents")
        value = _parsed(scan, start, end, cuts)
        yield Node(value, f"line {line}: " if several else "")
        line += data.count(b"\n", start, following)
        start = following


class _Scan:
    """Walks over the structure of JSON text without building its values."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.containers = 0
        self.texts = 0

    def blank(self, at: int) -> int:
        """The first place from `at` on that is not white space."""
        match = _BLANK.match(self.data, at)
        return match.end() if match else at

    def line(self, at: int) -> str:
        newlines = self.data.count(b"\n", 0, at)
        return f"line {newlines + 1}"

    def document(self, start: int) -> tuple[int, list[Cut]]:
        """The end of the object or list at `start`, and the parts of it to leave out."""
        data, at, key = self.data, start, b""
        if data[start : start + 1] not in (b"{", b"["):
            raise FileRefused(f"{self.line(start)}: JSON or a printed result was expected")
        stack: list[bytes] = []
        cuts: list[Cut] = []
        while True:
            token, at = self._token(at, start)
            if token == b'"':
                end = self._string_end(at)
                self._text(at)
                colon = _COLON.match(data, end)
                if colon is None:
                    at = end
                    continue
                key, at = data[at : end - 1], colon.end()
                if key == b"generated_texts" or (key == b"requests" and stack[-2:] == _CUT_AT):
                    stop = self._container_end(at)
                    if stop > at:
                        cuts.append((at, stop, _NULL))
                        at = stop
            elif token in b"{[":
                gaps = token == b"[" and stack[-1:] == [b"itls"] and not key
                stack.append(key)
                key = b""
                self._opened(len(stack), at)
                if gaps and (cut := self._summed(at - 1)):
                    cuts.append(cut)
                    at = cut[1]
                    stack.pop()
            else:
                stack.pop()
                key = b""
                if not stack:
                    return at, cuts

    def _summed(self, start: int) -> Cut | None:
        """The list at `start` as a list of its sum; None where it is not one of numbers from 0 on."""
        end = self.data.find(b"]", start) + 1
        part = self.data[start:end]
        if part.count(b",") > _MOST_GAPS or b"[" in part[1:] or b"{" in part:
            return None
        try:
            gaps = json.loads(part)
        except ValueError:
            return None
        if not all(type(gap) in (int, float) and 0 <= gap <= LARGEST for gap in gaps):
            return None
        return start, end, f"[{float(sum(gaps))!r}]".encode() if gaps else b"[]"

    def _token(self, at: int, start: int) -> tuple[bytes, int]:
        match = _TOKEN.search(self.data, at)
        if match is None:
            raise FileRefused(
                f"{self.line(start)}: the JSON that begins here is cut off; its end was expected"
            )
        return match[0], match.end()

    def _string_end(self, start: int) -> int:
        """The place after the closing quote of a string whose text begins at `start`."""
        data, at = self.data, start
        while True:
            quote = data.find(b'"', at)
            if quote < 0:
                raise FileRefused(
                    f"{self.line(start)}: a text that begins here does not end; a closing quote was expected"
                )
            before = quote
            while before > start and data[before - 1] == _BACKSLASH:
                before -= 1
            if (quote - before) % 2 == 0:
                return quote + 1
            at = quote + 1

    def _container_end(self, start: int) -> int:
        """The end of the object or list at `start`; `start` where neither stands there."""
        if self.data[start : start + 1] not in (b"{", b"["):
            return start
        at, depth = start, 0
        while True:
            token, at = self._token(at, start)
            if token == b'"':
                at = self._string_end(at)
            elif token in b"{[":
                depth += 1
                self._shallow(depth, at)
            else:
                depth -= 1
                if depth == 0:
                    return at

    def _opened(self, depth: int, at: int) -> None:
        self._shallow(depth, at)
        self.containers += 1
        if self.containers > MOST_CONTAINERS:
            raise FileRefused(f"{self.line(at)}: more than {MOST_CONTAINERS:,} objects and lists")

    def _text(self, at: int) -> None:
        self.texts += 1
        if self.texts > MOST_TEXTS:
            raise FileRefused(f"{self.line(at)}: more than {MOST_TEXTS:,} keys and texts")

    def _shallow(self, depth: int, at: int) -> None:
        if depth > MOST_DEPTH:
            raise FileRefused(f"{self.line(at)}: nested more than {MOST_DEPTH} deep")


def _parsed(scan: _Scan, start: int, end: int, cuts: list[Cut]) -> Any:
    kept, at = [], start
    for cut_start, cut_end, instead in cuts:
        kept += [scan.data[at:cut_start], instead]
        at = cut_end
    kept.append(scan.data[at:end])
    if sum(part.count(b",") for part in kept) > MOST_VALUES:
        raise FileRefused(f"{scan.line(start)}: more than {MOST_VALUES:,} values")
    raw = b"".join(kept)
    del kept
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        place = _original(start, cuts, error.start)
        raise FileRefused(f"{scan.line(place)}: text in UTF-8 was expected") from None
    del raw
    try:
        return _DECODER.decode(text)
    except FileRefused as error:
        raise FileRefused(f"{scan.line(start)}: {error}") from None
    except json.JSONDecodeError as error:
        place = _original(start, cuts, len(text[: error.pos].encode()))
        raise FileRefused(f"{scan.line(place)}: JSON was expected ({_lower(error.msg)})") from None


def _original(start: int, cuts: list[Cut], at: int) -> int:
    """The place in the file of byte `at` of a document whose cuts were replaced."""
    place = start + at
    for cut_start, cut_end, instead in cuts:
        if place <= cut_start:
            break
        place += cut_end - cut_start - len(instead)
    return place


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise FileRefused(f'an object of the document that begins here has "{shown_text(name)}" twice')
        values[name] = value
    return values


def _integer(digits: str) -> float:
    if len(digits) > _LONGEST_INTEGER:
        return float("inf")
    return int(digits)


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer)
