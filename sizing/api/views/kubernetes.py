"""The Kubernetes cluster brought as a list, and where its live sync stands."""

from __future__ import annotations

from typing import cast

from django.contrib.auth.models import User
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.exceptions import UnsupportedMediaType, ValidationError
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from sizing.api.examples import CLUSTER_OUTCOME, CLUSTER_REFUSED
from sizing.api.filters import check_parameters
from sizing.api.permissions import demand
from sizing.api.schema import ERRORS
from sizing.api.serializers import (
    ClusterOutcomeSerializer,
    ClusterStateSerializer,
    ErrorSerializer,
)
from sizing.api.views.base import DeskView
from sizing.api.views.inventory import MEDIA_TYPES, RawDocument, body_of
from sizing.models import ClusterImport, Gpu, Node, Replica, ServedModel, Variant
from sizing.services import cluster_imports, kubernetes
from sizing.syncing import state

TABLES = (Node, Gpu, ServedModel, Variant, Replica)
"""What an import writes."""

PARAMETERS = ("dry_run", "partial")
GZIP = ("application/gzip", "application/x-gzip")


class ClusterPermissions(BasePermission):
    """View to look, and with dry_run; add, change and delete to import, on every table that it writes."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if request.method == "OPTIONS":
            return demand(request)
        looks = request.method in ("GET", "HEAD") or request.query_params.getlist("dry_run") == ["1"]
        verbs = ("view",) if looks else ("add", "change", "delete")
        return demand(request, *((verb, table) for table in TABLES for verb in verbs))


class Cluster(DeskView):
    """The cluster's own account of itself, as `kubectl get -o json` prints it."""

    permission_classes = [ClusterPermissions]
    parser_classes = [RawDocument]

    @extend_schema(
        operation_id="inventory_kubernetes_state",
        responses={
            200: OpenApiResponse(ClusterStateSerializer, description="The state."),
            400: OpenApiResponse(ErrorSerializer, description=ERRORS["400"]),
        },
    )
    def get(self, request: Request) -> Response:
        """Where the sync with the live cluster stands, and what was imported last."""
        check_parameters(request, ())
        last = ClusterImport.objects.filter(state=ClusterImport.State.DONE).defer("body", "report")
        imported = last.select_related("requested_by").order_by("-finished_at", "-pk").first()
        return Response(ClusterStateSerializer({"sync": state.look(), "last_import": imported}).data)

    @extend_schema(
        operation_id="inventory_kubernetes_import",
        parameters=[
            OpenApiParameter(
                "dry_run", str, enum=["0", "1"], description="1: tell what would change; change nothing."
            ),
            OpenApiParameter(
                "partial",
                str,
                enum=["0", "1"],
                description="1: take an incomplete list, or nodes without pods: what it leaves out stays.",
            ),
        ],
        request={
            "application/json": OpenApiTypes.OBJECT,
            "application/yaml": OpenApiTypes.OBJECT,
            "application/gzip": OpenApiTypes.BINARY,
        },
        responses={
            200: OpenApiResponse(
                ClusterOutcomeSerializer,
                description="The list is imported, or with dry_run looked at.",
                examples=[CLUSTER_OUTCOME],
            ),
            400: OpenApiResponse(
                ErrorSerializer,
                description="It cannot be read, or is incomplete, or has nodes without pods; nothing was "
                "changed: `invalid`.",
                examples=[CLUSTER_REFUSED],
            ),
        },
    )
    def post(self, request: Request) -> Response:
        """Import what `kubectl get nodes,pods,pdb -A -o json` prints: all of it, or nothing.

        JSON or YAML by its content, also in gzip, up to 100 MiB. Nodes of the cluster that a whole list
        leaves out go; what people made by hand stays.
        """
        check_parameters(request, PARAMETERS)
        media_type = request._request.content_type or ""
        if media_type and media_type not in (*MEDIA_TYPES, *GZIP):
            raise UnsupportedMediaType(media_type)
        dry_run, partial = (_flag(request, name) for name in PARAMETERS)
        body = body_of(request)
        listing = kubernetes.read(body)
        if dry_run:
            outcome = kubernetes.consider(listing, partial=partial)
        else:
            outcome = kubernetes.bring(listing, partial=partial)
            cluster_imports.note(
                outcome,
                name="sent to the API",
                size=len(body),
                partial=partial,
                trigger=ClusterImport.Trigger.API,
                user=cast(User, request.user),
            )
        return Response({"dry_run": dry_run, **outcome.as_json()})


def _flag(request: Request, name: str) -> bool:
    given = request.query_params.getlist(name) or ["0"]
    if given not in (["0"], ["1"]):
        raise ValidationError({name: ["must be 0 or 1"]})
    return given == ["1"]
