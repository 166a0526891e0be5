"""What the desk's commands have in common: every error is one line on stderr, exit 2."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandParser
from django.db import DatabaseError, InterfaceError, OperationalError

from sizing.services.database import AWAY, unavailable
from sizing.services.errors import DeskError

ERROR_EXIT = 2


class _OneLineParser(CommandParser):
    def error(self, message: str) -> NoReturn:
        self.exit(ERROR_EXIT, f"{self.prog}: {' '.join(message.split())}\n")


class DeskCommand(BaseCommand):
    """A command whose errors reach people as one line each, without a traceback."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.__class__ = _OneLineParser
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            try:
                return super().execute(*args, **options)
            finally:
                self.stdout.flush()  # here, where a full disk can still be told of
        except DeskError as error:
            self.fail(error.message, *(f"{path}: {m}" for path, ms in error.fields.items() for m in ms))
        except (DatabaseError, InterfaceError) as error:
            self.fail(_database_words(error))
        except BrokenPipeError:
            self._drop_output()
            raise SystemExit(ERROR_EXIT) from None
        except OSError as error:
            self._drop_output()
            place = f"{error.filename}: " if error.filename else "cannot write the output: "
            self.fail(f"{place}{error.strerror or error}")

    def fail(self, *lines: str) -> NoReturn:
        """Write the lines to stderr and end with exit 2."""
        with suppress(OSError):
            for line in lines:
                self.stderr.write(" ".join(line.splitlines()))
        raise SystemExit(ERROR_EXIT)

    def _drop_output(self) -> None:
        """What could not be written is still waiting, and would fail again when Python ends."""
        out: Any = getattr(self.stdout, "_out", None)
        if out is not None and out is sys.stdout:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, out.fileno())
            os.close(nowhere)


def _database_words(error: Exception) -> str:
    known = unavailable(error)
    if known is not None and known != AWAY:
        return known
    away = isinstance(error, OperationalError | InterfaceError)
    return f"the database {'is not available' if away else 'refused'}: {' '.join(str(error).split())}"
