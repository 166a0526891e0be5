"""`manage.py create_token USER --label L [--days N] [--read-only]`: an API token, shown once."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from sizing.management.desk_command import DeskCommand
from sizing.services.errors import DeskError
from sizing.services.tokens import MOST_DAYS, create_token


class Command(DeskCommand):
    """Makes an API token for a user."""

    help = "Make an API token for a user and print it once; only its hash is kept."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="name of the user that the token acts as")
        parser.add_argument("--label", default="", help="what the token is for (required)")
        parser.add_argument("--days", help="days until it expires; left out: it does not")
        parser.add_argument(
            "--read-only", action="store_true", help="it may look and ask, but change nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        days, read_only = _days(options["days"]), bool(options["read_only"])
        self.stdout.write(create_token(options["user"], options["label"], days, read_only=read_only))


def _days(given: Any) -> int | None:
    if given is None:
        return None
    text = str(given)
    if not (text.isascii() and text.isdigit()):
        raise DeskError("--days must be a whole number of days")
    return int(text) if len(text) < 10 else MOST_DAYS + 1  # too many, however many they are
