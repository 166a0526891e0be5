"""What of the board changes while it is open: for the script that keeps the page current."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from sizing import snapshot
from sizing.admin.board.fleet import fleet_part, may_see_fleet
from sizing.admin.board.targets import HAVE, may_see_targets, targets_part

EVERY_MS = 5000


def fleet_key() -> str:
    """The state of the fleet: another one after every change; empty where nothing tells."""
    revision = snapshot.current().revision
    return "-".join(map(str, revision)) if revision else ""


def live_view(request: HttpRequest) -> HttpResponse:
    """The targets of the board that is asked for by the same query, and its fleet where that changed."""
    if not (may_see_fleet(request) or may_see_targets(request)):
        raise PermissionDenied
    key = fleet_key()
    context = {"fleet_key": key, **targets_part(request)}
    if not key or request.GET.get(HAVE) != key:
        context |= fleet_part(request)
    return TemplateResponse(request, "admin/board/live.html", context)
