"""What every request passes: who calls, headers, sizes, paths without a slash, a database that is away."""

import logging
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address

from django.conf import settings
from django.contrib.admin.options import TO_FIELD_VAR
from django.core.exceptions import FieldDoesNotExist
from django.db import DataError
from django.http import HttpRequest, HttpResponse

from llmgw_admin.errors import database_away, error_response
from sizing.services.database import unavailable

logger = logging.getLogger(__name__)

GetResponse = Callable[[HttpRequest], HttpResponse]

CONTENT_POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
# Swagger UI draws its icons from data URLs.
DOCS_POLICY = f"{CONTENT_POLICY}; img-src 'self' data:"
DOCS_PATH = "/api/v1/docs"

LARGEST_FORM = 1024 * 1024
"""Of whoever has not signed in; what signed-in people send has the limit of its page."""


class ClientAddress:
    """REMOTE_ADDR is who called the outermost of our own proxies, where there are such.

    What stands further left in X-Forwarded-For is whatever the caller said.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        said = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
        if settings.PROXIES and len(said) >= settings.PROXIES:
            with suppress(ValueError):  # the proxy's own address stays
                request.META["REMOTE_ADDR"] = str(ip_address(said[-settings.PROXIES].strip()))
        return self.get_response(request)


class SecurityHeaders:
    """The headers that Django's own security middleware leaves out."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        docs = request.path.rstrip("/") == DOCS_PATH
        response.headers.setdefault("Content-Security-Policy", DOCS_POLICY if docs else CONTENT_POLICY)
        response.headers.setdefault("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        if not request.path.startswith(settings.STATIC_URL):
            response.headers.setdefault("Cache-Control", "private, no-store")
        return response


class BodyLimit:
    """Nobody who has not signed in makes a process read a large form; the API asks who it is by itself."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or "0"
        small = length.isascii() and length.isdigit() and len(length) < 15 and int(length) <= LARGEST_FORM
        if small or request.path.startswith("/api/") or request.user.is_authenticated:
            return self.get_response(request)
        return error_response(request, 413, "too_large", "the request is too large")


class AdminWithoutSlash:
    """Serves ``/admin/anything`` as ``/admin/anything/``: the admin's own patterns all end in a slash."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if f"{request.path_info}/".startswith("/admin/") and not request.path_info.endswith("/"):
            request.path_info += "/"
            request.path += "/"
        return self.get_response(request)


class DatabaseAway:
    """A database that cannot be reached, is locked for too long, or has no tables, is a 503 that says so."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        away = unavailable(exception)
        if away is None:
            return None
        logger.error("%s %s: %s", request.method, request.path, exception)
        return database_away(request, away)


class NoSuchValue:
    """A value in the admin's addresses and forms that its column cannot hold is a 400.

    The admin's own pages leave no room for such a value, so that it was made by hand; Django takes some of
    them as far as to the query or the widget, and raises there.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not request.path.startswith("/admin/") or not self._of_a_value(request, exception):
            return None
        logger.warning("%s %s: %s", request.method, request.path, exception)
        return error_response(request, 400, "invalid", "the request has a value that its field cannot hold")

    @staticmethod
    def _of_a_value(request: HttpRequest, exception: Exception) -> bool:
        match exception:
            case OverflowError() | DataError():  # a number beyond 64 bits, as SQLite and PostgreSQL say it
                return True
            case ValueError():
                return "expected a number but got" in str(exception)
            case KeyError() | FieldDoesNotExist():
                return request.GET.get(TO_FIELD_VAR) == "" or request.POST.get(TO_FIELD_VAR) == ""
        return False
