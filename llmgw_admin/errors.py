"""Answers to what no view could answer: JSON under ``/api/``, a plain page elsewhere."""

import sys

from django.core.exceptions import DisallowedHost, RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from sizing import log_context
from sizing.services.database import AWAY, unavailable


def error_response(request: HttpRequest, status: int, code: str, message: str) -> HttpResponse:
    """The error in the form that fits the path; needs no database and no session."""
    if request.path == "/api" or request.path.startswith("/api/"):
        return JsonResponse({"error": message, "code": code}, status=status)
    told = {"message": message, "request_id": log_context.request_id()}
    return HttpResponse(render_to_string(f"{status}.html", told), status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, DisallowedHost):
        return error_response(request, 400, "invalid", "ALLOWED_HOSTS does not name this host")
    if isinstance(exception, RequestDataTooBig):
        return error_response(request, 400, "invalid", "the request is too large")
    return error_response(request, 400, "invalid", "the request cannot be understood")


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_response(request, 403, "forbidden", "you are not allowed to do this")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    message = "the form is out of date or came from another site; go back, reload the page and try again"
    return error_response(request, 403, "forbidden", message)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_response(request, 404, "not_found", "there is nothing at this address")


def database_away(request: HttpRequest, message: str = AWAY) -> HttpResponse:
    response = error_response(request, 503, "unavailable", message)
    response.headers["Retry-After"] = "5"
    return response


def server_error(request: HttpRequest) -> HttpResponse:
    # Also where the database fails in a middleware, outside of any view.
    away = unavailable(sys.exception())
    if away:
        return database_away(request, away)
    return error_response(request, 500, "internal", "something went wrong here; the log says what")
