"""A small fleet, and callers with and without permissions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission, User
from rest_framework.test import APIClient

from sizing.models import (
    BenchImport,
    BenchProfile,
    Gpu,
    Measurement,
    Node,
    Placement,
    Refresh,
    Replica,
    ServedModel,
    Target,
    Variant,
)
from sizing.services.tokens import create_token

Caller = Callable[..., APIClient]

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"


def client_of(user: User) -> APIClient:
    """A client with a token of the user."""
    client = APIClient(raise_request_exception=True)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token(user.username, 'tests')}")
    return client


def send(client: APIClient, method: str, path: str, body: bytes, media_type: str, **options: Any) -> Any:
    """A request whose body is these bytes."""
    raw: Any = body
    return client.generic(method, path, raw, content_type=media_type, **options)


@pytest.fixture
def admin(db: None) -> APIClient:
    """A caller who may do everything."""
    return client_of(get_user_model().objects.create_superuser("ada", password="x"))


@pytest.fixture
def caller(db: None) -> Caller:
    """Makes callers with the permissions of these names, for example `view_node`."""

    def make(*permissions: str) -> APIClient:
        users = get_user_model().objects
        user = users.create_user(f"caller-{users.count()}")
        found = Permission.objects.filter(content_type__app_label="sizing", codename__in=permissions)
        assert len(found) == len(set(permissions))
        user.user_permissions.set(found)
        return client_of(user)

    return make


@pytest.fixture
def fleet(db: None) -> dict[str, Any]:
    """One node with four GPUs, a model with two variants, one replica, and one of everything else."""
    node = Node.objects.create(name="gpu-a1", labels={"topology.kubernetes.io/zone": "eu-1a"})
    gpus = Gpu.objects.bulk_create(
        Gpu(node=node, index=i, type="NVIDIA-H100-80GB-HBM3", memory_mib=81559) for i in range(4)
    )
    profile = BenchProfile.objects.create(
        name="chat", input_tokens=1024, output_tokens=256, ttft_ms=Decimal(500), refresh_every_h=Decimal(168)
    )
    model = ServedModel.objects.create(name=LLAMA, priority=100, default_profile=profile)
    tp2 = Variant.objects.create(model=model, name="h100-tp2", gpus=2, position=0)
    Variant.objects.create(
        model=model, name="h100-x1", gpus=1, position=1, gpu_memory_fraction=Decimal("0.5")
    )
    replica = Replica.objects.create(
        name="llama-70b-0", variant=tp2, started_at=datetime(2026, 11, 1, 8, tzinfo=UTC)
    )
    Placement.objects.bulk_create(Placement(replica=replica, gpu=gpu) for gpu in gpus[:2])
    measurement = Measurement.objects.create(
        variant=tp2,
        profile=profile,
        tok_per_sec=Decimal("1180.5"),
        measured_at=datetime(2026, 11, 2, 9, tzinfo=UTC),
    )
    target = Target.objects.create(model=model, profile=profile, tokens_per_sec=Decimal(5000))
    refresh = Refresh.objects.create(variant=tp2, profile=profile, trigger=Refresh.Trigger.API)
    return {
        "nodes": node,
        "profiles": profile,
        "models": model,
        "variants": tp2,
        "replicas": replica,
        "measurements": measurement,
        "targets": target,
        "refreshes": refresh,
        "imports": BenchImport.objects.create(variant=tp2, profile=profile, trigger="api", state="failed"),
    }


@pytest.fixture
def ready(fleet: dict[str, Any]) -> dict[str, Any]:
    """The fleet, its replica to be measured, and its refresh over."""
    Refresh.objects.update(state="done")
    Replica.objects.update(benchable=True, endpoint="http://10.0.0.7:8000/v1")
    return fleet


def only_new(fleet: dict[str, Any]) -> Refresh:
    """The one refresh that was made since."""
    return Refresh.objects.exclude(pk=fleet["refreshes"].pk).get()
