"""`manage.py backup FILE`: the whole state in one file, while the desk works on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from sizing.management.desk_command import DeskCommand
from sizing.services import backups


class Command(DeskCommand):
    """Writes a backup."""

    help = (
        "Write everything that the desk keeps into one file, as of one moment; it fits SQLite and PostgreSQL."
        " The secret key and the endpoints' keys are not in it, the hashes of passwords and tokens are."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="a new file, or - for standard output")

    def handle(self, *args: Any, file: str, **options: Any) -> None:
        if file == "-":
            backups.write_to(sys.stdout.buffer)
            return
        counts = backups.write(Path(file))
        self.stdout.write(f"{file}: {sum(counts.values()):,} rows of {len(counts)} tables")
