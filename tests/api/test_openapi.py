"""The OpenAPI document: complete, as committed, and its page."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
import yaml
from django.core.management import call_command
from django.urls import URLPattern
from rest_framework.test import APIClient

from sizing.api import urls
from tests.api.conftest import Caller

SNAPSHOT = Path(__file__).parents[2] / "openapi.yaml"


def test_the_committed_document_is_current() -> None:
    out = StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=out)
    assert SNAPSHOT.read_text() == out.getvalue(), (
        "run: manage.py spectacular --validate --fail-on-warn --file openapi.yaml"
    )


def test_every_address_is_described_without_a_trailing_slash() -> None:
    paths = yaml.safe_load(SNAPSHOT.read_text())["paths"]
    assert len(paths) == 10 * 2 + 10 + 1
    assert all(f"{path}/".startswith("/api/v1/") and not path.endswith("/") for path in paths)
    routes = [
        p for p in urls.urlpatterns if isinstance(p, URLPattern) and p.name not in (None, "schema", "docs")
    ]
    assert len(routes) + 1 == len(paths)  # the root stands in front of them


@pytest.mark.parametrize("slash", ["", "/"])
def test_the_root_names_the_collections(admin: APIClient, slash: str) -> None:
    addresses = admin.get(f"/api/v1{slash}").json()
    assert list(addresses) == [p for p, _, _ in urls.router.registry]
    assert addresses["nodes"] == "http://testserver/api/v1/nodes"
    assert {admin.get(address).status_code for address in addresses.values()} == {200}
    assert APIClient().get(f"/api/v1{slash}").status_code == 401


def test_every_operation_describes_its_parameters_and_errors() -> None:
    for path, operations in yaml.safe_load(SNAPSHOT.read_text())["paths"].items():
        for method, operation in operations.items():
            assert {"401", "403", "429", "503"} <= set(operation["responses"]), (path, method)
            assert {"token": []} in operation["security"], (path, method)
            for parameter in operation.get("parameters", []):
                assert parameter.get("description"), (path, method, parameter["name"])
            for status, response in operation["responses"].items():
                assert status == "204" or response["content"], (path, method, status)


@pytest.mark.parametrize("slash", ["", "/"])
def test_the_document_is_served_as_yaml_and_json(caller: Caller, slash: str) -> None:
    client = caller()
    plain = client.get(f"/api/v1/schema{slash}")
    assert yaml.safe_load(plain.content)["info"]["title"] == "llmgw-admin"
    json = client.get(f"/api/v1/schema{slash}", headers={"accept": "application/vnd.oai.openapi+json"})
    assert json.json()["paths"] == yaml.safe_load(plain.content)["paths"]


@pytest.mark.parametrize("slash", ["", "/"])
def test_the_page_loads_nothing_from_elsewhere(caller: Caller, slash: str) -> None:
    client = caller()
    page = client.get(f"/api/v1/docs{slash}")
    assert page.headers["Content-Type"].startswith("text/html")
    text = page.content.decode()
    assert "swagger-ui" in text
    assert "https://" not in text
    assert "<script>" not in text
    script = client.get(f"/api/v1/docs{slash}?script=")
    assert script.headers["Content-Type"].startswith("application/javascript")
    assert "/api/v1/schema" in script.content.decode()


def test_errors_of_the_page_are_json(db: None) -> None:
    assert (
        APIClient().get("/api/v1/docs", headers={"accept": "text/html"}).json()["code"] == "unauthenticated"
    )
