"""What probes and Prometheus ask: /healthz, its two parts, and /metrics."""

from __future__ import annotations

from typing import Any

from django.db import DatabaseError, InterfaceError
from django.http import HttpResponse
from prometheus_client import CONTENT_TYPE_LATEST
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response

from sizing.api.metrics.values import exposition
from sizing.api.permissions import ModelPermissions, demand
from sizing.api.views.base import DeskView
from sizing.models import ServedModel, Target
from sizing.services.database import lacks_tables
from sizing.services.watching import readiness, workers
from sizing.syncing import state as sync_state

RETRY = {"Retry-After": "5"}


class _AnyMedia(BaseContentNegotiation):
    """Probes ask for media types of their own; they get what there is."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


class _Probe(DeskView):
    """Needs no sign-in and is not counted; what it tells holds no secret."""

    authentication_classes = []
    permission_classes = []
    throttle_classes = []
    content_negotiation_class = _AnyMedia
    schema: Any = None


class Health(_Probe):
    """200 while web and database work; queues without a worker and a sync that fails are named, no more.

    Why it fails stands on pages that need a sign-in.
    """

    def get(self, request: Request) -> Response:
        try:
            serving = workers.serving(workers.workers())
            cluster = sync_state.look()
        except (DatabaseError, InterfaceError) as error:
            database = "not migrated" if lacks_tables(error) else "away"
            away = {"status": "unavailable", "database": database, "worker": "unknown"}
            return Response(away, status=503, headers=RETRY)
        sync = {"cluster": cluster.trouble or "ok"} if cluster.configured else {}
        unserved = [queue for queue, number in serving.items() if not number]
        worker = {"worker": "missing", "queues": unserved} if unserved else {"worker": "ok"}
        return Response({"status": "ok", "database": "ok", **worker, **sync})


class Live(_Probe):
    """200 while this process answers; asks nothing else, so that a database away restarts no process."""

    def get(self, request: Request) -> Response:
        return Response({"status": "ok"})


class Ready(_Probe):
    """200 while this process can answer questions, else 503; names all that is wrong.

    A worker or a broker that is missing leaves it ready, though `limited`: pages and answers work without.
    """

    def get(self, request: Request) -> Response:
        found = readiness.checks()
        unfit = any(check.needed for check in found)
        reasons = [check.why for check in found if check.why]
        status = "unavailable" if unfit else "limited" if reasons else "ready"
        words = {check.name: check.word for check in found}
        body = {"status": status, "checks": words, "reasons": reasons}
        return Response(body, status=503, headers=RETRY) if unfit else Response(body)


class _MayWatch(ModelPermissions):
    """It names models and targets, so it is for those who may view both."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return demand(request, ("view", ServedModel), ("view", Target))


class Metrics(DeskView):
    """What `sizing.api.metrics` lists, in the text form of Prometheus; needs a token or a session."""

    permission_classes = [_MayWatch]
    content_negotiation_class = _AnyMedia
    schema: Any = None

    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)


healthz = Health.as_view()
live = Live.as_view()
ready = Ready.as_view()
metrics = Metrics.as_view()
