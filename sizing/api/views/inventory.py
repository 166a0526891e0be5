"""The whole inventory as one document."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth.models import User
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.exceptions import UnsupportedMediaType, ValidationError
from rest_framework.parsers import BaseParser
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from sizing.api.errors import TooLarge
from sizing.api.filters import check_parameters
from sizing.api.permissions import demand
from sizing.api.schema import ERRORS
from sizing.api.serializers import ErrorSerializer, InventoryReportSerializer, InventorySerializer
from sizing.api.views.base import DeskView
from sizing.inventory.reading import LARGEST_DOCUMENT
from sizing.models import InventoryLoad
from sizing.services import inventory, inventory_loads
from sizing.services.inventory_loads import TABLES

# None at all too; the form type is what curl says of a file unless told otherwise.
MEDIA_TYPES = (
    "application/json",
    "application/yaml",
    "application/x-yaml",
    "text/yaml",
    "text/plain",
    "application/octet-stream",
    "application/x-www-form-urlencoded",
)
UNNAMED = "a document"
"""How the history calls what comes without a name."""


class InventoryPermissions(BasePermission):
    """View, or add and change, and to replace also delete, on every table of the inventory."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if request.method == "OPTIONS":
            return demand(request)
        if request.method != "PUT":
            return demand(request, *(("view", table) for table in TABLES))
        verbs = ["add", "change"] + (["delete"] if request.query_params.get("replace", "0") != "0" else [])
        return demand(request, *((verb, table) for table in TABLES for verb in verbs))


class RawDocument(BaseParser):
    """The document says by its content, not by its media type, whether it is JSON or YAML."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> dict[str, Any]:
        """No fields: a session's check against forgery asks for them. The body stays to be read."""
        return {}


class InventoryDocument(DeskView):
    """The whole inventory, in the form of the inventory file."""

    permission_classes = [InventoryPermissions]
    parser_classes = [RawDocument]

    @extend_schema(
        operation_id="inventory_dump",
        responses={
            200: OpenApiResponse(InventorySerializer, description="The document."),
            400: OpenApiResponse(ErrorSerializer, description=ERRORS["400"]),
        },
    )
    def get(self, request: Request) -> HttpResponse:
        """The inventory as JSON; loading it again changes nothing."""
        check_parameters(request, ())
        return HttpResponse(inventory.dump_text("json"), content_type="application/json")

    @extend_schema(
        operation_id="inventory_load",
        parameters=[
            OpenApiParameter(
                "replace", str, enum=["0", "1"], description="1: what the document leaves out is removed."
            )
        ],
        request={"application/json": InventorySerializer, "application/yaml": InventorySerializer},
        responses={
            200: OpenApiResponse(InventoryReportSerializer, description="The document is loaded."),
            400: OpenApiResponse(
                ErrorSerializer, description="Nothing was changed; `fields` has every error."
            ),
        },
    )
    def put(self, request: Request) -> Response:
        """Load a document of up to 100 MiB, JSON or YAML by its content: all of it, or nothing."""
        check_parameters(request, ["replace"])
        media_type = request._request.content_type or ""
        if media_type and media_type not in MEDIA_TYPES:
            raise UnsupportedMediaType(media_type)
        replace = request.query_params.getlist("replace") or ["0"]
        if replace not in (["0"], ["1"]):
            raise ValidationError({"replace": ["must be 0 or 1"]})
        done = inventory_loads.load(
            body_of(request),
            replace == ["1"],
            name=UNNAMED,
            trigger=InventoryLoad.Trigger.API,
            user=cast(User, request.user),
        )
        return Response(done.as_json())


def body_of(request: Request) -> bytes:
    """The raw body of up to 100 MiB, also where it comes in chunks of no announced length."""
    raw = request._request
    if "CONTENT_LENGTH" not in raw.META or not raw.META["CONTENT_LENGTH"]:
        if raw.META.get("wsgi.input_terminated") and "chunked" in raw.headers.get("Transfer-Encoding", ""):
            body: bytes = raw.META["wsgi.input"].read(LARGEST_DOCUMENT + 1)
        else:
            body = b""
    elif int(raw.META["CONTENT_LENGTH"]) > LARGEST_DOCUMENT:
        raise TooLarge("the document is larger than 100 MiB")
    else:
        body = raw.body
    if len(body) > LARGEST_DOCUMENT:
        raise TooLarge("the document is larger than 100 MiB")
    return body
