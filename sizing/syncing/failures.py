"""What goes wrong between the desk and the cluster's API, in words that never repeat a secret."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Collection
from json import JSONDecodeError
from typing import Any

from urllib3 import exceptions as transport

MOST_WORDS = 300


class SyncFailure(Exception):  # noqa: N818  it reads as what it says
    """Why the sync does not get on: one line, what it was doing, and the HTTP status where there is one."""

    def __init__(self, words: str, doing: str, status: int = 0) -> None:
        super().__init__(words)
        self.words = words
        self.doing = doing
        self.status = status


def refused(
    status: int, reason: str | None, body: Any, doing: str, secrets: Collection[str] = ()
) -> SyncFailure:
    """The API server answered, but not with what was asked for. Status 0: TLS failed."""
    if status == 0:
        return SyncFailure(_tls_words(reason or ""), doing)
    said = _message(body, secrets)
    named = f"{status} {one_line(reason or '', secrets)}".strip()
    if status == 401:
        words = f"the cluster refused the token ({named})"
    elif "system:anonymous" in said:
        words = f"the cluster does not know who asks: no token or certificate was sent ({named})"
    elif status == 403:
        words = f"the cluster forbids {doing} ({named})" + (f": {said}" if said else "")
    else:
        words = f"the API server answered {named}" + (f": {said}" if said else "")
    return SyncFailure(words, doing, status)


def broken(error: Exception, doing: str) -> SyncFailure:
    """No answer came, or it broke off."""
    return SyncFailure(_words(error), doing)


def _words(error: Exception) -> str:
    match error:
        case transport.NameResolutionError():
            return f"the name of the API server cannot be resolved ({_system_words(error)})"
        case transport.NewConnectionError():
            return f"no connection to the API server: {_system_words(error)}"
        case transport.ConnectTimeoutError():
            return "no connection to the API server: it does not answer in time"
        case transport.ReadTimeoutError():
            return "the API server was silent for too long"
        case transport.ProxyError():
            return f"the proxy gives no connection to the API server: {_system_words(error.original_error)}"
        case transport.SSLError() | ssl.SSLError():
            return _tls_words(str(error))
        case transport.LocationValueError():
            return "the API server's address is not a URL"
        case transport.HTTPError() | OSError():
            return "the connection to the API server broke off"
        case JSONDecodeError() | UnicodeDecodeError():
            return "the answer is not JSON"
        case _:
            # As of http.client, which would repeat the header, and so the token.
            return "the request cannot be sent: the token has characters that no header may have"


def _system_words(error: BaseException) -> str:
    """What the operating system says, such as "connection refused"."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__
    text = (cause.strerror if cause is not None else None) or "it cannot be reached"
    return text[0].lower() + text[1:]


def _tls_words(text: str) -> str:
    found = re.search(r"certificate verify failed: ([^(]+)", text)
    if found:
        return f"TLS: the API server's certificate is not trusted: {found[1].strip()}"
    found = re.search(r"\[SSL[^\]]*\] ([^(]+)", text)
    return f"TLS: no secure connection to the API server{f': {found[1].strip()}' if found else ''}"


def _message(body: Any, secrets: Collection[str]) -> str:
    """The message of a Status object, in one line."""
    try:
        status = json.loads(body or b"")
    except (ValueError, TypeError):
        return ""
    text = status.get("message") if isinstance(status, dict) else None
    return one_line(text, secrets) if isinstance(text, str) else ""


def one_line(text: str, secrets: Collection[str] = ()) -> str:
    """At most 300 characters, without line breaks and credentials, which servers may repeat."""
    joined = " ".join(text.split())
    for secret in sorted(secrets, key=len, reverse=True):
        joined = joined.replace(secret, "***")
    joined = re.sub(r"\b(bearer|basic) \S+", r"\1 ***", joined, flags=re.IGNORECASE)
    return joined if len(joined) <= MOST_WORDS else f"{joined[: MOST_WORDS - 1]}…"
