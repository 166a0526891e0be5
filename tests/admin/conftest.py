from __future__ import annotations

import pytest
from django.test import Client

from sizing.models import BenchProfile, Variant
from tests import builders
from tests.admin import sweeps
from tests.admin.cluster import person


@pytest.fixture
def boss(db: None) -> Client:
    """A client signed in as a superuser."""
    client = Client()
    client.force_login(person("boss", superuser=True))
    return client


@pytest.fixture
def viewer(db: None) -> Client:
    """A client signed in as somebody who may look at models, nodes, GPUs and replicas."""
    client = Client()
    client.force_login(
        person("viewer", "view_servedmodel", "view_node", "view_gpu", "view_replica", "view_refresh")
    )
    return client


@pytest.fixture
def outsider(db: None) -> Client:
    """A client signed in as staff without any permission."""
    client = Client()
    client.force_login(person("outsider"))
    return client


@pytest.fixture
def llama(db: None) -> Variant:
    """A variant whose result files are given."""
    return builders.variant(builders.model("llama"), "tp4", 4)


@pytest.fixture
def chat(db: None) -> BenchProfile:
    """The profile that those files have the shape of."""
    return sweeps.profile(input_tokens=64, output_tokens=32)
