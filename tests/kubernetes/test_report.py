"""The report: the count as people and scripts read it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sizing.inventory.kubernetes.counting import count
from sizing.inventory.kubernetes.facts import ContainerFacts, NodeFacts, PodFacts
from sizing.inventory.kubernetes.report import report
from tests.kubernetes.parts import (
    GPU,
    H100,
    gpu_device,
    gpu_slice,
    listing,
    node,
    pod,
    reported,
    reported_node,
    taint,
)


def test_a_node_is_told_with_its_numbers() -> None:
    found = reported_node(node({GPU: 8, "cpu": 96000, "memory": 2**40, "pods": 110}, H100), pod({GPU: 5}))
    assert found == {
        "vendor": "nvidia",
        "type": "H100-80GB-HBM3",
        "memory_mib_per_device": 81559,
        "physical_devices": 8,
        "resources": {GPU: {"capacity": 8, "allocatable": 8, "used": 5, "free": 3}},
        "schedulable": True,
        "blocked_by": [],
        "say": "8 H100-80GB-HBM3: 5 used, 3 free",
        "host": {
            "cpu_milli": {"allocatable": 96000, "used": 0, "free": 96000},
            "memory_mib": {"allocatable": 2**20, "used": 0, "free": 2**20},
            "pods": {"allocatable": 110, "used": 1, "free": 109},
        },
    }


def test_overcommitted_devices_are_told_only_where_there_are_any() -> None:
    over = reported_node(node({GPU: 8}, H100, {GPU: 5}), pod({GPU: 6}))
    assert over["resources"][GPU]["overcommitted"] == 1
    assert over["unhealthy"] == 3


def test_the_sums_tell_all_that_is_free_and_what_is_free_on_open_nodes() -> None:
    found = reported(
        node({GPU: 8}, H100, unschedulable=True),
        node({GPU: 8}, H100, name="n2"),
        pod({GPU: 2}),
        pod({GPU: 4}, on="n2", name="p2"),
    )
    assert found["cluster"] == {GPU: {"allocatable": 16, "used": 6, "free_all": 10, "free_schedulable": 4}}


def test_pods_are_listed_by_what_became_of_them() -> None:
    found = reported(
        node({GPU: 8}, H100),
        pod({GPU: 1}, name="done", phase="Succeeded"),
        pod({GPU: 1}, name="evicted", phase="Failed", reason="Evicted"),
        pod({GPU: 2}, name="going", deleting=True),
        pod({GPU: 4}, name="lost", on="gone"),
        pod({GPU: 8}, name="gated", on="", gates=("kueue.x-k8s.io/admission",)),
    )
    assert found["pods_ignored"] == [
        {"pod": "llm/done", "why": "Succeeded: holds nothing"},
        {"pod": "llm/evicted", "why": "Failed (Evicted): holds nothing"},
    ]
    assert found["soon_free"] == [{"pod": "llm/going", "node": "n1", "request": {GPU: 2}}]
    assert found["orphan_pods"] == [{"pod": "llm/lost", "node": "gone", "request": {GPU: 4}}]
    assert found["pods_unplaced"] == [
        {"pod": "llm/gated", "request": {GPU: 8}, "why": "scheduling gate kueue.x-k8s.io/admission"}
    ]
    assert "1 pod with GPUs bound to nodes that are not listed: gone (1)" in found["warnings"]


def test_a_pod_that_was_nominated_says_where_to() -> None:
    found = reported(node({GPU: 8}, H100), pod({GPU: 4}, on="", nominated="n1"))
    assert found["pods_unplaced"][0]["why"] == "nominated to node n1, waits for its victims to end"
    assert found["nodes"]["n1"]["reserved_by_nominated"] == {GPU: 4}


def test_the_new_pod_of_a_rolling_update_waits_for_the_old_one() -> None:
    def revision(name: str, on: str) -> PodFacts:
        return pod(
            {GPU: 4},
            name=f"chat-{name}-x",
            on=on,
            owner=("ReplicaSet", f"chat-{name}"),
            labels={"pod-template-hash": name},
        )

    found = reported(node({GPU: 4}, H100), revision("6b9", "n1"), revision("7cc", ""))
    assert found["pods_unplaced"][0]["why"].startswith("surge pod of a rolling update")
    more = [revision("7cc", "n1"), replace(revision("7cc", ""), name="second", uid="second")]
    assert "why" not in reported(node({GPU: 4}, H100), *more)["pods_unplaced"][0]


def test_the_owner_of_a_replica_set_tells_a_rolling_update_whatever_the_names() -> None:
    facts = listing(
        node({GPU: 4}, H100),
        pod({GPU: 4}, name="old", owner=("ReplicaSet", "a")),
        pod({GPU: 4}, name="new", on="", owner=("ReplicaSet", "b")),
    )
    facts.owners["ReplicaSet", "llm", "a"] = facts.owners["ReplicaSet", "llm", "b"] = ("Deployment", "chat")
    assert report(count(facts))["pods_unplaced"][0]["why"].startswith("surge pod")


def test_the_pods_of_a_leader_worker_set_are_one_group() -> None:
    labels = {"leaderworkerset.sigs.k8s.io/name": "r1", "leaderworkerset.sigs.k8s.io/group-index": "0"}
    size = {"leaderworkerset.sigs.k8s.io/size": "3"}
    found = reported(
        node({GPU: 8}, H100),
        node({GPU: 8}, H100, name="n2"),
        pod({GPU: 8}, name="r1-0", labels=labels, annotations=size, ready=True),
        pod({GPU: 8}, name="r1-0-1", on="n2", labels=labels),
        pod({GPU: 8}, name="r1-0-2", on="", labels=labels),
    )
    assert found["groups"] == [
        {
            "group": "llm/r1-0",
            "pods": 3,
            "ready": 1,
            "size": 3,
            "nodes": ["n1", "n2"],
            "request": {GPU: 24},
        }
    ]


def test_a_ray_cluster_is_one_group_and_its_object_tells_the_size() -> None:
    labels = {"ray.io/cluster": "big"}
    facts = listing(
        node({GPU: 8}, H100),
        pod({"cpu": 1}, name="head", labels=labels, ready=True),
        pod({GPU: 4}, name="worker", labels=labels, ready=True),
    )
    facts.sizes["RayCluster", "llm", "big"] = 2
    [group] = report(count(facts))["groups"]
    assert (group["group"], group["pods"], group["ready"], group["size"]) == ("llm/big", 2, 2, 2)


def test_a_node_that_came_a_moment_ago_is_called_arriving() -> None:
    now = datetime(2026, 11, 30, 10, 0, tzinfo=UTC)
    labels = {"k8s.amazonaws.com/accelerator": "nvidia-tesla-t4"}
    found = reported(
        node({GPU: 1}, H100, created_at=now - timedelta(days=3)),
        node({}, labels, name="new", created_at=now - timedelta(minutes=2)),
        node({}, labels, name="broken", created_at=now - timedelta(days=3)),
        pod({GPU: 1}, started_at=now),
        pod({GPU: 1}, name="waits", on=""),
    )
    arriving = [warning for warning in found["warnings"] if "arriving" in warning]
    assert arriving == ["node new is arriving: it is ready, but its device plugin offers no devices yet"]
    assert found["cluster"][GPU]["free_all"] == 0
    assert len(found["pods_unplaced"]) == 1


def test_a_pod_that_asks_for_zero_gpus_but_sees_them_all_is_told() -> None:
    all_of_them = ContainerFacts("main", env={"NVIDIA_VISIBLE_DEVICES": "all"})
    found = reported(node({GPU: 8}, H100), pod({GPU: 0}, containers=(all_of_them,)))
    assert found["nodes"]["n1"]["resources"][GPU]["free"] == 8
    assert [warning for warning in found["warnings"] if "llm/p1" in warning] == [
        "pod llm/p1 asks for no GPU but sets NVIDIA_VISIBLE_DEVICES: it can use all 8 of node n1 unseen"
    ]
    daemon = pod({GPU: 0}, containers=(all_of_them,), owner=("DaemonSet", "dcgm-exporter"))
    assert reported(node({GPU: 8}, H100), daemon)["warnings"] == []


def test_two_containers_of_one_gpu_each_hold_two() -> None:
    one = ContainerFacts("a", requests={GPU: 1})
    found = reported_node(node({GPU: 2}, H100), pod({GPU: 2}, containers=(one, one)))
    assert found["resources"][GPU]["used"] == 2


def test_free_gpus_are_told_per_node_and_type() -> None:
    t4, v100 = {"nvidia.com/gpu.product": "Tesla-T4"}, {"nvidia.com/gpu.product": "Tesla-V100-SXM2-16GB"}
    found = reported(
        node({GPU: 4}, t4, name="t4-a"),
        node({GPU: 4}, t4, name="t4-b"),
        node({GPU: 2}, v100, name="v100-a"),
        pod({GPU: 2}, on="t4-a"),
        pod({GPU: 2}, on="v100-a", name="p2"),
    )
    free = {name: (one["type"], one["resources"][GPU]["free"]) for name, one in found["nodes"].items()}
    assert free == {"t4-a": ("T4", 2), "t4-b": ("T4", 4), "v100-a": ("V100-SXM2-16GB", 0)}


SENTENCES: list[tuple[list[NodeFacts | PodFacts], str]] = [
    ([node({})], "no accelerator"),
    (
        [node({}, {"nvidia.com/gpu.product": "NVIDIA-L4"})],
        "labeled as NVIDIA GPU node (L4), but no device plugin offers a device (none runs, or it has not "
        "registered yet): 0 usable",
    ),
    ([node({GPU: 0})], "0 devices of nvidia.com/gpu; closed to new pods: no device is allocatable"),
    (
        [node({GPU: 8}, H100, {GPU: 7}, ready="False", taints=(taint("a", "b"),)), pod({GPU: 2})],
        "8 H100-80GB-HBM3: 1 withdrawn by the device plugin, 2 used, 5 free; closed to new pods: "
        "not ready (False), tainted (a=b:NoSchedule)",
    ),
    (
        [node({GPU: 7}, H100 | {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"})],
        "7 MIG slices 1g.10gb of 1 H100-80GB-HBM3, all named nvidia.com/gpu, no whole GPU: 0 used, 7 free",
    ),
]


@pytest.mark.parametrize(("facts", "sentence"), SENTENCES)
def test_a_node_is_told_in_one_sentence(facts: list[NodeFacts | PodFacts], sentence: str) -> None:
    assert reported_node(*facts)["say"] == sentence


def test_a_node_with_dra_is_told_in_one_sentence() -> None:
    assert reported_node(node(), gpu_slice(gpu_device(0)))["say"] == (
        "1 A100-SXM4-40GB published by DRA driver gpu.nvidia.com: 0 allocated, 0 tainted, 1 free"
    )


def test_idle_chips_of_a_slice_of_which_another_host_is_taken_are_told() -> None:
    labels = {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "2x4",
        "cloud.google.com/gke-accelerator-count": "4",
        "cloud.google.com/gke-nodepool": "b",
    }
    tpu = "google.com/tpu"
    found = reported(node({tpu: 4}, labels), node({tpu: 4}, labels, name="n2"), pod({tpu: 4}))
    assert found["nodes"]["n2"]["say"].endswith("the 2x4 slice needs all 2 hosts of pool b, and n1 is taken")
    assert "slice needs" not in found["nodes"]["n1"]["say"]


def test_the_report_is_plain_json() -> None:
    found = reported(node({GPU: 8}, H100), pod({GPU: 2}), gpu_slice(gpu_device(0)))
    assert json.loads(json.dumps(found)) == found


def test_what_the_reader_found_and_an_incomplete_list_are_told_first() -> None:
    facts = listing(node({GPU: 8}, H100), pod({GPU: 9}))
    facts.incomplete = "412 more items were not listed"
    facts.warnings.append("node b is skipped: no status")
    assert report(count(facts))["warnings"] == [
        "the list is not complete: 412 more items were not listed; its figures are not either",
        "node b is skipped: no status",
        "node n1: pods use 9 nvidia.com/gpu, 1 more than the 8 that are allocatable",
    ]
