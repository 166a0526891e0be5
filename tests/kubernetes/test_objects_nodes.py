"""Nodes as facts in a listing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from sizing.domain.specs import Taint
from sizing.inventory.kubernetes.facts import NodeFacts, Skipped
from tests.kubernetes.made import (
    GPU,
    Object,
    about,
    listed,
    node,
    pod,
    reason,
    the_node,
)


def test_a_node_is_read_with_what_matters() -> None:
    item = node(
        metadata={
            "name": "gpu-a",
            "uid": "u-1",
            "creationTimestamp": "2026-09-14T08:21:05Z",
            "deletionTimestamp": "2026-09-15T08:21:05Z",
            "labels": {"zone": "a", "nvidia.com/gpu.count": 8, "shared": True, "empty": None},
            "annotations": {"hami.io/node-nvidia-register": "GPU-1,10:", "csi.example/id": "x"},
        },
        spec={
            "unschedulable": True,
            "taints": [
                {"key": "dedicated", "value": "rag", "effect": "NoSchedule"},
                {"effect": "NoExecute"},
                3,
            ],
        },
    )
    assert the_node(item) == NodeFacts(
        name="gpu-a",
        uid="u-1",
        labels={"zone": "a", "nvidia.com/gpu.count": "8", "shared": "true", "empty": ""},
        annotations={"hami.io/node-nvidia-register": "GPU-1,10:"},
        taints=(Taint("dedicated", "rag", "NoSchedule"),),
        unschedulable=True,
        deleting=True,
        ready="True",
        created_at=datetime(2026, 9, 14, 8, 21, 5, tzinfo=UTC),
        capacity={GPU: 8, "cpu": 4000},
        allocatable={GPU: 7},
    )


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        ([{"type": "Ready", "status": "False"}], "False"),
        ([{"type": "Ready", "status": "Unknown"}], "Unknown"),
        ([{"type": "Ready", "status": True}], "True"),
        ([{"type": "Ready", "status": 7}], "Unknown"),
        ([{"type": "MemoryPressure", "status": "True"}], "Unknown"),
        (None, "Unknown"),
        ("Ready", "Unknown"),
    ],
)
def test_a_node_is_ready_only_when_its_condition_says_so(conditions: Any, ready: str) -> None:
    assert the_node(node(status={"capacity": {GPU: 8}, "conditions": conditions})).ready == ready


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"status": None}, "no status, so no capacity"),
        ({"status": {}}, "no status, so no capacity"),
        ({"status": {"conditions": []}}, "its status tells no capacity"),
        ({"status": {"capacity": {GPU: "four"}}}, "nvidia.com/gpu 'four' is no quantity"),
        (
            {"status": {"capacity": {GPU: 8}, "allocatable": {GPU: "-1"}}},
            "nvidia.com/gpu '-1' is a negative quantity",
        ),
        ({"status": {"capacity": {GPU: "2.5"}}}, "nvidia.com/gpu: an extended resource must be whole (2.5)"),
        ({"metadata": None}, "its name is missing"),
        ({"metadata": {"name": 7}}, "its name is no text"),
        ({"metadata": {"name": "a\x00"}}, 'its name "a\\u0000" cannot be one'),
        ({"metadata": {"name": "a\ud800"}}, 'its name "a\\ud800" cannot be one'),
        ({"metadata": {"name": "a\nb"}}, 'its name "a\\nb" cannot be one'),
        ({"metadata": {"name": "a/b"}}, 'its name "a/b" cannot be one'),
        ({"metadata": {"name": ".."}}, 'its name ".." cannot be one'),
        ({"metadata": {"name": "n" * 254}}, "its name has more than 253 characters"),
    ],
)
def test_a_node_that_cannot_be_counted_is_skipped_with_the_reason(changes: Object, why: str) -> None:
    assert reason(node(**changes)) == why


def test_a_skipped_node_is_warned_of_by_name() -> None:
    listing = listed(node("l40s-01", status=None), pod())
    assert listing.skipped == [Skipped("Node", "l40s-01", "no status, so no capacity")]
    assert about(listing, "skipped") == ["node l40s-01 is skipped: no status, so no capacity"]


def test_labels_that_no_database_keeps_are_left_out() -> None:
    item = node()
    item["metadata"]["labels"] = {"a\ud800": "1", "b": "x\x00", "c": "y" * 256, "d": 10**400, "e": "ok"}
    assert the_node(item).labels == {"e": "ok"}


def test_two_nodes_of_one_name_are_one_the_later_created() -> None:
    old, new = node(), node()
    old["metadata"] |= {"uid": "u-old", "creationTimestamp": "2026-01-01T00:00:00Z"}
    new["metadata"] |= {"uid": "u-new", "creationTimestamp": "2026-01-02T00:00:00Z"}
    for both in ((old, new), (new, old)):
        listing = listed(*both, pod())
        assert listing.nodes["n1"].uid == "u-new"
        assert listing.duplicates == 0
        assert listing.warnings == [
            "node n1 is listed twice with different uids; the one created later counts"
        ]


def test_the_same_node_twice_is_a_duplicate_and_the_last_counts() -> None:
    listing = listed(node(), node(status={"capacity": {GPU: 4}}))
    assert listing.duplicates == 1
    assert listing.nodes["n1"].capacity == {GPU: 4}
