"""Small nodes and pods as the API has them."""

from __future__ import annotations

from typing import Any


def node(name: str, gpus: int = 8, **spec: Any) -> dict[str, Any]:
    devices = {"nvidia.com/gpu": str(gpus), "cpu": "64", "memory": "512Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}},
        "spec": spec,
        "status": {
            "capacity": devices,
            "allocatable": devices,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, on: str = "n1", gpus: int = 1, phase: str = "Running") -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "vllm/vllm-openai",
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
    }
    return {
        "metadata": {"name": name, "namespace": "llm"},
        "spec": {"nodeName": on, "containers": [container], "priority": 0},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]},
    }
