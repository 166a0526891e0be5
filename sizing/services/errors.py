"""The one error that services raise for people and scripts."""

from __future__ import annotations

from collections.abc import Mapping


class DeskError(Exception):
    """A refusal that says what is wrong, in one line.

    `status` is the HTTP status, `code` the stable word, `fields` problems by field or document path.
    """

    def __init__(
        self,
        message: str,
        code: str = "invalid",
        status: int = 400,
        fields: Mapping[str, list[str]] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.fields: dict[str, list[str]] = dict(fields or {})
