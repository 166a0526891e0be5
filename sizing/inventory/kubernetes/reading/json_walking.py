"""JSON object by object: the top level is walked here, each object is decoded at once and then forgotten."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from sizing.inventory.kubernetes.reading.refusing import refuse_document
from sizing.inventory.kubernetes.reading.source import Source
from sizing.inventory.kubernetes.reading.taking import Taking
from sizing.inventory.words import quoted
from sizing.inventory.yaml_reading import UnreadableError

LARGEST_OBJECT = 4 * 1024**2
"""Characters of the largest single object; what is larger must be a list. The API keeps none above some
1.5 MiB (https://etcd.io/docs/latest/dev-guide/limit/)."""

_DEEPEST = 3
_PARTING = "---"
_SPACE = re.compile(r"[ \t\n\r]*")
# What an error so near to the end may come from: the rest of an escape or a word is not read yet.
_LONGEST_TOKEN = 16
_MISSING = {
    "Expecting value": "a value",
    "Expecting ',' delimiter": "a comma or a closing bracket",
    "Expecting ':' delimiter": "a colon",
    "Expecting property name enclosed in double quotes": "a key in double quotes",
}


class _TooLargeError(Exception):
    pass


class _TwiceError(ValueError):
    pass


def walk_json(source: Source, taking: Taking) -> None:
    """Tell all that stands in a file, one or more values one behind the other, also with `---` between."""
    window = _Window(source)
    try:
        while window.next_document():
            _walk(window, taking, 0)
    except RecursionError:
        window.fail("this is nested too deeply")


def _walk(window: _Window, taking: Taking, depth: int) -> None:
    first = window.next()
    if first == "{":
        _walk_object(window, taking, depth)
    elif first == "[":
        taking.begin(bare=True)
        _walk_items(window, taking, depth)
        taking.end()
    else:
        window.fail("here an object or a list should begin")


def _walk_object(window: _Window, taking: Taking, depth: int) -> None:
    taking.begin()
    window.pass_by("{")
    if not window.passes("}"):
        while True:
            if window.next() != '"':
                window.fail_without("a key in double quotes")
            at = window.position
            key = window.value()
            if key in taking.keys:
                window.fail(f"the key {quoted(key)} stands twice in this object", at)
            window.pass_by(":", "a colon")
            if key == "items" and window.next() == "[":
                taking.items()
                _walk_items(window, taking, depth)
            else:
                taking.key(key, _whole_value(window, {} if depth else {**taking.keys, key: []}))
            if window.passes("}"):
                break
            window.pass_by(",", "a comma or the } that closes the object")
    taking.end()


def _walk_items(window: _Window, taking: Taking, depth: int) -> None:
    window.pass_by("[")
    if window.passes("]"):
        return
    while True:
        first = window.next()
        try:
            value = window.value()
        except _TooLargeError:
            if first not in ("{", "[") or depth >= _DEEPEST:
                _fail_as_too_large(window)
            _walk(window, taking, depth + 1)
        else:
            taking.item(value)
        if window.passes("]"):
            return
        window.pass_by(",", "a comma or the ] that closes the list")


def _whole_value(window: _Window, document: dict[str, Any]) -> Any:
    """The next value; where it is too large to be of an object, say what the document is instead."""
    try:
        return window.value()
    except _TooLargeError:
        if document:
            refuse_document(document)
        _fail_as_too_large(window)


def _fail_as_too_large(window: _Window) -> NoReturn:
    window.fail(f"one object has more than {LARGEST_OBJECT // 1024**2} MiB")


class _Window:
    """A part of the text, with the place where the reading stands."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._text = ""
        self._at = 0
        self._dropped = 0
        self._lines = 0
        self._column = 0
        self._ended = False
        self._decode = json.JSONDecoder(object_pairs_hook=_mapping, parse_constant=_refuse).raw_decode

    @property
    def position(self) -> int:
        """Characters before the place, from the beginning of the file."""
        return self._dropped + self._at

    def next(self) -> str:
        """The next character that is no white space; empty at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def next_document(self) -> str:
        """The next character behind the lines that part documents, as where files were put together."""
        while self.next() == _PARTING[0]:
            while len(self._text) - self._at < len(_PARTING) and self._more():
                pass
            if not self._text.startswith(_PARTING, self._at):
                break
            self._at += len(_PARTING)
        return self.next()

    def passes(self, character: str) -> bool:
        """Go past this character if it is the next."""
        if self.next() != character:
            return False
        self._at += 1
        return True

    def pass_by(self, character: str, what: str = "") -> None:
        """Go past this character; anything else is an error."""
        if not self.passes(character):
            self.fail_without(what or f"a {character}")

    def value(self) -> Any:
        """The value that comes next."""
        self.next()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._ended or not self._may_go_on(error):
                    self._fail_at(error)
            except ValueError as error:
                word = "this object has" if isinstance(error, _TwiceError) else "in this object:"
                self.fail(f"{word} {_one_line(error)}")
            else:
                if end < len(self._text) or self._ended:
                    self._at = end
                    return value
            if len(self._text) - self._at > LARGEST_OBJECT:
                raise _TooLargeError
            self._more()

    def fail_without(self, what: str) -> NoReturn:
        """Raise the error that something is not here."""
        if self.next():
            self.fail(f"{what} is missing before {quoted(self._text[self._at])}")
        self.fail(f"the file ends too early, it was cut off: {what} is missing")

    def fail(self, problem: str, position: int | None = None) -> NoReturn:
        """Raise the error with its place: here, or at a position that is still in the window."""
        at = self._at if position is None else max(position - self._dropped, 0)
        line = self._lines + self._text.count("\n", 0, at) + 1
        start = self._text.rfind("\n", 0, at)
        column = at - start if start >= 0 else self._column + at + 1
        raise UnreadableError(f"not valid JSON: line {line:,}, column {column:,}: {problem}")

    def _more(self) -> bool:
        """Read on, and drop what is done with. False at the end."""
        piece = self._source.read()
        if not piece:
            self._ended = True
            return False
        self._lines += self._text.count("\n", 0, self._at)
        start = self._text.rfind("\n", 0, self._at)
        self._column = self._at - start - 1 if start >= 0 else self._column + self._at
        self._dropped += self._at
        self._text = self._text[self._at :] + piece
        self._at = 0
        return True

    def _may_go_on(self, error: json.JSONDecodeError) -> bool:
        """Whether the error may be none with the text that follows."""
        return error.msg.startswith("Unterminated string") or error.pos > len(self._text) - _LONGEST_TOKEN

    def _fail_at(self, error: json.JSONDecodeError) -> NoReturn:
        position = self._dropped + error.pos
        if error.msg.startswith("Unterminated string"):
            self.fail("the file ends inside of the text that begins here; it was cut off", position)
        missing = _MISSING.get(error.msg)
        if missing and not self._text[error.pos :].strip():
            self.fail(f"the file ends too early, it was cut off: {missing} is missing", position)
        if missing:
            self.fail(f"{missing} is missing before {quoted(self._text[error.pos])}", position)
        self.fail(error.msg[:1].lower() + error.msg[1:].removesuffix(" at").rstrip(": "), position)


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _TwiceError(f"the key {quoted(key)} twice")
            seen.add(key)
    return mapping


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _one_line(error: ValueError) -> str:
    message = str(error)
    return "a number has too many digits" if "integer string conversion" in message else message
