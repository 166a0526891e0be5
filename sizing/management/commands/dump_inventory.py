"""`manage.py dump_inventory [--format yaml|json]`"""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import Error as DatabaseError

from sizing.services import inventory


class Command(BaseCommand):
    help = "Write the inventory to standard output, in the form that load_inventory reads."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--format", choices=("yaml", "json"), default="yaml", help="default: yaml")

    def handle(self, *args: Any, format: str, **options: Any) -> None:
        try:
            text = inventory.dump_text(format)
        except DatabaseError as error:
            self.stderr.write(f"the database refused: {' '.join(str(error).split())}")
            sys.exit(2)
        self.stdout.write(text, ending="")
