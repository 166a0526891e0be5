"""Bringing a list in: one transaction, and what people keep stays."""

import json
from decimal import Decimal

import pytest

from sizing.inventory.kubernetes.reading import read_listing
from sizing.models import Gpu, MappingRule, Measurement, Node, Replica, ServedModel, Target, Variant
from sizing.services.inventory import dump, load_document
from sizing.syncing.bringing import RefusedError, bring, consider

pytestmark = pytest.mark.django_db


def node(name, gpus=8, **more):
    quantities = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": gpus}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"},
        },
        "spec": more,
        "status": {
            "capacity": quantities,
            "allocatable": quantities,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name, on=None, gpus=1, model="acme/small", priority=0, **metadata):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "llm", "uid": f"pod-{name}", **metadata},
        "spec": {
            "nodeName": on,
            "priority": priority,
            "containers": [
                {
                    "name": "main",
                    "args": ["--model", model] if model else ["sleep"],
                    "resources": {"limits": {"nvidia.com/gpu": gpus}},
                }
            ],
        },
        "status": {
            "phase": "Running" if on else "Pending",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def listing(*items, **metadata):
    return read_listing(json.dumps({"kind": "List", "metadata": metadata, "items": items}).encode())


def placement(name):
    return sorted(Replica.objects.get(name=name).gpus.values_list("node__name", "index"))


HAND = {
    "version": 1,
    "nodes": [{"name": "bare", "gpus": [{"type": "L4", "memory_mib": 23034, "count": 2}]}],
    "profiles": [{"name": "chat", "input_tokens": 10, "output_tokens": 10, "slo": {"ttft_ms": 500}}],
    "models": [
        {
            "name": "acme/small",
            "priority": 70,
            "min_replicas": 1,
            "owner": "search",
            "variants": [{"name": "one", "gpus": 1, "gpu_types": ["H100-80GB-HBM3"], "cpu_millis": 1000}],
        },
        {"name": "hand", "variants": [{"name": "v"}]},
    ],
    "measurements": [
        {
            "model": "acme/small",
            "variant": "one",
            "profile": "chat",
            "tok_per_sec": 500,
            "measured_at": "2026-11-01T00:00:00Z",
        }
    ],
    "replicas": [
        {
            "name": "hand-0",
            "model": "hand",
            "variant": "v",
            "placement": [{"node": "bare", "gpus": [0]}],
        }
    ],
    "targets": [{"model": "acme/small", "profile": "chat", "tokens_per_sec": 1000}],
}


def test_what_people_keep_stays_and_the_hand_made_variant_is_used():
    load_document(HAND)
    bring(listing(node("a"), pod("p", "a", priority=5)))
    bring(listing(node("b"), pod("q", "b")))
    model = ServedModel.objects.get(name="acme/small")
    assert (model.priority, model.min_replicas, model.owner, model.source) == (70, 1, "search", "")
    assert list(Replica.objects.order_by("name").values_list("name", "variant__name", "source")) == [
        ("hand-0", "v", ""),
        ("llm/q", "one", "kubernetes"),
    ]
    assert list(Node.objects.order_by("name").values_list("name", "source")) == [
        ("b", "kubernetes"),
        ("bare", ""),
    ]
    assert (Measurement.objects.count(), Target.objects.count()) == (1, 1)
    assert list(Variant.objects.filter(model=model).values_list("name", "cpu_millis")) == [("one", 1000)]


def test_a_dry_run_says_what_a_real_one_does_and_changes_nothing():
    bring(listing(node("a"), node("gone"), pod("p", "a"), pod("old", "gone")))
    after = listing(node("a", gpus=7), node("new"), pod("p", "new"), pod("q", "a"))
    before = sorted(Node.objects.values_list("name", flat=True))
    considered = consider(after)
    assert sorted(Node.objects.values_list("name", flat=True)) == before
    done = bring(after)
    assert considered.difference.as_json() == done.difference.as_json()
    assert (considered.rows, considered.refusals) == (None, [])
    nodes, replicas = done.difference.nodes, done.difference.replicas
    assert (nodes.added, nodes.gone, nodes.changed) == (["new"], ["gone"], ["a"])
    assert nodes.details == {"a": ["healthy GPUs 8 → 7"]}
    assert (replicas.added, replicas.gone, replicas.moved) == (["llm/q"], ["llm/old"], ["llm/p"])
    assert replicas.details == {"llm/p": ["a GPU 0 → new GPU 0"]}


def test_the_same_list_again_writes_no_row():
    items = (node("a"), node("b"), pod("p", "a", 4), pod("q", "b", 2, model=""), pod("w"))
    first = bring(listing(*items))
    assert first.rows is not None
    assert first.rows["created"] == {"nodes": 2, "gpus": 16, "models": 2, "variants": 3, "replicas": 3}
    again = bring(listing(*reversed(items)))
    assert not again.difference
    assert again.rows == {"created": {}, "updated": {}, "removed": {}}


@pytest.mark.parametrize(
    ("items", "metadata", "says"),
    [
        ([node("a"), pod("p", "a")], {"continue": "xyz", "remainingItemCount": 3}, "3 more items"),
        ([node("a")], {}, "the list has nodes but no pods"),
    ],
)
def test_a_list_that_is_not_whole_is_refused_and_changes_nothing(items, metadata, says):
    bring(listing(node("kept"), pod("r", "kept")))
    with pytest.raises(RefusedError, match=says):
        bring(listing(*items, **metadata))
    assert says in consider(listing(*items, **metadata)).refusals[0]
    assert list(Node.objects.values_list("name", flat=True)) == ["kept"]
    assert list(Replica.objects.values_list("name", flat=True)) == ["llm/r"]


def test_a_partial_list_leaves_what_it_does_not_name_and_places_around_it():
    bring(listing(node("a"), node("b"), pod("p", "a", 2)))
    bring(listing(node("a"), pod("q", "a", 1)), partial=True)
    assert sorted(Node.objects.values_list("name", flat=True)) == ["a", "b"]
    assert placement("llm/p") == [("a", 0), ("a", 1)]
    assert placement("llm/q") == [("a", 2)]


@pytest.mark.parametrize("items", [[], [pod("p", "a")]])
def test_a_list_without_nodes_removes_none(items):
    bring(listing(node("a"), pod("p", "a")))
    outcome = bring(listing(*items))
    assert not outcome.difference
    assert Node.objects.get().name == "a"
    assert placement("llm/p") == [("a", 0)]
    assert "the list has no nodes; nodes and replicas stay as they are" in outcome.warnings


def test_a_live_list_without_nodes_is_a_fault():
    with pytest.raises(RefusedError, match="the cluster lists no nodes"):
        bring(listing(pod("p", "a")), live=True)


def test_a_node_that_cannot_be_read_stays_as_it_was_with_its_replicas():
    bring(listing(node("a"), node("b"), pod("p", "a")))
    outcome = bring(listing(node("a", gpus="four"), node("b"), pod("p", "a"), pod("q", "b")))
    assert Gpu.objects.filter(node__name="a").count() == 8
    assert placement("llm/p") == [("a", 0)]
    assert outcome.difference.nodes.gone == []
    assert [i for i in outcome.ignored if i["kind"] == "Node"] == [
        {"kind": "Node", "reason": "nvidia.com/gpu 'four' is no quantity", "count": 1, "examples": ["a"]}
    ]


def test_other_workloads_hold_their_gpus_and_go_when_they_are_over():
    job = {"ownerReferences": [{"kind": "Job", "name": "train", "controller": True}]}
    bring(listing(node("a"), pod("train-x", "a", 3, model="", priority=-1, **job)))
    other = ServedModel.objects.get()
    assert (other.name, other.workload, other.priority, other.source) == (
        "llm/train",
        "other",
        -1,
        "kubernetes",
    )
    assert len(placement("llm/train-x")) == 3
    outcome = bring(listing(node("a"), pod("p", "a")))
    assert outcome.difference.models.gone == ["llm/train"]
    assert list(ServedModel.objects.values_list("name", flat=True)) == ["acme/small"]


def test_a_served_model_stays_when_its_last_replica_is_gone():
    bring(listing(node("a"), pod("p", "a")))
    bring(listing(node("a"), pod("q", "a", model="acme/large")))
    assert sorted(ServedModel.objects.values_list("name", flat=True)) == ["acme/large", "acme/small"]


def test_pods_of_one_model_keep_priorities_of_their_own():
    bring(listing(node("a"), pod("p", "a", priority=100), pod("q", "a", priority=10)))
    assert ServedModel.objects.get().priority == 100
    assert list(Replica.objects.order_by("name").values_list("name", "priority")) == [
        ("llm/p", None),
        ("llm/q", 10),
    ]


def test_a_replica_kept_by_hand_on_a_node_of_the_cluster_gives_way_to_its_pods():
    load_document(
        {
            "version": 1,
            "nodes": [{"name": "a", "cost_per_hour": 12.5, "gpus": [{"type": "H100", "count": 8}]}],
            "models": [{"name": "hand", "variants": [{"name": "v"}]}],
            "replicas": [
                {"name": "h", "model": "hand", "variant": "v", "placement": [{"node": "a", "gpus": [0]}]}
            ],
        }
    )
    outcome = bring(listing(node("a"), pod("p", "a")))
    assert list(Replica.objects.values_list("name", flat=True)) == ["llm/p"]
    assert ServedModel.objects.filter(name="hand").exists()
    assert Node.objects.get().cost_per_hour == Decimal("12.5")
    assert any('"h"' in warning for warning in outcome.warnings)


def test_a_mark_that_people_set_stays():
    bring(listing(node("a"), pod("p", "a")))
    Replica.objects.update(benchable=True)
    bring(listing(node("a"), pod("p", "a"), pod("q", "a")))
    assert Replica.objects.get(name="llm/p").benchable is True


def test_a_guard_that_raises_leaves_everything():
    class LostError(Exception):
        pass

    def lost():
        raise LostError

    with pytest.raises(LostError):
        bring(listing(node("a"), pod("p", "a")), guard=lost)
    assert not Node.objects.exists()


def test_a_pod_that_becomes_another_model_leaves_no_empty_workload_behind():
    bring(listing(node("a"), pod("x", "a", model="")))
    assert ServedModel.objects.get().workload == "other"
    named = pod("x", "a", model="", labels={"llmgw-admin/model": "my/llm"})
    outcome = bring(listing(node("a"), named))
    assert (outcome.difference.models.added, outcome.difference.models.gone) == (["my/llm"], ["llm/x"])
    assert not bring(listing(node("a"), named)).difference


def test_a_pattern_that_takes_for_ever_is_left_out_with_a_warning():
    MappingRule.objects.create(name="slow", by="label", key="app", pattern="(a|aa)+", model="m")
    outcome = bring(listing(node("a"), pod("p", "a", labels={"app": "a" * 60 + "c"})))
    assert 'rule "slow" is left out: its pattern takes too long' in outcome.warnings
    assert Replica.objects.get().variant.model.name == "acme/small"


def test_what_a_list_says_oddly_can_be_loaded_again_as_an_inventory():
    odd = node(
        "a", taints=[{"key": "k", "effect": "NoSchedule"}, {"key": "k", "effect": "NoSchedule"}, {"key": "x"}]
    )
    odd["metadata"]["labels"][""] = "v"
    asks = pod("p", "a")
    asks["spec"]["tolerations"] = [
        {"key": "sla", "operator": "Gt", "value": "900", "effect": "NoSchedule"},
        {"key": "k", "operator": "Exists", "effect": "Never"},
        {"key": "k", "operator": "Exists", "value": "v"},
    ]
    bring(listing(odd, asks))
    assert Node.objects.get().taints == [{"key": "k", "effect": "NoSchedule"}]
    assert Variant.objects.get().tolerations == [{"key": "k", "operator": "Exists"}]
    before = dump()
    load_document(before)
    assert dump() == before


def test_pods_that_cannot_be_read_are_not_told_as_none():
    with pytest.raises(RefusedError, match=r"can be read .container main: nvidia\.com/gpu 'four' is no"):
        bring(listing(node("a"), pod("p", "a", gpus="four")))
