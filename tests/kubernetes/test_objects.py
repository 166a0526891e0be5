"""Objects of the API as facts in a listing."""

from __future__ import annotations

from typing import Any

import pytest

from sizing.inventory.kubernetes import objects
from sizing.inventory.kubernetes.facts import BudgetFacts, Listing, Skipped
from tests.kubernetes.made import (
    Object,
    container,
    listed,
    node,
    pod,
    priority_class,
)


def test_other_kinds_are_counted_and_what_their_templates_ask_for_is_no_usage() -> None:
    template = {"spec": {"containers": [container(8)]}}
    listing = listed(
        {
            "kind": "Deployment",
            "apiVersion": "apps/v1",
            "metadata": {"name": "d"},
            "spec": {"template": template},
        },
        {"kind": "ConfigMap", "metadata": {"name": "a"}},
        {"kind": "ConfigMap", "metadata": {"name": "b"}},
        {"kind": "Node", "apiVersion": "management.cattle.io/v3", "metadata": {"name": "n"}},
        {"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "metadata": {"name": "j"}},
    )
    assert listing.other == {"Deployment": 1, "ConfigMap": 2, "Node": 1, "Job": 1}
    assert (listing.nodes, listing.pods, listing.skipped) == ({}, {}, [])
    assert listing.kinds == {"Deployment", "ConfigMap", "Node", "Job"}


@pytest.mark.parametrize("kind", [None, "", 7, ["Node"], "a\nb"])
def test_an_object_without_a_kind_is_skipped(kind: Any) -> None:
    listing = listed({"kind": kind, "metadata": {"name": "x"}})
    if kind == 7:
        assert listing.other == {"7": 1}
    else:
        assert listing.skipped == [Skipped("object", "x", "it has no kind")]


def test_owners_of_replica_sets_and_jobs_are_kept() -> None:
    def owned(kind: str, version: str, name: str, by: tuple[str, str]) -> Object:
        owner = {"kind": by[0], "name": by[1], "controller": True}
        return {
            "kind": kind,
            "apiVersion": version,
            "metadata": {"name": name, "namespace": "llm", "ownerReferences": [owner]},
        }

    listing = listed(
        owned("ReplicaSet", "apps/v1", "llama-66d9", ("Deployment", "llama")),
        owned("Job", "batch/v1", "eval-1", ("CronJob", "eval")),
        {"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": {"name": "bare", "namespace": "llm"}},
    )
    assert listing.owners == {
        ("ReplicaSet", "llm", "llama-66d9"): ("Deployment", "llama"),
        ("Job", "llm", "eval-1"): ("CronJob", "eval"),
    }


@pytest.mark.parametrize(
    ("kind", "version", "spec", "size"),
    [
        ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", {"leaderWorkerTemplate": {"size": 4}}, 4),
        ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", {}, 1),
        ("RayCluster", "ray.io/v1", {}, 1),
        (
            "RayCluster",
            "ray.io/v1",
            {"workerGroupSpecs": [{"replicas": 3}, {"replicas": 2, "numOfHosts": 4}]},
            12,
        ),
        (
            "RayCluster",
            "ray.io/v1",
            {"workerGroupSpecs": [{"minReplicas": 2}, {"replicas": 9, "maxReplicas": 5}]},
            8,
        ),
        ("RayCluster", "ray.io/v1", {"workerGroupSpecs": [{"replicas": 3, "suspend": True}]}, 1),
    ],
)
def test_a_group_tells_how_many_pods_it_has(kind: str, version: str, spec: Object, size: int) -> None:
    item = {"kind": kind, "apiVersion": version, "metadata": {"name": "g", "namespace": "llm"}, "spec": spec}
    assert listed(item).sizes == {(kind, "llm", "g"): size}


def budget(**spec: Any) -> Object:
    return {
        "kind": "PodDisruptionBudget",
        "apiVersion": "policy/v1",
        "metadata": {"name": "b", "namespace": "llm"},
        "spec": spec,
        "status": {"desiredHealthy": 2},
    }


def test_a_disruption_budget_is_read() -> None:
    expressions = [{"key": "tier", "operator": "Exists"}]
    selector = {"matchLabels": {"app": "llama"}, "matchExpressions": expressions}
    assert listed(budget(minAvailable="50%", selector=selector)).budgets == {
        ("llm", "b"): BudgetFacts("llm", "b", {"app": "llama"}, (("tier", "Exists", ()),), "50%", "", 2)
    }
    assert listed(budget(maxUnavailable=1, selector={})).budgets["llm", "b"].max_unavailable == "1"


SYNC_FAILED = {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed"}


@pytest.mark.parametrize(
    ("status", "desired", "frozen"),
    [
        ({"desiredHealthy": 3, "expectedPods": 4, "disruptionsAllowed": 1}, 3, False),
        # Before its controller has seen it, everything is 0.
        ({"desiredHealthy": 0, "expectedPods": 0, "disruptionsAllowed": 0}, None, False),
        ({"desiredHealthy": 0, "disruptionsAllowed": 0, "conditions": [SYNC_FAILED]}, None, True),
        ({"desiredHealthy": 3, "expectedPods": 4, "conditions": [SYNC_FAILED]}, None, True),
        ({"desiredHealthy": 3, "conditions": [SYNC_FAILED | {"reason": "InsufficientPods"}]}, 3, False),
        ({"desiredHealthy": 3, "conditions": [7, None]}, 3, False),
    ],
)
def test_the_figures_of_a_budget_that_could_not_be_worked_out_do_not_count(
    status: Object, desired: int | None, frozen: bool
) -> None:
    item = budget(maxUnavailable=1, selector={}) | {"status": status}
    found = listed(item).budgets["llm", "b"]
    assert (found.desired_healthy, found.frozen) == (desired, frozen)


def test_a_budget_without_a_selector_protects_nothing() -> None:
    listing = listed(budget(minAvailable=1))
    assert listing.budgets == {}
    assert listing.skipped[0].reason == "it has no selector, so it protects no pod"


ALL_KINDS = [
    node(),
    pod(),
    {"kind": "Pod", "metadata": {"name": "no-uid"}, "spec": {"containers": [container()]}},
    {
        "kind": "ResourceSlice",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": "s"},
        "spec": {"driver": "d"},
    },
    {
        "kind": "ResourceClaim",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": "c", "namespace": "x"},
    },
    {"kind": "DeviceClass", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "d"}},
    priority_class("gold", 1),
    budget(selector={}),
    {
        "kind": "ReplicaSet",
        "metadata": {"name": "r", "ownerReferences": [{"kind": "Deployment", "name": "d"}]},
    },
    {
        "kind": "RayCluster",
        "metadata": {"name": "r", "ownerReferences": [{"kind": "RayService", "name": "d"}]},
    },
    {"kind": "LeaderWorkerSet", "metadata": {"name": "l"}},
    {"kind": "ConfigMap", "metadata": {"name": "m"}},
    node("bad", status=None),
    pod("bad", spec={"containers": [container("x")]}),
]


@pytest.mark.parametrize("item", ALL_KINDS, ids=lambda item: f"{item['kind']}-{item['metadata']['name']}")
def test_what_is_removed_is_forgotten_altogether(item: Object) -> None:
    listing = listed(item)
    assert listing != Listing()
    objects.remove(listing, item)
    listing.kinds.clear()
    listing.warnings.clear()
    assert listing == Listing()
    objects.remove(listing, item)


@pytest.mark.parametrize("item", ALL_KINDS, ids=lambda item: f"{item['kind']}-{item['metadata']['name']}")
def test_what_is_replaced_is_no_duplicate(item: Object) -> None:
    listing = listed(item)
    objects.replace(listing, item)
    objects.finish(listing)
    assert listing == listed(item)


def test_a_node_that_was_made_anew_is_not_removed_with_the_old_one() -> None:
    listing = listed(node())
    gone = node()
    gone["metadata"]["uid"] = "another"
    objects.remove(listing, gone)
    assert list(listing.nodes) == ["n1"]


def test_a_node_that_was_skipped_counts_when_it_is_mended() -> None:
    listing = listed(node(status=None), pod())
    objects.replace(listing, node())
    objects.finish(listing)
    assert (list(listing.nodes), listing.skipped, listing.warnings) == (["n1"], [], [])
