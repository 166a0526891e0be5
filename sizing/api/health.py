"""What probes and Prometheus ask: /healthz and /metrics."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.models import Count, Max
from django.http import HttpResponse
from django.utils import timezone
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response

from sizing.api.permissions import SignedIn
from sizing.api.views.base import DeskView
from sizing.models import Gpu, InventoryChange, Node, Refresh, Replica, WorkerBeat
from sizing.services.database import lacks_tables
from sizing.syncing import state as sync_state

WORKER_SILENT_AFTER = timedelta(seconds=60)


class _AnyMedia(BaseContentNegotiation):
    """Probes ask for media types of their own; they get what there is."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


class Health(DeskView):
    """200 while web and database work; a missing worker or a cluster sync that fails is named, no more.

    Why it fails stands on pages that need a sign-in.
    """

    authentication_classes = []
    permission_classes = []
    throttle_classes = []
    content_negotiation_class = _AnyMedia
    schema: Any = None

    def get(self, request: Request) -> Response:
        try:
            seen = WorkerBeat.objects.aggregate(last=Max("seen_at"))["last"]
            cluster = sync_state.look()
        except (DatabaseError, InterfaceError) as error:
            database = "not migrated" if lacks_tables(error) else "away"
            away = {"status": "unavailable", "database": database, "worker": "unknown"}
            return Response(away, status=503)
        working = seen is not None and seen > timezone.now() - WORKER_SILENT_AFTER
        sync = {"cluster": cluster.trouble or "ok"} if cluster.configured else {}
        worker = "ok" if working else "missing"
        return Response({"status": "ok", "database": "ok", "worker": worker, **sync})


class Metrics(DeskView):
    """Gauges in the text form of Prometheus; needs a token or a session."""

    permission_classes = [SignedIn]
    content_negotiation_class = _AnyMedia
    schema: Any = None

    def get(self, request: Request) -> HttpResponse:
        registry = CollectorRegistry()
        Gauge("llmgw_nodes", "Nodes", registry=registry).set(Node.objects.count())
        Gauge("llmgw_gpus", "GPUs, slices included", registry=registry).set(Gpu.objects.count())
        replicas = Gauge("llmgw_replicas", "Replicas by state", ["state"], registry=registry)
        refreshes = Gauge("llmgw_refreshes", "Measurement runs by state", ["state"], registry=registry)
        for gauge, table in ((replicas, Replica), (refreshes, Refresh)):
            counts = dict(table.objects.order_by().values_list("state").annotate(number=Count("pk")))
            for state in table.State.values:
                gauge.labels(state).set(counts.get(state, 0))
        revision = InventoryChange.objects.aggregate(last=Max("id"))["last"] or 0
        Gauge("llmgw_inventory_revision", "Grows with every change", registry=registry).set(revision)
        cluster = sync_state.look()
        if cluster.configured:
            failures = Gauge(
                "llmgw_cluster_failures", "Failures of the cluster sync in a row", registry=registry
            )
            failures.set(cluster.failures)
        if cluster.seen_age_s is not None:
            age = Gauge("llmgw_cluster_seen_seconds", "Since the cluster was last seen", registry=registry)
            age.set(cluster.seen_age_s)
        return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


healthz = Health.as_view()
metrics = Metrics.as_view()
