"""Result files that people already have: sent, looked at, and stored as a measurement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from django.contrib.auth.models import User
from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from sizing.api.examples import BROKEN_FILES, IMPORT_QUEUED, PREVIEW
from sizing.api.filters import ImportFilter, check_parameters
from sizing.api.parsers import UploadParser
from sizing.api.serializers import (
    ErrorSerializer,
    ImportDetailSerializer,
    ImportSerializer,
    MeasurementSerializer,
    PreviewSerializer,
    StoredSerializer,
    UploadSerializer,
)
from sizing.api.views.base import Collection, DeskView, by
from sizing.measuring.importing.finding import shown
from sizing.models import BenchImport, Measurement
from sizing.services import imports
from sizing.services.imports import Upload

_ROWS = BenchImport.objects.select_related("variant__model", "profile", "requested_by", "measurement")
IMPORTS = _ROWS.defer("finding").prefetch_related("files", "measurement__files")
MEASUREMENTS = Measurement.objects.select_related("variant__model", "profile").prefetch_related("levels")

STORED = OpenApiResponse(
    StoredSerializer, description="The measurement is stored; Location is its address. The files are kept."
)


class ImportFiles(DeskView):
    """Result files of the usual load generators, in one form."""

    queryset = Measurement.objects.none()
    parser_classes = [UploadParser]

    @extend_schema(
        operation_id="measurements_import",
        summary="Store a measurement from result files, or look at them",
        request={"multipart/form-data": UploadSerializer},
        responses={
            200: OpenApiResponse(
                PreviewSerializer, description="With dry_run: what the files say.", examples=[PREVIEW]
            ),
            201: STORED,
            202: OpenApiResponse(
                ImportDetailSerializer,
                description="More than 5 MiB in all once unpacked, or YAML or other text than JSON above "
                "256 KiB: a worker reads them. Location is the import's address, "
                "to be polled until it is stored, done or failed.",
                examples=[IMPORT_QUEUED],
            ),
            400: OpenApiResponse(
                ErrorSerializer,
                description="Nothing was stored: `fields` has each broken file by its name. Also "
                "`unknown_variant`, `unknown_profile`, `profile_required`, `invalid`.",
                examples=[BROKEN_FILES],
            ),
            404: OpenApiResponse(ErrorSerializer, description="There is no such model: `not_found`."),
        },
    )
    def post(self, request: Request) -> Response:
        """Up to 100 files of 50 MiB each and 200 MiB in all form one sweep.

        Which load generator wrote them is found by content. Nothing is stored until all files are right, or
        the broken ones are left out on purpose; a file that is of another shape than the profile is refused
        unless forced. A large upload is stored by a worker, if it is right and dry_run is not true. The
        permission to add measurements is needed for a dry run too.
        """
        check_parameters(request, ())
        given = _form(request)
        dry_run = given["dry_run"]
        wanted = imports.wish(
            given["model"],
            given["variant"],
            given["profile"],
            force=given["force"],
            leave_out_broken=given["leave_out_broken"],
            measured_at=given["measured_at"],
            to_store=not dry_run,
        )
        uploads = [_upload(file) for file in given["file"]]
        imports.check_sizes(uploads)
        if dry_run and not imports.is_large(uploads):
            considered = imports.look_at(imports.read_all(uploads), wanted)
            return Response(shown(considered, timezone.now()))
        row = imports.take(
            uploads,
            wanted,
            trigger=BenchImport.Trigger.API,
            user=cast(User, request.user),
            to_store=not dry_run,
        )
        if row.measurement_id is not None:
            return stored(row)
        location = reverse("import-detail", kwargs={"id": row.pk})
        body = ImportDetailSerializer(IMPORTS.get(pk=row.pk)).data
        return Response(body, status=202, headers={"Location": location})


def stored(row: BenchImport) -> Response:
    """201: the measurement that was stored, and what its files said."""
    measurement = MEASUREMENTS.get(bench_import=row)
    location = reverse("measurement-detail", kwargs={"id": measurement.pk})
    body = {"measurement": MeasurementSerializer(measurement).data, "preview": row.preview}
    return Response(body, status=201, headers={"Location": location})


def _form(request: Request) -> dict[str, Any]:
    """The fields of the form; ValidationError where one is unknown, wrong, or there twice."""
    form: dict[str, Any] = {}
    problems: dict[str, list[str]] = {}
    # Without a body there is no form at all.
    given = request.data.lists() if isinstance(request.data, QueryDict) else ()
    for name, values in given:
        if name != "file" and len(values) > 1:
            problems[name] = ["is given more than once"]
        form[name] = values if name == "file" else values[0]
    if problems:
        raise ValidationError(problems)
    serializer = UploadSerializer(data=form)
    serializer.is_valid(raise_exception=True)
    found: dict[str, Any] = serializer.validated_data
    return found


def _upload(file: Any) -> Upload:
    @contextmanager
    def opened() -> Iterator[BinaryIO]:
        """Left open, for a temporary file is gone once it is closed."""
        file.seek(0)
        yield cast(BinaryIO, file)

    return Upload(file.name or "file", file.size or 0, opened)


class Imports(Collection):
    """Result files given together; `measurements/import` makes one."""

    queryset = IMPORTS
    permission_table = Measurement
    permission_for = {"store": ("add", Measurement)}
    filterset_class = ImportFilter
    search_fields = ["variant__model__name", "variant__name", "profile__name"]
    ordering_fields = ["queued_at", "finished_at", "state"]
    lookup_field = lookup_url_kwarg = "id"
    lookup_value_regex = "[^/]+"
    noun = "import"

    def get_serializer_class(self) -> Any:
        return ImportSerializer if self.action == "list" else ImportDetailSerializer

    def get_queryset(self) -> Any:
        found = super().get_queryset()
        return found.defer("preview", "finding") if self.action == "list" else found

    @extend_schema(
        summary="Look at an import",
        responses={200: OpenApiResponse(ImportDetailSerializer, description="The import.")},
    )
    def retrieve(self, request: Request, **kwargs: str) -> Response:
        """How far it is, and once its files are read, what they say.

        An import that is never stored is deleted with its files after seven days.
        """
        return super().retrieve(request, **kwargs)

    @extend_schema(
        summary="Store what was found",
        request=None,
        responses={
            201: STORED,
            409: OpenApiResponse(
                ErrorSerializer,
                description="It is not read yet, is stored already, or is refused: `conflict`.",
            ),
        },
    )
    @action(detail=True, methods=["post"], filterset_class=None)
    def store(self, request: Request, id: str) -> Response:
        """Store the measurement of an import that was read, by the profile as it was then."""
        row = self.get_object()
        check_parameters(request, ())
        imports.store(row.pk, by(request))
        row.refresh_from_db()
        return stored(row)
