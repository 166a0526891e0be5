"""`manage.py dump_inventory [--format yaml|json]`"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from sizing.management.desk_command import DeskCommand
from sizing.services import inventory


class Command(DeskCommand):
    help = "Write the inventory to standard output, in the form that load_inventory reads."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--format", choices=("yaml", "json"), default="yaml", help="default: yaml")

    def handle(self, *args: Any, format: str, **options: Any) -> None:
        self.stdout.write(inventory.dump_text(format), ending="")
