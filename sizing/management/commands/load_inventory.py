"""`manage.py load_inventory FILE [--replace]`"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from sizing.inventory.words import counted
from sizing.management.desk_command import DeskCommand
from sizing.models import InventoryLoad
from sizing.services import inventory, inventory_loads

MOST_LINES = 100
SHOW_PROGRESS_FROM = 500_000


class Command(DeskCommand):
    help = "Load an inventory file (YAML or JSON) in one transaction; a file with an error changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="the inventory file, or - for standard input")
        parser.add_argument("--replace", action="store_true", help="remove what the file leaves out")

    def handle(self, *args: Any, file: str, replace: bool, **options: Any) -> None:
        try:
            with _progress(file):
                result = _load(file, replace)
        except inventory.InventoryError as error:
            lines = [str(problem) for problem in error.problems[:MOST_LINES]]
            if error.total > MOST_LINES:
                lines.append(f"and {error.total - MOST_LINES:,} more")
            if error.total > 1:
                lines.append(error.message)
            self.fail(*lines)
        report = result.as_json()
        for kind in inventory.KINDS:
            counts = [
                f"{report[what][kind]:,} {what}"
                for what in ("created", "updated", "removed", "unchanged")
                if report[what][kind]
            ]
            if counts:
                self.stdout.write(f"{kind}: {', '.join(counts)}")
        for line in result.warning_lines(MOST_LINES):
            self.stdout.write(f"warning: {line}")
        warned = len(result.warnings) + result.more_warnings
        self.stdout.write(f"{counted(result.changed, 'change')}, {counted(warned, 'warning')}")


def _load(file: str, replace: bool) -> inventory.LoadResult:
    given = file == "-"
    content = inventory.read_at_most(sys.stdin.buffer) if given else inventory.read_file(file)
    name = "standard input" if given else Path(file).name
    return inventory_loads.load(content, replace, name=name, trigger=InventoryLoad.Trigger.COMMAND, user=None)


def _progress(file: str) -> AbstractContextManager[Any]:
    """A sign of life on a terminal while a large file loads."""
    path = Path(file)
    if (
        file == "-"
        or not sys.stderr.isatty()
        or not path.is_file()
        or path.stat().st_size < SHOW_PROGRESS_FROM
    ):
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(f"loading {path.name}")
