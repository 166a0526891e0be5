"""What is to be downloaded of a measurement: its report, and the result files that it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import content_disposition_header

from sizing.models import BenchFile, BenchImport, Measurement
from sizing.services import reports
from sizing.templatetags.desk import size


@dataclass(frozen=True, slots=True)
class Download:
    """A link to a file. about: what it is, or how large."""

    url: str
    name: str
    about: str


def downloads(measurement: Measurement, levels: bool) -> list[Download]:
    """What a measurement has to be downloaded; levels: whether it has any, for they are the report."""
    report = reverse("measurement-report", kwargs={"id": measurement.pk})
    found = []
    if levels:
        found = [
            Download(f"{report}?as={reports.LLM_D}", "Benchmark Report", "llm-d, JSON"),
            Download(f"{report}?as={reports.CSV}", "Table of levels", "CSV"),
        ]
    files = BenchFile.objects.filter(measurement=measurement)
    return found + [
        Download(
            reverse("admin:sizing_measurement_file", args=[measurement.pk, file.pk]),
            file.name,
            f"as it was given, {size(file.size)}",
        )
        for file in files
    ]


def imported_as(measurement: Measurement) -> BenchImport | None:
    """The import that a measurement came from, where it is still known."""
    return BenchImport.objects.filter(measurement=measurement).only("pk").first()


def file_view(model_admin: Any, request: HttpRequest, pk: int, file: int) -> HttpResponse:
    """A kept file as it came: only to be saved, whatever it says it is."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    row = BenchFile.objects.filter(pk=file, measurement=pk).first()
    if row is None:
        raise Http404
    return HttpResponse(
        row.read(),
        content_type="application/octet-stream",
        # The name is only offered to the browser, which is told elsewhere not to guess what is in the file.
        headers={"Content-Disposition": content_disposition_header(True, row.name) or "attachment"},
    )
