"""A line in the log for every request, and the id that its lines, its answer and its tasks have in common."""

import logging
import re
import time
import uuid
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject
from django.utils.log import log_response

from sizing import log_context, tally

logger = logging.getLogger("llmgw_admin.access")

HEADER = "X-Request-Id"
MOST_OF_A_PATH = 500
A_DIGEST = re.compile("(?<=[0-9a-f]{8})[0-9a-f]{56,}")  # of a token, whose row it names in the admin
METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
# Asked for all day by machines and by every page: a line only where something is wrong.
QUIET = ("/healthz", "/static/")


class RequestLog:
    """The first middleware: a request has an id from here on, the caller's where that is a plain word."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = log_context.valid_request_id(request.headers.get(HEADER))
        request_id = given or uuid.uuid4().hex
        path, method = A_DIGEST.sub("…", request.path)[:MOST_OF_A_PATH], request.method or ""
        begun = time.perf_counter()
        with log_context.telling(request_id=request_id, method=method, path=path):
            response = self.get_response(request)
            seconds = time.perf_counter() - begun
            self._note(request, path, response.status_code, seconds)
            if response.status_code >= 400:  # Django would do it too, but only once the id is forgotten
                log_response("%s: %s", response.reason_phrase, path, response=response, request=request)
        response.headers[HEADER] = request_id
        return response

    @staticmethod
    def _note(request: HttpRequest, path: str, status: int, seconds: float) -> None:
        method = request.method if request.method in METHODS else "other"
        route = _route(request)
        tally.count("llmgw_http_requests_total", route=route, method=method or "", status=str(status))
        tally.took("llmgw_http_request_seconds", seconds, route=route)
        quiet = status < 400 and path.startswith(QUIET)
        fields = {"status": status, "duration_ms": round(seconds * 1000, 1), "user": _user(request)}
        logger.log(
            logging.DEBUG if quiet else logging.INFO,
            "%s %s %d %.1f ms",
            request.method,
            path,
            status,
            seconds * 1000,
            extra={"fields": {name: value for name, value in fields.items() if value != ""}},
        )


def _route(request: HttpRequest) -> str:
    """The name of the address that it came to, not the address itself, of which there are any number."""
    match = request.resolver_match
    if match is not None:
        return match.view_name if match.url_name else "nowhere"
    return "static" if request.path.startswith("/static/") else "nowhere"


def _user(request: HttpRequest) -> str:
    """Who asked, where that has been found out; a session that nobody looked into is not read for this."""
    user: Any = getattr(request, "user", None)
    if isinstance(user, SimpleLazyObject):
        user = getattr(request, "_cached_user", None)
    return str(user.get_username()) if user is not None and user.is_authenticated else ""
