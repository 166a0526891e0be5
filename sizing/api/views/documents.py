"""The OpenAPI document, its page, and addresses that lead nowhere."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest
from drf_spectacular.renderers import (
    OpenApiJsonRenderer,
    OpenApiJsonRenderer2,
    OpenApiYamlRenderer,
    OpenApiYamlRenderer2,
)
from drf_spectacular.utils import OpenApiResponse, extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.renderers import TemplateHTMLRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from sizing.api.permissions import SignedIn
from sizing.api.views.base import DeskView

COLLECTIONS = (
    "models",
    "profiles",
    "variants",
    "nodes",
    "replicas",
    "measurements",
    "targets",
    "refreshes",
    "imports",
    "answers",
)


class Root(DeskView):
    """Where the collections are."""

    permission_classes = [SignedIn]

    @extend_schema(
        operation_id="root",
        tags=["root"],
        summary="The addresses of the collections",
        responses={
            200: OpenApiResponse(
                {"type": "object", "additionalProperties": {"type": "string", "format": "uri"}},
                description="Addresses by name.",
            )
        },
    )
    def get(self, request: Request) -> Response:
        """The address of every collection by its name."""
        here = request.build_absolute_uri(f"{request.path.rstrip('/')}/")
        return Response({name: f"{here}{name}" for name in COLLECTIONS})


class Schema(DeskView, SpectacularAPIView):
    """The OpenAPI document."""

    permission_classes = [SignedIn]
    renderer_classes = [OpenApiYamlRenderer, OpenApiYamlRenderer2, OpenApiJsonRenderer, OpenApiJsonRenderer2]
    schema: Any = None


class Docs(DeskView, SpectacularSwaggerSplitView):
    """The page of the OpenAPI document."""

    permission_classes = [SignedIn]
    renderer_classes = [TemplateHTMLRenderer]
    url_name = "schema"
    schema: Any = None


class Nowhere(DeskView):
    """Any other address: 401 without sign-in, then 404 for every method."""

    permission_classes = [SignedIn]
    schema: Any = None

    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        raise Http404

    options = http_method_not_allowed
