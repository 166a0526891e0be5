"""What the desk's commands have in common: every error is one line on stderr, exit 2."""

from __future__ import annotations

from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandParser
from django.db import OperationalError

from sizing.services.errors import DeskError

ERROR_EXIT = 2


class _OneLineParser(CommandParser):
    def error(self, message: str) -> NoReturn:
        self.exit(ERROR_EXIT, f"{self.prog}: {message}\n")


class DeskCommand(BaseCommand):
    """A command whose errors reach people as one line each, without a traceback."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.__class__ = _OneLineParser
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except DeskError as error:
            self.fail(error.message, *(f"{path}: {m}" for path, ms in error.fields.items() for m in ms))
        except OperationalError as error:
            self.fail(f"the database is not available: {str(error).splitlines()[0]}")
        except BrokenPipeError:
            raise SystemExit(ERROR_EXIT) from None

    def fail(self, *lines: str) -> NoReturn:
        """Write the lines to stderr and end with exit 2."""
        for line in lines:
            self.stderr.write(line)
        raise SystemExit(ERROR_EXIT)
