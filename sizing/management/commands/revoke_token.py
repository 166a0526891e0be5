"""`manage.py revoke_token BEGINNING` or `--user USER`: nobody gets in by these tokens any more."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from sizing.management.desk_command import DeskCommand
from sizing.models import history
from sizing.models.history import By
from sizing.services.errors import DeskError
from sizing.services.tokens import find_token, revoke, tokens_of


class Command(DeskCommand):
    """Revokes one API token, or all of a user."""

    help = "Revoke an API token, or all of a user; they stay in the list of tokens."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "token", nargs="?", help="the beginning of the token, as the list of tokens shows it"
        )
        parser.add_argument("--user", help="revoke all tokens of this user instead")

    def handle(self, *args: Any, **options: Any) -> None:
        token, user = options["token"], options["user"]
        if (token is None) == (user is None):
            raise DeskError("give either the beginning of a token or --user USER")
        revoked = revoke([find_token(token)] if user is None else tokens_of(user), By(history.COMMAND))
        for row in revoked:
            self.stdout.write(f"revoked {row}")
        if not revoked:
            self.stdout.write("nothing to revoke: no such token lets anybody in")
