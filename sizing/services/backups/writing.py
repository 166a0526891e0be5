"""The state into a file, as of one moment, while the desk works on."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from django.db import models
from django.utils import timezone

from sizing.models.reads import consistent_reads
from sizing.services.backups.tables import (
    FORMAT,
    VERSION,
    applied,
    columns,
    loader,
    plain,
    rows_at_once,
    tables,
)
from sizing.services.database import NOT_MIGRATED
from sizing.services.errors import DeskError


def write(path: Path) -> dict[str, int]:
    """Write the backup to a new file that its owner alone may read; the number of rows by table.

    The file is there as a whole or not at all. Raises DeskError where there is one already, and OSError.
    """
    if path.exists():
        raise DeskError(f"{path} is there already; a backup overwrites nothing")
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # made with mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            counts = write_to(file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(draft, path)
    except BaseException:
        os.unlink(draft)
        raise
    return counts


def write_to(file: IO[bytes]) -> dict[str, int]:
    """Write the backup to an open file; the number of rows by table."""
    counts: dict[str, int] = {}
    with consistent_reads(), gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0) as packed:

        def line(value: Any) -> None:
            packed.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

        known = loader()
        migrations = applied(known)
        if not migrations:
            raise DeskError(NOT_MIGRATED)
        line({"is": FORMAT, "version": VERSION, "at": timezone.now().isoformat(), "migrations": migrations})
        for name, table in tables(known, migrations).items():
            fields = columns(table)
            line({"table": name, "columns": [field.attname for field in fields]})
            counts[name] = 0
            for row in _rows(table, fields):
                line([plain(value) for value in row])
                counts[name] += 1
        line({"rows": sum(counts.values())})
    return {name: count for name, count in counts.items() if count}


def _rows(table: type[models.Model], fields: list[models.Field[Any, Any]]) -> Iterator[tuple[Any, ...]]:
    """All rows by their keys, a few at a time: in little memory on any database, and through any pooler."""
    at_once = rows_at_once(fields)
    names = [field.attname for field in fields]
    key = names.index(table._meta.pk.attname)
    rows: models.QuerySet[Any, tuple[Any, ...]] = models.QuerySet(table).order_by("pk").values_list(*names)
    part = list(rows[:at_once])
    while part:
        yield from part
        part = list(rows.filter(pk__gt=part[-1][key])[:at_once])
