"""A file's content on its way into the database: compressed piece by piece, so that memory stays small."""

from __future__ import annotations

import hashlib
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, BinaryIO

MOST_PACKED = 32 * 1024 * 1024
"""Compressed; a result file of the most bytes that are read takes a fraction of this."""

PIECE = 1024 * 1024


class TooLargeFile(Exception):  # noqa: N818  it reads as what it says
    """A file that is larger than what is kept, with what was expected in words."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A compressed copy of a file on the disk, and what the file was."""

    name: str
    size: int
    sha256: str
    content: IO[bytes]

    def parts(self) -> Iterator[bytes]:
        """The compressed content, piece by piece."""
        self.content.seek(0)
        while piece := self.content.read(PIECE):
            yield piece


@contextmanager
def packed(name: str, source: BinaryIO, most: int) -> Iterator[Packed]:
    """Compress what is left of an open file, of at most so many bytes; TooLargeFile where there is more."""
    pack, digest, size, kept = zlib.compressobj(), hashlib.sha256(), 0, 0
    with tempfile.TemporaryFile() as content:
        while piece := source.read(PIECE):
            size += len(piece)
            if size > most:
                raise TooLargeFile(f"at most {most // PIECE} MiB were expected")
            digest.update(piece)
            kept += content.write(pack.compress(piece))
            if kept > MOST_PACKED:
                raise TooLargeFile(
                    f"text was expected; compressed it is still above {MOST_PACKED // PIECE} MiB"
                )
        content.write(pack.flush())
        yield Packed(name, size, digest.hexdigest(), content)
