"""A backup line by line, checked: what is broken is one line that says where."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from sizing.services.backups.tables import FORMAT, VERSION, Migrations
from sizing.services.errors import DeskError

MOST_LINE_BYTES = 1 << 30

NO_BACKUP = "this is no backup of the desk"


@dataclass(frozen=True, slots=True)
class Part:
    """The beginning of a table, or one of its rows."""

    table: str
    columns: list[str]
    row: list[Any] | None


class Backup:
    """A backup that is read once from its beginning to its end; every fault is a DeskError."""

    def __init__(self, file: IO[bytes]) -> None:
        self._lines = _lines(file)
        head = next(self._lines, None)
        if not isinstance(head, dict) or head.get("is") != FORMAT:
            raise DeskError(NO_BACKUP)
        if head.get("version") != VERSION:
            raise DeskError("this backup was made by a newer version of the desk; update the desk first")
        self.made_at: str = str(head["at"])
        self.migrations: Migrations = head["migrations"]

    def parts(self) -> Iterator[Part]:
        """The tables and their rows; at the end it is sure that none is missing."""
        table, rows = "", 0
        columns: list[str] = []
        for line in self._lines:
            match line:
                case {"table": str(table), "columns": list(columns)}:
                    yield Part(table, columns, None)
                case list() if len(line) == len(columns):
                    rows += 1
                    yield Part(table, columns, line)
                case {"rows": int(expected)} if expected == rows and next(self._lines, None) is None:
                    return
                case _:
                    raise DeskError(f"the backup is broken in its table {table or '(none yet)'}")
        raise DeskError("the backup is cut off: its end is missing")


def _lines(file: IO[bytes]) -> Iterator[Any]:
    """What each line of the packed file says."""
    number = 0
    try:
        with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
            while line := unpacked.readline(MOST_LINE_BYTES):
                number += 1
                yield json.loads(line)
    except EOFError:
        raise DeskError("the backup is cut off: its end is missing") from None
    except (gzip.BadGzipFile, zlib.error, ValueError, RecursionError):
        raise DeskError(f"the backup is broken after its line {number:,}" if number else NO_BACKUP) from None
