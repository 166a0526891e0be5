"""`manage.py create_token USER --label L [--days N]`: an API token, shown once."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from sizing.services.errors import DeskError
from sizing.services.tokens import create_token


class Command(BaseCommand):
    """Makes an API token for a user."""

    help = "Make an API token for a user and print it once; only its hash is kept."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="name of the user that the token acts as")
        parser.add_argument("--label", default="", help="what the token is for (required)")
        parser.add_argument("--days", help="days until it expires; left out: it does not")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            token = create_token(options["user"], options["label"], _days(options["days"]))
        except DeskError as error:
            self.stderr.write(error.message)
            raise SystemExit(2) from None
        self.stdout.write(token)


def _days(given: Any) -> int | None:
    text = "" if given is None else str(given)
    if given is not None and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise DeskError("--days must be a whole number of days")
    return None if given is None else int(text)
