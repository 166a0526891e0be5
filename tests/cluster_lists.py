"""Small lists of a cluster as kubectl prints them: what people bring to the desk."""

from __future__ import annotations

import json
from typing import Any

H100 = "NVIDIA-H100-80GB-HBM3"
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def node(name: str = "gpu-a1", gpus: int = 8, *, ready: bool = True, **spec: Any) -> dict[str, Any]:
    """A node with H100s that is ready."""
    count = {"cpu": "96", "memory": "1000Gi", "pods": "110"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    labels = {"nvidia.com/gpu.product": H100, "nvidia.com/gpu.memory": "81559"} if gpus else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": spec,
        "status": {
            "capacity": count,
            "allocatable": count,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def pod(
    name: str, on: str | None = "gpu-a1", gpus: int = 4, model: str = LLAMA, **metadata: Any
) -> dict[str, Any]:
    """A pod that serves a model with vLLM, running and ready where it is on a node."""
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}, "requests": {"nvidia.com/gpu": str(gpus)}}
    container = {
        "name": "server",
        "image": "vllm/vllm-openai:v0.11.0",
        "args": ["--model", model, "--tensor-parallel-size", str(gpus)],
        "resources": resources if gpus else {},
    }
    phase = "Running" if on else "Pending"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "llm", "uid": f"uid-{name}", **metadata},
        "spec": {"containers": [container], **({"nodeName": on} if on else {})},
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": "True" if on else "False"}],
        },
    }


def listed(*items: dict[str, Any], left: int = 0) -> dict[str, Any]:
    """A list of these; `left` items more are said to be missing."""
    metadata = {"continue": "token", "remainingItemCount": left} if left else {}
    return {"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": list(items)}


def as_bytes(*items: dict[str, Any], left: int = 0) -> bytes:
    """The list as a file."""
    return json.dumps(listed(*items, left=left)).encode()


def small() -> bytes:
    """One node with eight GPUs, four of which a pod holds."""
    return as_bytes(node(), pod("llama-0"))
