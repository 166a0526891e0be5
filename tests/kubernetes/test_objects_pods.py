"""Pods as facts in a listing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from sizing.domain.specs import Toleration
from sizing.inventory.kubernetes.facts import Skipped
from tests.kubernetes.made import (
    GPU,
    Object,
    about,
    container,
    listed,
    node,
    pod,
    reason,
    the_pod,
)


def test_a_pod_that_asks_for_devices_is_read_with_what_matters() -> None:
    item = pod(
        "llama-0",
        spec={
            "nodeName": "n1",
            "priority": 100,
            "preemptionPolicy": "Never",
            "nodeSelector": {"zone": "a"},
            "tolerations": [{"key": GPU, "operator": "Exists"}, {"operator": "Exists"}, {"value": "x"}],
            "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["L4", "T4"]}]},
                            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
                            {},
                        ]
                    }
                }
            },
            "containers": [
                container(
                    image="vllm/vllm-openai:v0.9",
                    command=["vllm", "serve"],
                    args=["Qwen/Qwen3-8B", 8000],
                    env=[{"name": "MODEL", "value": "Qwen/Qwen3-8B"}, {"name": "HOME", "value": "/root"}],
                    ports=[{"containerPort": 8000, "name": "http"}, {"containerPort": "x"}],
                )
            ],
        },
        status={
            "phase": "Running",
            "podIP": "192.0.2.7",
            "startTime": "2026-11-01T08:00:00+02:00",
            "reason": "Fine",
            "nominatedNodeName": "n2",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
        labels={"app": "llama"},
        annotations={"llmgw-admin/variant": "tp2", "checksum/config": "x"},
        ownerReferences=[
            {"kind": "Other", "name": "o"},
            {"kind": "ReplicaSet", "name": "llama-66d9", "controller": True},
        ],
        creationTimestamp="2026-11-01T05:00:00Z",
        deletionTimestamp="2026-11-01T09:00:00Z",
    )
    found = the_pod(item)
    assert (found.namespace, found.name, found.uid, found.node) == ("llm", "llama-0", "uid-of-llama-0", "n1")
    assert (found.phase, found.ready, found.deleting, found.bound) == ("Running", True, True, True)
    assert (found.priority, found.preemption_policy) == (100, "Never")
    assert found.requests == {GPU: 2}
    assert found.labels == {"app": "llama"}
    assert found.annotations == {"llmgw-admin/variant": "tp2"}
    assert found.owner == ("ReplicaSet", "llama-66d9")
    assert found.node_selector == {"zone": "a"}
    assert found.tolerations == (Toleration(GPU, "Exists"), Toleration("", "Exists"))
    assert found.gates == ("kueue.x-k8s.io/admission",)
    assert found.selector_terms == (
        (("gpu", "In", ("L4", "T4")),),
        (("metadata.name", "In", ("n1",)),),
        (("metadata.name", "In", ()),),  # an empty term matches nothing
    )
    assert (found.ip, found.reason, found.nominated) == ("192.0.2.7", "Fine", "n2")
    assert found.started_at == datetime(2026, 11, 1, 6, tzinfo=UTC)
    assert found.created_at == datetime(2026, 11, 1, 5, tzinfo=UTC)
    (main,) = found.containers
    assert (main.name, main.image) == ("vllm", "vllm/vllm-openai:v0.9")
    assert main.words == ("vllm", "serve", "Qwen/Qwen3-8B", "8000")
    assert main.env == {"MODEL": "Qwen/Qwen3-8B"}
    assert main.ports == (("http", 8000),)
    assert main.requests == {GPU: 2}


def test_what_a_pod_must_not_be_beside_is_read_by_the_labels_of_nodes() -> None:
    hosts = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
    zones = {"topologyKey": "topology.kubernetes.io/zone"}
    rules: Object = {
        "requiredDuringSchedulingIgnoredDuringExecution": [hosts, hosts, {"topologyKey": None}, 7],
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": zones}],
    }
    spec = {"containers": [container()], "nodeName": "n1"}
    assert the_pod(pod(spec=spec | {"affinity": {"podAntiAffinity": rules}})).apart == (
        "kubernetes.io/hostname",
    )
    assert the_pod(pod(spec=spec | {"affinity": {"podAffinity": rules}})).apart == ()


def test_a_pod_that_asks_for_no_devices_keeps_little() -> None:
    plain = {"nodeName": "n1", "containers": [{"name": "web", "resources": {"requests": {"cpu": "1"}}}]}
    found = the_pod(pod(spec=plain | {"tolerations": [{"operator": "Exists"}]}, labels={"app": "web"}))
    assert found.requests == {"cpu": 1000}
    assert (found.labels, found.containers, found.tolerations) == ({}, (), ())


def test_a_member_of_a_group_without_a_gpu_keeps_its_labels_and_command() -> None:
    head = {"nodeName": "n1", "containers": [{"name": "head", "args": ["serve"]}]}
    found = the_pod(pod(spec=head, labels={"ray.io/cluster": "r1", "app": "x"}))
    assert found.labels == {"ray.io/cluster": "r1", "app": "x"}
    assert found.containers[0].words == ("serve",)


def test_a_pod_is_in_the_default_namespace_and_pending_where_it_does_not_say() -> None:
    found = the_pod({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container()]}})
    assert (found.key, found.phase, found.node, found.bound) == ("default/p", "Pending", "", False)


@pytest.mark.parametrize("spec", [{"containers": None}, {"containers": []}, {"containers": [3]}, {}, [], "x"])
def test_a_pod_without_containers_requests_nothing_and_is_warned_of(spec: Any) -> None:
    listing = listed(node(), pod(spec=spec))
    assert [found.requests for found in listing.pods.values()] == [{}]
    assert listing.warnings == [
        "pod llm/p1 is counted as requesting nothing: there are no containers in spec.containers"
    ]


def test_a_pod_with_a_bad_quantity_is_skipped_and_its_node_may_be_fuller() -> None:
    listing = listed(node(), pod("good"), pod("bad", spec={"containers": [container("two")]}))
    assert [found.name for found in listing.pods.values()] == ["good"]
    why = "container vllm: nvidia.com/gpu 'two' is no quantity"
    assert listing.skipped == [Skipped("Pod", "llm/bad", why)]
    assert listing.warnings == [f"pod llm/bad is skipped: {why}; what is free on its node may be too high"]


def test_skipped_pods_of_one_reason_are_one_warning_with_five_names() -> None:
    bad = [pod(f"bad-{number}", spec={"containers": [container("x")]}) for number in range(7)]
    assert about(listed(node(), pod(), *bad), "skipped") == [
        "pods llm/bad-0, llm/bad-1, llm/bad-2, llm/bad-3, llm/bad-4 and 2 more are skipped: "
        "container vllm: nvidia.com/gpu 'x' is no quantity; what is free on their nodes may be too high"
    ]


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (pod("a b"), 'its name "a b" cannot be one'),
        (pod(namespace="n/m"), 'its namespace "n/m" cannot be one'),
        (pod(spec={"containers": [container()], "nodeName": 3}), "spec.nodeName is no text"),
    ],
)
def test_a_pod_whose_names_cannot_be_is_skipped(item: Object, why: str) -> None:
    assert reason(item) == why


def test_pods_of_a_wrong_shape_are_no_traceback() -> None:
    weird: Object = {"a": [1, None, {"b": 2}]}
    for value in (None, 3, "x", True, [], [1, None], {}, weird, [weird]):
        spec: Object = dict.fromkeys(
            (
                "initContainers",
                "tolerations",
                "affinity",
                "nodeSelector",
                "schedulingGates",
                "resourceClaims",
                "priority",
                "priorityClassName",
                "preemptionPolicy",
                "resources",
            ),
            value,
        )
        one = dict.fromkeys(("image", "command", "args", "env", "ports"), value)
        spec["containers"] = [container(**one), {"name": value, "resources": value}]
        status: Object = dict.fromkeys(
            (
                "phase",
                "conditions",
                "containerStatuses",
                "startTime",
                "podIP",
                "reason",
                "resourceClaimStatuses",
                "nominatedNodeName",
                "extendedResourceClaimStatus",
            ),
            value,
        )
        metadata = dict.fromkeys(
            ("labels", "annotations", "ownerReferences", "creationTimestamp", "uid"), value
        )
        found = the_pod(pod(spec=spec, status=status, **metadata))
        assert found.requests == {GPU: 2}
    listed(
        *(
            {"kind": kind, "metadata": weird, "spec": weird, "status": weird, "value": weird}
            for kind in (
                "Node",
                "Pod",
                "ResourceSlice",
                "ResourceClaim",
                "DeviceClass",
                "PriorityClass",
                "PodDisruptionBudget",
                "ReplicaSet",
                "LeaderWorkerSet",
                "RayCluster",
            )
        )
    )


def test_the_same_pod_twice_is_a_duplicate_and_the_last_counts() -> None:
    listing = listed(pod(), pod(status={"phase": "Succeeded"}))
    assert listing.duplicates == 1
    assert [found.phase for found in listing.pods.values()] == ["Succeeded"]


def test_of_two_pods_of_one_name_the_later_created_counts() -> None:
    old = pod(uid="u-old", creationTimestamp="2026-01-01T00:00:00Z")
    new = pod(uid="u-new", creationTimestamp="2026-01-02T00:00:00Z")
    for both in ((old, new), (new, old)):
        listing = listed(node(), *both)
        assert list(listing.pods) == ["u-new"]
        assert listing.warnings == [
            "pod llm/p1 is listed twice with different uids; the one created later counts"
        ]
