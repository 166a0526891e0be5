"""The pages that are open all day, on a fleet too large to be drawn at once: how large they are, and how many
queries they take."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sizing import snapshot
from sizing.domain.picture import ZONE_LABEL
from sizing.models import Replica, ServedModel
from sizing.services import inventory

NODES, GPUS, MODELS = 240, 8, 60
TYPES = ("NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S", "NVIDIA-A100-SXM4-80GB")
FIRST = {"measured_at": "2026-01-01T00:00:00Z"}
MOST_BYTES, MOST_QUERIES = 300_000, 15
TO_READ_ALL = 2
"""More, once, by the first page of a process, which reads the whole inventory."""


def document() -> dict[str, Any]:
    """Three GPUs of each node are held one by one, each model has a target, and every other one asks for more
    than there is room for; `urgent` may stop all others."""
    nodes, models = range(NODES), range(MODELS)
    names = [*(f"model-{number:02}" for number in models), "urgent"]
    return {
        "version": 1,
        "nodes": [
            {
                "name": f"node-{number:03}",
                "labels": {ZONE_LABEL: f"zone-{number % 4}"},
                "gpus": [{"type": TYPES[number % len(TYPES)], "memory_mib": 81559, "count": GPUS}],
            }
            for number in nodes
        ],
        "profiles": [{"name": "chat", "input_tokens": 1024, "output_tokens": 256, "slo": {"ttft_ms": 500}}],
        "models": [
            {
                "name": name,
                "priority": 10 if name == "urgent" else at % 3,
                "default_profile": "chat",
                "variants": [{"name": "g1", "gpus": 1}, {"name": "g8", "gpus": 8}],
            }
            for at, name in enumerate(names)
        ],
        "measurements": [
            {"model": name, "variant": variant, "profile": "chat", "tok_per_sec": 10} | FIRST
            for name in names
            for variant in ("g1", "g8")
        ],
        "replicas": [
            {
                "name": f"replica-{number:03}-{gpu}",
                "model": names[(number + gpu) % MODELS],
                "variant": "g1",
                "state": "ready",
                "placement": [{"node": f"node-{number:03}", "gpus": [gpu]}],
            }
            for number in nodes
            for gpu in range(3)
        ],
        "targets": [
            {"model": name, "profile": "chat", "tokens_per_sec": 10**6 if at % 2 else 200}
            for at, name in enumerate(names)
        ],
    }


@pytest.mark.parametrize("state", ["known", "changed", "unknown"])
def test_board_and_target_page_stay_small_and_take_few_queries(
    boss: Client, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inventory.load_document(document())
    asking = {
        name: reverse("admin:sizing_servedmodel_target", args=[ServedModel.objects.get(name=name).pk])
        for name in ("model-00", "urgent")
    }
    for number, (path, query, said) in enumerate(
        (
            ("/admin/", {}, "zone-3 · NVIDIA-L40S 20 nodes, 160 GPUs"),
            ("/admin/", {"by": "zone", "open": "zone-1"}, "node-029 GPU 0: replica-029-0 of model-29 holds"),
            (reverse("admin:board_live"), {}, "✕ 30 do not fit"),
            (asking["model-00"], {"tokens_per_sec": "300"}, "new 15 would go here"),
            (asking["model-00"], {"tokens_per_sec": "100000", "variant": "g8"}, "240 too few free GPUs"),
            (asking["urgent"], {"tokens_per_sec": "17000"}, "500 replicas would stop"),
            (asking["urgent"], {"tokens_per_sec": "100000"}, "720 replicas would stop"),
        )
    ):
        boss.get(path, query)
        if state == "changed":
            Replica.objects.filter(name=f"replica-{200 + number}-0").update(state="starting")
        if state == "unknown":
            monkeypatch.setattr(snapshot, "_kept", None)
        with CaptureQueriesContext(connection) as taken:
            body = boss.get(path, query).content.decode()
        assert said in re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", body)), (path, query)
        most = MOST_QUERIES + (TO_READ_ALL if state == "unknown" else 0)
        assert len(taken) <= most, (path, query, [one["sql"][:99] for one in taken])
        assert 10_000 < len(body.encode()) <= MOST_BYTES, (path, query)
