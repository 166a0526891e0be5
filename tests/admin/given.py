"""Result files, as a browser gives them to the import page, and what people do with them there."""

from __future__ import annotations

import json
from html import unescape
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile, UploadedFile
from django.http import HttpResponse
from django.test import Client

from sizing.models import BenchImport, BenchProfile, Variant
from tests.admin.test_measurement_page import words
from tests.files.builders import vllm

GIVE = "/admin/sizing/benchimport/add/"
LIST = "/admin/sizing/benchimport/"
ACTS = ("store", "leave-out", "force", "discard")

Given = tuple[str, Any]

BROKEN: Given = ("cut.json", '{"model_id": "sim-8b", "num_prompts": [1')
PASSES: Given = ("c8.json", vllm())
FAILS: Given = (
    "c16.json",
    vllm(
        max_concurrency=16,
        output_throughput=400.0,
        request_throughput=12.5,
        completed=125,
        total_output_tokens=4000,
        total_input_tokens=8000,
        median_tpot_ms=60.0,
        mean_tpot_ms=60.0,
        p95_tpot_ms=75.0,
        p99_tpot_ms=80.0,
    ),
)
OTHER_SHAPE: Given = ("long.json", vllm(max_concurrency=4, total_input_tokens=80 * 100))


def files(*given: Given) -> list[UploadedFile[Any]]:
    """Files as a browser sends them."""

    def content(document: Any) -> bytes:
        return (document if isinstance(document, str) else json.dumps(document)).encode()

    return [SimpleUploadedFile(name, content(document)) for name, document in given]


def give(client: Client, variant: Variant, on: BenchProfile, /, *given: Given, **more: Any) -> HttpResponse:
    form = {"result_files": files(*given), "variant": variant.pk, "profile": on.pk} | more
    return client.post(GIVE, form)  # type: ignore[return-value]


def given(client: Client, variant: Variant, on: BenchProfile, /, *files: Given, **more: Any) -> BenchImport:
    """The import that these files became."""
    response = give(client, variant, on, *files, **more)
    assert response.status_code == 302, words(response.content.decode())
    row = BenchImport.objects.latest("pk")
    assert response["Location"] == url(row)
    return row


def url(row: BenchImport, act: str = "change") -> str:
    return f"/admin/sizing/benchimport/{row.pk}/{act}/"


def page(client: Client, row: BenchImport) -> str:
    response = client.get(url(row))
    assert response.status_code == 200
    return response.content.decode()


def do(client: Client, row: BenchImport, act: str) -> str:
    """The text of the page that an act leads to."""
    response = client.post(url(row, act), follow=True)
    assert response.status_code == 200
    return words(response.content.decode())


def errors_of(response: HttpResponse, field: str) -> list[str]:
    """What the form says above a field; nothing was made."""
    assert response.status_code == 200
    assert not BenchImport.objects.exists()
    errors: dict[str, list[str]] = response.context["form"].errors  # type: ignore[attr-defined]
    assert list(errors) == [field], errors
    assert errors[field][0] in unescape(response.content.decode())
    return list(errors[field])
