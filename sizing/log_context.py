"""What the log lines of a request or a task are about: carried beside the call, not through it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token

Told = str | int | float
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)

_about: ContextVar[Mapping[str, Told]] = ContextVar("about")


def about() -> Mapping[str, Told]:
    """The fields that every log line of the current work carries."""
    return _about.get({})


@contextmanager
def telling(**fields: Told) -> Iterator[None]:
    """Within it log lines carry these fields too; empty texts are left out."""
    token = begin(**fields)
    try:
        yield
    finally:
        end(token)


def begin(**fields: Told) -> Token[Mapping[str, Told]]:
    """As :func:`telling`, for work whose end is told elsewhere: to be given to :func:`end`."""
    return _about.set({**about(), **{name: value for name, value in fields.items() if value != ""}})


def end(token: Token[Mapping[str, Told]]) -> None:
    """What was begun is over: log lines carry again what they did before."""
    _about.reset(token)


def request_id() -> str:
    """The id of the request that the current work belongs to; empty where it belongs to none."""
    return str(about().get("request_id", ""))


def valid_request_id(text: str | None) -> str:
    """The id that a caller gave, where it can stand in a log line as it is; else empty."""
    return text if text and _REQUEST_ID.fullmatch(text) else ""
