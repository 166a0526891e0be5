"""What every view of the API shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast
from urllib.parse import quote

from django.contrib.auth.models import User
from django.db.models import Model, QuerySet
from django_filters.rest_framework import DjangoFilterBackend  # type: ignore[import-untyped]
from rest_framework.exceptions import AuthenticationFailed, NotFound, ParseError, Throttled
from rest_framework.filters import SearchFilter
from rest_framework.metadata import SimpleMetadata
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from sizing.api.authentication import BearerAuthentication, SessionAuthentication, check_scope
from sizing.api.etags import check_match, etag_of, unchanged
from sizing.api.filters import StableOrdering, check_parameters
from sizing.api.paging import Pages
from sizing.api.parsers import ExactJSONParser, UploadParser
from sizing.api.permissions import ModelPermissions
from sizing.api.schema import DeskSchema
from sizing.api.throttling import AnonymousThrottle, SignedInThrottle
from sizing.models.history import API, By
from sizing.services import editing


class Outline(SimpleMetadata):
    """What OPTIONS tells: the name and the media types; the OpenAPI document tells the rest."""

    def determine_metadata(self, request: Request, view: APIView) -> dict[str, Any]:
        return {
            "name": view.get_view_name(),
            "description": view.get_view_description(),
            "renders": [renderer.media_type for renderer in view.renderer_classes],
            "parses": [parser.media_type for parser in view.parser_classes],
        }


class DeskView(APIView):
    """A view that checks who asks before anything else, and whose errors are JSON whatever it renders."""

    authentication_classes = [BearerAuthentication, SessionAuthentication]
    permission_classes = [ModelPermissions]
    throttle_classes = [SignedInThrottle, AnonymousThrottle]
    renderer_classes = [JSONRenderer]
    parser_classes = [ExactJSONParser]
    metadata_class = Outline
    schema = DeskSchema()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Sign-in, rate, permission, and only then what is asked."""
        try:
            self.perform_authentication(request)
        except AuthenticationFailed:
            self._count_stranger(request)
            raise
        self.check_throttles(request)
        check_scope(request)
        self.check_permissions(request)
        self.format_kwarg = None
        request.accepted_renderer, request.accepted_media_type = self.perform_content_negotiation(request)
        request.version, request.versioning_scheme = self.determine_version(request, *args, **kwargs)
        parsed = {ExactJSONParser, UploadParser} & set(self.parser_classes)
        if parsed and _is_of_untold_length(request):
            raise ParseError("send the body with its Content-Length")

    def _count_stranger(self, request: Request) -> None:
        """A wrong token counts against its address."""
        throttle = AnonymousThrottle()
        if not throttle.allow_address(request):
            raise Throttled(throttle.wait())

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(response, "exception", False) or request.method == "OPTIONS":
            request.accepted_renderer, request.accepted_media_type = JSONRenderer(), JSONRenderer.media_type
        final = super().finalize_response(request, response, *args, **kwargs)
        if isinstance(final, Response):
            final.add_post_render_callback(_let_go_of_data)
        return final


def _let_go_of_data(response: Response) -> None:
    """View, request and response refer to each other: what was rendered would stay until a collection."""
    response.data = None


def _is_of_untold_length(request: Request) -> bool:
    """Whether the body comes in chunks: parsing would take it for none at all."""
    return "chunked" in request.headers.get("Transfer-Encoding", "") and not request.META.get(
        "CONTENT_LENGTH"
    )


def by(request: Request) -> By:
    """Who changes something by the API, for the history."""
    return By(API, cast(User, request.user))


LIST_PARAMETERS = ("page", "page_size", "search", "ordering")


class Collection(DeskView, GenericViewSet):  # type: ignore[type-arg]
    """A collection to read: lists in pages, objects by name or id."""

    filter_backends = [DjangoFilterBackend, SearchFilter, StableOrdering]
    pagination_class = Pages
    by_name: ClassVar[bool] = False
    by_id: ClassVar[bool] = True
    noun: ClassVar[str]
    name_help: ClassVar[str] = "Name, or id."
    filterset_class: Any

    def get_object(self) -> Any:
        """The object of the address: by its exact name first, then by its id."""
        key = self.kwargs.get("name") or self.kwargs.get("id") or ""
        found = self._find(self.get_queryset(), key)
        if found is None:
            raise NotFound(f'no {self.noun} "{key}"')
        return found

    def _find(self, rows: QuerySet[Any], key: str) -> Any:
        if "\0" in key:
            return None
        if self.by_name:
            found = rows.filter(name=key).first()
            if found or not self.by_id:
                return found
        return rows.filter(pk=int(key)).first() if key.isascii() and key.isdigit() and len(key) < 19 else None

    def list(self, request: Request) -> Response:
        check_parameters(request, [*LIST_PARAMETERS, *self.filterset_class.base_filters])
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def retrieve(self, request: Request, **kwargs: str) -> Response:
        return Response(self.get_serializer(self.get_object()).data)


class EditableCollection(Collection):
    """A collection that is written too, through `sizing.services.editing`.

    Objects have an ETag; a write that names one in If-Match is refused where the object has another by now.
    """

    has_etags: ClassVar[bool] = True

    @property
    def table(self) -> type[Model]:
        return self.get_queryset().model

    def create(self, request: Request) -> Response:
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        row = self.get_queryset().get(pk=editing.save(self.table, serializer.validated_data, by=by(request)))
        location = f"{request.path.rstrip('/')}/{quote(self._key(row), safe='/:')}"
        return self._answer(row, status=201, headers={"Location": location})

    def retrieve(self, request: Request, **kwargs: str) -> Response:
        return self._answer(self.get_object())

    def update(self, request: Request, **kwargs: str) -> Response:
        return self._change(request, partial=False)

    def partial_update(self, request: Request, **kwargs: str) -> Response:
        return self._change(request, partial=True)

    def destroy(self, request: Request, **kwargs: str) -> Response:
        row = self.get_object()
        with unchanged(request, self):
            editing.remove(self.table, row.pk, by=by(request))
        return Response(status=204)

    def _change(self, request: Request, partial: bool) -> Response:
        row = self.get_object()
        check_match(request, self, row)
        serializer = self.get_serializer(data=request.data, partial=partial)
        serializer.is_valid(raise_exception=True)
        with unchanged(request, self):
            pk = editing.save(self.table, serializer.validated_data, row.pk, by=by(request))
        return self._answer(self.get_queryset().get(pk=pk))

    def _answer(self, row: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        serializer = self.get_serializer(row)
        return Response(serializer.data, status, headers={"ETag": etag_of(serializer), **(headers or {})})

    def _key(self, row: Any) -> str:
        return str(row.name if self.by_name else row.pk)
