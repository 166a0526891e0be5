"""How much there is to read in a file, without reading it: gzip counts by what it unpacks to."""

from __future__ import annotations

import gzip
import zlib
from contextlib import suppress
from typing import BinaryIO

MOST_SLOW = 256 * 1024
"""Bytes of YAML and other text that is not JSON, which takes many times as long."""

PIECE = 64 * 1024


def weight(source: BinaryIO, most: int) -> int:
    """Unpacked bytes of an open file, counted up to somewhat more than `most`; slow text is more at once."""
    packed = source.read(2) == b"\x1f\x8b"
    source.seek(0)
    opened = gzip.GzipFile(fileobj=source) if packed else source
    size, slow = 0, False
    # One that cannot be unpacked is for its reader to refuse.
    with suppress(OSError, EOFError, zlib.error):
        while size <= most and (piece := opened.read(PIECE)):
            slow = slow or (not size and not _is_json(piece))
            size += len(piece)
            if slow and size > MOST_SLOW:
                return most + 1
    return size


def _is_json(start: bytes) -> bool:
    return start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
