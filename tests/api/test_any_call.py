"""Whatever is sent to whatever address: never a server error, always a documented status."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from django.contrib.auth import get_user_model
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, settings

from llmgw_admin.wsgi import application
from sizing.services.tokens import create_token

SCHEMA = schemathesis.openapi.from_dict(SchemaGenerator().get_schema(public=True))
SCHEMA.app = application


@pytest.fixture
def token(transactional_db: None, settings: Any) -> str:
    settings.THROTTLE = 10**9
    get_user_model().objects.create_superuser("ada", password="x")
    return create_token("ada", "any call")


@SCHEMA.parametrize()
@settings(
    max_examples=8,
    phases=[Phase.generate],  # its explicit ones are some 150 a route; too many for every run
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_no_call_ends_in_a_server_error(case: Any, token: str, fleet: dict[str, Any]) -> None:
    check(case, token)
    row = fleet.get(f"{case.path}/".split("/")[3])
    if case.path_parameters and row and type(row).objects.exists():
        # The same call to something that is there.
        there = type(row).objects.earliest("pk")
        case.path_parameters = {key: str(getattr(there, key)) for key in case.path_parameters}
        check(case, token)


def check(case: Any, token: str) -> None:
    response = case.call(headers={"Authorization": f"Bearer {token}"})
    documented = case.operation.definition.raw["responses"]
    assert response.status_code < 500, response.text
    assert str(response.status_code) in documented or response.status_code == 405, response.text
    if response.status_code >= 400:
        assert {"error", "code"} <= set(response.json())
