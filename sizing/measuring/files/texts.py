"""From the bytes of a file to UTF-8 text: compression, encodings, size."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from typing import BinaryIO

from sizing.measuring.files.points import FileRefused

MOST_BYTES = 64 * 1024 * 1024
"""The largest file that is read, also after unpacking."""

_MIB = 1024 * 1024
_TOO_LARGE = f"larger than {MOST_BYTES // _MIB} MiB, the most that is read"
_SHOWN_NAME = 160


def shown_name(name: str) -> str:
    """A file's name for a message: on one line, without control characters, not endless."""
    clean = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in name)
    return clean if len(clean) <= _SHOWN_NAME else f"{clean[: _SHOWN_NAME - 1]}…"


def utf8(source: bytes | BinaryIO) -> bytes:
    """The file's text as UTF-8 without a byte order mark; FileRefused where it is none, or too large."""
    data = source if isinstance(source, bytes) else source.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise FileRefused(_TOO_LARGE)
    if data.startswith(b"\x1f\x8b"):
        data = _unpacked(data)
    if data.startswith(b"PK\x03\x04"):
        raise FileRefused("a zip archive; the files in it were expected one by one")
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise FileRefused("text in UTF-32; UTF-8 or UTF-16 was expected")
    if (encoding := _utf16(data)) is not None:
        data = _recoded(data, encoding)
    data = data.removeprefix(codecs.BOM_UTF8)
    if not data.strip():
        raise FileRefused("the file is empty; a load generator's result was expected")
    return data


def _unpacked(data: bytes) -> bytes:
    """Unpack gzip, never more than the limit: a small file may claim to be a huge one."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            plain = packed.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise FileRefused(
            "starts like a gzip file, but cannot be unpacked; a whole one was expected"
        ) from None
    if len(plain) > MOST_BYTES:
        raise FileRefused(f"unpacked {_TOO_LARGE}")
    return plain


def _utf16(data: bytes) -> str | None:
    """The UTF-16 that the text is in, told by its mark or by its first character; None: it is not."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    first = data[:2]
    if len(first) == 2 and first[0] and not first[1]:
        return "utf-16-le"
    return "utf-16-be" if len(first) == 2 and first[1] and not first[0] else None


def _recoded(data: bytes, encoding: str) -> bytes:
    try:
        plain = data.decode(encoding).encode()
    except UnicodeError:
        raise FileRefused("starts like UTF-16 text, but is not; UTF-8 or UTF-16 was expected") from None
    if len(plain) > MOST_BYTES:
        raise FileRefused(_TOO_LARGE)
    return plain
