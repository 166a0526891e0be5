from __future__ import annotations

import pytest
from django.test import Client

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
