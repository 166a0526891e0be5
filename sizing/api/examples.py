"""Examples for the OpenAPI document."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample

ANSWER = OpenApiExample(
    "fits by preempting",
    response_only=True,
    value={
        "model": "meta-llama/Llama-3.1-70B-Instruct",
        "tok_per_sec": 5000.0,
        "per_replica_tok_per_sec": 1180.5,
        "profile": "chat",
        "variant": "h100-tp4",
        "utilization": 1.0,
        "needed": 5,
        "current": 2,
        "more": 3,
        "surplus": 0,
        "room": 3,
        "free_room": 1,
        "by_preempting": 2,
        "fits": True,
        "preempts": ["batch-embed"],
        "preemption": {
            "victims": [
                {
                    "replica": "batch-embed-3",
                    "model": "batch-embed",
                    "priority": 0,
                    "nodes": ["gpu-a2"],
                    "tok_per_sec": 900.0,
                },
                {
                    "replica": "batch-embed-4",
                    "model": "batch-embed",
                    "priority": 0,
                    "nodes": ["gpu-a3"],
                    "tok_per_sec": 900.0,
                },
            ],
            "models": [{"model": "batch-embed", "stopped": 2, "left": 4, "min_replicas": 1}],
            "optimal": True,
        },
        "current_tok_per_sec": 2361.0,
        "measurement": {
            "measured_at": "2026-11-02T09:00:00Z",
            "age_s": 3600,
            "stale": False,
            "source": "manual",
            "bound": "edge",
        },
        "reasons": [],
        "warnings": [],
    },
)
NOT_MEASURED = OpenApiExample(
    "not measured",
    response_only=True,
    value={
        "error": "qwen2.5:7b has not been measured; run `manage.py bench qwen2.5:7b --save` first",
        "code": "not_measured",
    },
)
