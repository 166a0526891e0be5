"""Bytes into text, piece by piece: unpacked where they are packed, decoded from what they are written in."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Callable
from typing import BinaryIO, cast

from sizing.inventory.yaml_reading import UnreadableError

PIECE = 1024**2
"""Bytes that are read at a time."""

LARGEST = 2 * 1024**3
"""Bytes, unpacked, of the largest list that is read: ten times what the largest clusters list."""

_GZIP = b"\x1f\x8b"
_LONGEST_MARK = 4
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, ""),
    (codecs.BOM_UTF32_BE, ""),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Source:
    """The text of a file from beginning to end. Raises `UnreadableError` where it is none."""

    def __init__(self, source: bytes | BinaryIO, progress: Callable[[float], None] | None) -> None:
        self._bytes = _Counted(io.BytesIO(source) if isinstance(source, bytes) else source)
        self._progress = progress
        self._stream: BinaryIO = cast("BinaryIO", self._bytes)
        if self._bytes.peek(_LONGEST_MARK).startswith(_GZIP):
            self._stream = cast("BinaryIO", gzip.GzipFile(fileobj=self._stream, mode="rb"))
        self._unpacked = 0
        self._lines = 0
        self._decoder: codecs.IncrementalDecoder | None = None
        self._ended = False
        self._held = ""

    def head(self) -> str:
        """The beginning, which the first `read` gives again; empty where there is nothing but white space."""
        while not self._held.strip() and not self._ended:
            self._held = self._next_text()
        return self._held if self._held.strip() else ""

    def read(self) -> str:
        """The next piece; empty at the end."""
        if self._held:
            held, self._held = self._held, ""
            return held
        return self._next_text()

    def _next_text(self) -> str:
        while not self._ended:
            piece = self._next_bytes()
            self._ended = not piece
            text = self._decoded(piece)
            if text:
                return text
        return ""

    def done(self) -> None:
        """Tell that all of it is read."""
        if self._progress:
            self._progress(1.0)

    def _next_bytes(self) -> bytes:
        try:
            piece = self._stream.read(PIECE)
        except EOFError:
            raise UnreadableError("the gzip data ends too early; the file was cut off") from None
        except (gzip.BadGzipFile, zlib.error):
            raise UnreadableError("the gzip data is broken") from None
        self._unpacked += len(piece)
        if self._unpacked > LARGEST:
            raise UnreadableError(f"the list is larger than {LARGEST // 1024**3} GiB")
        if self._progress and self._bytes.size:
            self._progress(min(self._bytes.taken / self._bytes.size, 1.0))
        return piece

    def _decoded(self, piece: bytes) -> str:
        if self._decoder is None:
            encoding, mark = _encoding(piece)
            piece = piece[mark:]
            self._decoder = codecs.getincrementaldecoder(encoding)("strict")
        try:
            text = self._decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            line = self._lines + error.object[: error.start].count(b"\n") + 1
            name = "UTF-8" if error.encoding == "utf-8" else "UTF-16"
            raise UnreadableError(f"line {line:,}: this is not {name}") from None
        self._lines += text.count("\n")
        return text


def _encoding(head: bytes) -> tuple[str, int]:
    """What the text is written in, and the length of its byte order mark.

    Without a mark a zero byte tells UTF-16, for the first character of a list is an ASCII one.
    """
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            if not encoding:
                raise UnreadableError("this is UTF-32; only UTF-8 and UTF-16 are read")
            return encoding, len(mark)
    if len(head) > 1 and not head[0] and head[1]:
        return "utf-16-be", 0
    if len(head) > 1 and head[0] and not head[1]:
        return "utf-16-le", 0
    return "utf-8", 0


class _Counted:
    """A stream that counts what was taken of it, of `size` bytes in all (0: not known)."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._first = b""
        self.taken = 0
        self.size = _size(stream)

    def peek(self, size: int) -> bytes:
        while len(self._first) < size:
            more = self._stream.read(size - len(self._first))
            if not more:
                break
            self._first += more
        return self._first

    def read(self, size: int = -1) -> bytes:
        if 0 <= size <= len(self._first):
            found, self._first = self._first[:size], self._first[size:]
        else:
            found = self._first + self._stream.read(size - len(self._first) if size > 0 else -1)
            self._first = b""
        self.taken += len(found)
        return found


def _size(stream: BinaryIO) -> int:
    """Bytes from here to the end, where the stream can tell."""
    try:
        here = stream.tell()
        size = stream.seek(0, io.SEEK_END) - here
        stream.seek(here)
    except (AttributeError, OSError, ValueError):
        return 0
    return size
