"""``manage.py simulate_replica``: a replica with a known capacity, for tests and demos."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from sizing.management.desk_command import DeskCommand
from sizing.measuring.simulated.serving import DESCRIPTION, CannotServe, add_arguments, serve


class Command(DeskCommand):
    help = DESCRIPTION
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            serve(options, self.say)
        except CannotServe as error:
            self.fail(str(error))

    def say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
