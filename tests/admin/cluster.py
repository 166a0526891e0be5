"""A small cluster as rows, and people with more and less permission."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.utils import timezone

from sizing.models import (
    Answer,
    ApiToken,
    BenchFile,
    BenchImport,
    ClusterImport,
    ClusterSync,
    InventoryLoad,
    MappingRule,
    Refresh,
    Target,
)
from sizing.services import targets
from sizing.services.answers import Asker
from tests import builders


def make_everything(number: int = 1, hostile: str = "", first: int = 0) -> None:
    """`number` rows in every table that the admin shows; `hostile` ends every name."""
    for i in range(first, first + number):
        model = builders.model(f"org{i}{hostile}:m", owner=f"team{hostile}")
        variant = builders.variant(model, f"tp4{hostile}", gpu_types=[builders.H100])
        profile = builders.profile(f"chat{i}{hostile}")
        builders.measurement(variant, profile, "1180.5", source=f"hand{hostile}", warnings=[f"warm{hostile}"])
        replica = builders.replica(
            f"r{i}{hostile}",
            variant,
            builders.node(f"gpu-{i}{hostile}"),
            (0, 1, 2, 3),
            endpoint=f"http://r{hostile}",
        )
        Target.objects.create(model=model, profile=profile, variant=variant, tokens_per_sec=Decimal(5000))
        user = User.objects.create_user(f"person{i}")
        Refresh.objects.create(
            variant=variant,
            profile=profile,
            replica=replica,
            trigger=Refresh.Trigger.ADMIN,
            requested_by=user,
            error=f"broke{hostile}",
        )
        given = BenchImport.objects.create(
            variant=variant,
            profile=profile,
            trigger=BenchImport.Trigger.ADMIN,
            requested_by=user,
            state=BenchImport.State.FAILED,
            error=f"broke{hostile}",
        )
        BenchFile.objects.create(
            bench_import=given, position=1, name=f"point{hostile}.json", size=0, sha256=""
        )
        MappingRule.objects.create(
            name=f"rule{i}{hostile}", by="pod", pattern=f".*{hostile}", model=f"m{hostile}"
        )
        ClusterImport.objects.create(
            name=f"cluster{hostile}.json",
            state=ClusterImport.State.FAILED,
            trigger=ClusterImport.Trigger.ADMIN,
            requested_by=user,
            error=f"broke{hostile}",
            report=_told(hostile),
        )
        InventoryLoad.objects.create(
            name=f"fleet{hostile}.yaml",
            trigger=InventoryLoad.Trigger.ADMIN,
            requested_by=user,
            changes={"created": {"nodes": {"count": 1, "first": [{"name": f"n{hostile}", "what": ""}]}}},
            warnings=[f"odd{hostile}"],
        )
        ClusterSync.objects.update_or_create(
            pk=1,
            defaults={"state": "failing", "error": f"broke{hostile}", "server": f"https://x{hostile}"},
        )
        # Revoked, so that it can be deleted.
        ApiToken.objects.create(user=user, label=f"ci{i}{hostile}", revoked_at=timezone.now())
        question = targets.parse_question(model.name, {"tokens_per_sec": ["5000"], "profile": [profile.name]})
        targets.ask(question, Asker(Answer.Channel.PAGE, user))
        Group.objects.create(name=f"group{i}{hostile}")


def _told(hostile: str) -> dict[str, Any]:
    """The report of a list whose every text ends so."""
    return {
        "nodes": 1,
        "types": [{"type": f"H100{hostile}", "resource": f"gpu{hostile}", "nodes": 1, "free": 8}],
        "closed": {
            "count": 1,
            "first": [{"node": f"n{hostile}", "codes": [f"taint:{hostile}"], "say": f"closed{hostile}"}],
        },
        "ignored": [
            {"kind": f"Pod{hostile}", "reason": f"odd{hostile}", "count": 1, "examples": [f"p{hostile}"]}
        ],
        "warnings": {"count": 1, "first": [f"odd{hostile}"]},
    }


def person(name: str, *permissions: str, superuser: bool = False) -> User:
    user = User.objects.create_user(name, password="pass-word-1", is_staff=True, is_superuser=superuser)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return user
