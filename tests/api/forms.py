"""One of each object, as the API shows it but for the ids."""

from __future__ import annotations

from typing import Any

from tests.api.conftest import LLAMA

NODE = {
    "name": "gpu-b1",
    "ready": True,
    "schedulable": False,
    "stale": False,
    "labels": {"pool": "h100"},
    "taints": [{"key": "dedicated", "value": "rag", "effect": "NoSchedule"}],
    "cpu_millis": 96000,
    "memory_mib": None,
    "pods": 110,
    "cost_per_hour": 31.2,
    "gpus": [
        {
            "index": 0,
            "uuid": "GPU-7f",
            "type": "NVIDIA-H100-80GB-HBM3",
            "memory_mib": 81559,
            "healthy": False,
            "used_outside_mib": 12,
            "partition": False,
        }
    ],
}
VARIANT = {
    "name": "x1",
    "nodes": 2,
    "gpus": 1,
    "gpu_memory_mib": None,
    "gpu_memory_fraction": 0.333333,
    "gpu_types": ["NVIDIA-L40S"],
    "node_selector": {"pool": "l40s"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "cpu_millis": 8000,
    "memory_mib": 64000,
    "topology_key": "topology.kubernetes.io/zone",
}
MODEL = {
    "name": "qwen2.5:7b",
    "priority": -5,
    "preemption_policy": "Never",
    "min_replicas": 1,
    "max_replicas": 4,
    "default_profile": "chat",
    "workload": "model",
    "owner": "team search",
    "variants": [VARIANT],
}
PROFILE = {
    "name": "rag",
    "input_tokens": 8000,
    "output_tokens": 300,
    "slo": {"ttft_ms": None, "itl_ms": 40.5, "e2e_ms": None, "percentile": 99.9},
    "arrival": "concurrency",
    "refresh_every_h": None,
}
REPLICA = {
    "name": "llama-70b-1",
    "model": LLAMA,
    "variant": "h100-tp2",
    "state": "starting",
    "started_at": "2026-11-01T08:00:00Z",
    "endpoint": "http://10.0.0.7:8000/v1",
    "benchable": True,
    "priority": -5,
    "placement": [{"node": "gpu-a1", "gpus": [2, 3]}],
}
MEASUREMENT = {
    "model": LLAMA,
    "variant": "h100-x1",
    "profile": "chat",
    "tok_per_sec": 900.25,
    "measured_at": "2026-11-02T09:00:00Z",
    "source": "by hand",
    "bound": "floor",
    "engine": "vllm 0.11",
    "warnings": ["few requests"],
    "slo_met": True,
}
ENTERED_BY_HAND: dict[str, Any] = {
    "bracket": "",
    "generator": "",
    "workload": {},
    "replica": "",
    "gpu_type": "",
    "refresh": None,
    "levels": [],
}
TARGET = {
    "model": LLAMA,
    "profile": None,
    "variant": "h100-x1",
    "utilization": 0.8,
    "tokens_per_sec": 1234.567891,
}
BY_HAND = {"source": ""}
ONE_OF_EACH: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("nodes", NODE, BY_HAND),
    ("models", MODEL, {"variants": [VARIANT | BY_HAND], **BY_HAND}),
    ("profiles", PROFILE, {}),
    ("variants", VARIANT | {"model": LLAMA, "position": 7}, BY_HAND),
    ("replicas", REPLICA, BY_HAND),
    ("measurements", MEASUREMENT, {"stale_reason": "older than 168 h", **ENTERED_BY_HAND}),
    ("targets", TARGET, {}),
]
