"""Lists of the cluster, as a browser gives them to the import page, and what people do with them there."""

from __future__ import annotations

from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client

from sizing.models import ClusterImport
from tests.admin.test_measurement_page import words

GIVE = "/admin/sizing/clusterimport/add/"
LIST = "/admin/sizing/clusterimport/"
ACTS = ("import", "partial", "cancel", "discard")
TABLES = ("node", "gpu", "servedmodel", "variant", "replica")
IMPORTING = [f"{verb}_{table}" for verb in ("add", "change", "delete") for table in TABLES]
VIEWING = [f"view_{table}" for table in TABLES]


def bring(client: Client, content: bytes, name: str = "cluster.json", **more: Any) -> HttpResponse:
    form = {"list_file": SimpleUploadedFile(name, content)} | more
    return client.post(GIVE, form)  # type: ignore[return-value]


def brought(client: Client, content: bytes, **more: Any) -> ClusterImport:
    """The import that this list became."""
    response = bring(client, content, **more)
    assert response.status_code == 302, words(response.content.decode())
    row = ClusterImport.objects.latest("pk")
    assert response["Location"] == url(row)
    return row


def url(row: ClusterImport, act: str = "change") -> str:
    return f"/admin/sizing/clusterimport/{row.pk}/{act}/"


def page(client: Client, row: ClusterImport) -> str:
    """The text of an import's page."""
    response = client.get(url(row))
    assert response.status_code == 200
    return words(response.content.decode())


def do(client: Client, row: ClusterImport, act: str) -> str:
    """The text of the page that an act leads to."""
    response = client.post(url(row, act), follow=True)
    assert response.status_code == 200
    return words(response.content.decode())


def buttons(client: Client, row: ClusterImport) -> list[str]:
    """What can be done on an import's page."""
    body = client.get(url(row)).content.decode().partition('id="content"')[2]
    return [part.partition("</button>")[0].rpartition(">")[2] for part in body.split("<button")[1:]]
