"""Objects of a cluster as its API has them, and what becomes of them in a listing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sizing.inventory.kubernetes import objects
from sizing.inventory.kubernetes.facts import Listing, NodeFacts, PodFacts
from sizing.inventory.kubernetes.reading import read_listing
from sizing.inventory.yaml_reading import UnreadableError

GPU = "nvidia.com/gpu"
Object = dict[str, Any]


def node(name: Any = "n1", **changes: Any) -> Object:
    item: Object = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-of-{name}"},
        "spec": {},
        "status": {
            "capacity": {GPU: "8", "cpu": "4"},
            "allocatable": {GPU: 7},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return item | changes


def pod(name: Any = "p1", spec: Any = None, status: Any = None, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "llm", "uid": f"uid-of-{name}"} | metadata,
        "spec": {"containers": [container()], "nodeName": "n1"} if spec is None else spec,
        "status": {"phase": "Running"} if status is None else status,
    }


def container(gpus: Any = "2", **more: Any) -> Object:
    return {"name": "vllm", "resources": {"limits": {GPU: gpus}}} | more


def listed(*items: Object) -> Listing:
    listing = Listing()
    for item in items:
        objects.add(listing, json.loads(json.dumps(item)))
    objects.finish(listing)
    return listing


def the_pod(item: Object, *others: Object) -> PodFacts:
    listing = listed(item, *others)
    assert listing.skipped == []
    (found,) = listing.pods.values()
    return found


def the_node(item: Object) -> NodeFacts:
    listing = listed(item)
    assert listing.skipped == []
    (found,) = listing.nodes.values()
    return found


def reason(item: Object) -> str:
    listing = listed(item)
    assert not listing.nodes
    assert not listing.pods
    (skipped,) = listing.skipped
    return skipped.reason


def about(listing: Listing, word: str) -> list[str]:
    return [warning for warning in listing.warnings if word in warning]


def priority_class(name: str, value: Any, **more: Any) -> Object:
    return {
        "kind": "PriorityClass",
        "apiVersion": "scheduling.k8s.io/v1",
        "metadata": {"name": name},
        "value": value,
    } | more


WHOLE = json.dumps({"kind": "List", "items": [node("n1"), pod("p1")], "metadata": {}}, indent=1).encode()


def problem(document: bytes) -> str:
    """The one line with which a file is refused."""
    with pytest.raises(UnreadableError) as caught:
        read_listing(document)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 700
    assert caught.value.__cause__ is None
    return message
