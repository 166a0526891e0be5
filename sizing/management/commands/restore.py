"""`manage.py restore FILE [--replace]`: the state of a backup, all of it or nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from sizing.management.desk_command import DeskCommand
from sizing.services import backups


class Command(DeskCommand):
    """Restores a backup."""

    help = (
        "Bring the database into the state of a backup, in one transaction. A database without tables gets"
        " them; one that is not empty is refused without --replace."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", metavar="FILE", help="what `manage.py backup` wrote, or - for standard input"
        )
        parser.add_argument("--replace", action="store_true", help="give up what the database holds now")

    def handle(self, *args: Any, file: str, replace: bool, **options: Any) -> None:
        if file == "-":
            counts = backups.restore(sys.stdin.buffer, replace)
        else:
            with Path(file).open("rb") as opened:
                counts = backups.restore(opened, replace)
        self.stdout.write(
            f"restored {sum(counts.values()):,} rows of {len(counts)} tables; everybody signs in anew"
        )
