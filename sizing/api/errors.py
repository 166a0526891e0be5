"""Every error of the API in one form: {"error", "code"}, and "fields" where fields are wrong."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from django.core.exceptions import (
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.core.exceptions import (
    ValidationError as DjangoValidationError,
)
from django.db import DatabaseError, IntegrityError, InterfaceError
from django.http import Http404, UnreadablePostError
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.serializers import as_serializer_error
from rest_framework.views import set_rollback

from sizing.services.database import unavailable
from sizing.services.errors import DeskError

logger = logging.getLogger(__name__)

CODES = {
    400: "invalid",
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    429: "throttled",
    503: "unavailable",
}


class TooLarge(exceptions.APIException):
    """The body is larger than this address takes."""

    status_code = 413
    default_code = "too_large"
    default_detail = "the body is too large"


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Turn what a view raised into the answer, or None for what nobody expected (a 500 with a log entry)."""
    response = _response(exc)
    if response is not None:
        set_rollback()
    return response


def _response(exc: Exception) -> Response | None:
    match exc:
        case DeskError():
            headers = {"Retry-After": "5"} if exc.status == 503 else {}
            return _error(exc.message, exc.status, exc.code, exc.fields, headers)
        case exceptions.ValidationError():
            return invalid(flatten(exc.detail))
        case DjangoValidationError():
            return invalid(flatten(as_serializer_error(exc)))
        case exceptions.Throttled():
            wait = max(int(getattr(exc, "wait", None) or 1), 1)
            message = f"too many requests; try again in {wait} s"
            return _error(message, 429, headers={"Retry-After": str(wait)})
        case exceptions.NotAuthenticated():
            message = "sign in first: send a token (Authorization: Bearer llmgw_...) or a session"
            return _error(message, exc.status_code, headers=_challenge(exc))
        case exceptions.AuthenticationFailed():
            return _error(_sentence(exc.detail), exc.status_code, headers=_challenge(exc))
        case exceptions.APIException():
            return _error(_sentence(exc.detail), exc.status_code)
        case Http404():
            return _error("there is nothing at this address", 404)
        case PermissionDenied():
            return _error(str(exc) or "you are not allowed to do this", 403)
        case RequestDataTooBig():
            return _error("the body is too large", 413)
        case UnreadablePostError():
            return _error("the body could not be read to its end", 400)
        case SuspiciousOperation():
            return _error("the request cannot be understood", 400)
        case IntegrityError():
            return _error("somebody else changed this meanwhile; read it again and retry", 409)
        case DatabaseError() | InterfaceError() | OSError() if away := unavailable(exc):
            logger.error("the database failed: %s", " ".join(str(exc).split()))
            return _error(away, 503, headers={"Retry-After": "5"})
    return None


def invalid(fields: dict[str, list[str]]) -> Response:
    """A 400 whose message names the first wrong field."""
    path, messages = next(iter(fields.items()), ("", ["the request is invalid"]))
    message = f"{path}: {messages[0]}" if path else messages[0]
    return _error(message, 400, fields=fields)


def flatten(detail: Any, path: str = "") -> dict[str, list[str]]:
    """Nested field errors as messages by path: `gpus[0].type`."""
    found: dict[str, list[str]] = {}
    for place, message in _walk(detail, path):
        found.setdefault(place, []).append(message)
    return found


def _walk(detail: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(detail, dict):
        for key, value in detail.items():
            if key in ("non_field_errors", "__all__"):
                yield from _walk(value, path)
            elif isinstance(key, int):
                yield from _walk(value, f"{path}[{key}]")
            elif key == "" or key.startswith("["):
                yield from _walk(value, f"{path}{key}")
            else:
                yield from _walk(value, f"{path}.{key}" if path else str(key))
    elif isinstance(detail, (list, tuple)):
        for index, value in enumerate(detail):
            yield from _walk(value, f"{path}[{index}]" if isinstance(value, dict) else path)
    else:
        yield path, " ".join(str(detail).split())


def _sentence(detail: Any) -> str:
    return next((message for _, message in _walk(detail, "")), "the request failed")


def _challenge(exc: exceptions.APIException) -> dict[str, str]:
    return {"WWW-Authenticate": getattr(exc, "auth_header", None) or "Bearer"}


def _error(
    message: str,
    status_code: int,
    code: str | None = None,
    fields: dict[str, list[str]] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    body: dict[str, Any] = {"error": message, "code": code or CODES.get(status_code, "invalid")}
    named = {path: messages for path, messages in (fields or {}).items() if path}
    if named:
        body["fields"] = named
    return Response(body, status=status_code, headers=headers)
