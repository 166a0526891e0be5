"""Models, variants and replicas of a cluster beside those that people keep by hand."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from sizing.domain.specs import Toleration, VariantSpec
from sizing.inventory.document import Document, ModelEntry, NodeEntry, ReplicaEntry, VariantEntry
from sizing.inventory.kubernetes.facts import ClaimFacts
from tests.kubernetes.facts import A100, H100, NOON, a_node, a_pod, brought, variants
from tests.kubernetes.test_mapping_replicas import lws

TYPE = "NVIDIA-H100-80GB-HBM3"


def variant_of(found, replica="llm/llama-0"):
    entry = found.document.replicas[replica]
    return variants(found, entry.model)[entry.variant]


def by_hand(*specs: VariantSpec, **facts) -> Document:
    entries = {spec.name: VariantEntry(spec, at) for at, spec in enumerate(specs)}
    return Document(models={"org/llama": ModelEntry("org/llama", variants=entries, **facts)})


def test_a_variant_is_what_the_pod_asks_for():
    pod = a_pod(
        gpus=4,
        requests={"cpu": 12_000, "memory": 2**30 + 1},
        node_selector={"pool": "h100"},
        selector_terms=((("zone", "In", ("a",)),),),
        tolerations=(
            Toleration("team", value="a", effect="NoSchedule"),
            Toleration("node.kubernetes.io/not-ready", "Exists", effect="NoExecute"),
        ),
    )
    found = brought([a_node()], [pod])
    assert variants(found) == {
        "4x-h100-80gb-hbm3": VariantEntry(
            VariantSpec(
                name="4x-h100-80gb-hbm3",
                gpus=4,
                gpu_types=(TYPE,),
                node_selector=(("pool", "h100"), ("zone", "a")),
                tolerations=(Toleration("team", value="a", effect="NoSchedule"),),
                cpu_millis=12_000,
                memory_mib=1025,
            ),
            position=0,
            source="kubernetes",
        )
    }
    assert found.warnings == []


def test_a_model_and_its_replicas_come_from_the_cluster():
    found = brought([a_node()], [a_pod(priority=7, started_at=NOON)])
    assert found.document.models["org/llama"] == ModelEntry("org/llama", priority=7, source="kubernetes")
    assert found.document.replicas["llm/llama-0"] == ReplicaEntry(
        "llm/llama-0",
        "org/llama",
        "1x-h100-80gb-hbm3",
        started_at=NOON,
        placement=(("n1", (0,)),),
        source="kubernetes",
    )


def test_each_shape_is_a_variant_and_the_newest_pod_says_what_it_asks_for():
    pods = [
        a_pod("a", requests={"cpu": 1000}, created_at=NOON),
        a_pod("b", requests={"cpu": 2000}, created_at=NOON + timedelta(hours=1)),
        a_pod("c", "n2"),
        a_pod("d", gpus=2),
    ]
    found = brought([a_node("n1"), a_node("n2", labels=A100)], pods)
    assert {name: (v.position, v.spec.cpu_millis) for name, v in variants(found).items()} == {
        "1x-a100-sxm4-80gb": (0, 0),
        "1x-h100-80gb-hbm3": (1, 2000),
        "2x-h100-80gb-hbm3": (2, 0),
    }


def test_affinities_that_are_no_selector_are_told():
    pod = a_pod(selector_terms=((("zone", "In", ("a", "b")), ("old", "DoesNotExist", ())),))
    found = brought([a_node()], [pod])
    assert variant_of(found).spec.node_selector == ()
    assert found.warnings == [
        'variant "1x-h100-80gb-hbm3" of model "org/llama" does not keep the node affinity of its pods:'
        " zone In a, b; old DoesNotExist"
    ]


def test_pods_that_must_stand_apart_are_told():
    found = brought([a_node()], [a_pod(apart=("kubernetes.io/hostname",))])
    assert found.warnings == [
        'variant "1x-h100-80gb-hbm3" of model "org/llama" does not keep that its pods stand apart from others'
        " by kubernetes.io/hostname (podAntiAffinity); the room may be less"
    ]


def test_a_pod_that_waits_is_of_the_variant_that_it_may_become():
    found = brought([a_node()], [a_pod("a", gpus=4), a_pod("b", "", 4), a_pod("c", "", 2)])
    assert found.document.replicas["llm/b"].variant == "4x-h100-80gb-hbm3"
    assert found.document.replicas["llm/c"].variant == "2x"
    assert variants(found)["2x"].spec.gpu_types == ()


def test_a_pod_that_waits_for_a_partition_names_its_types():
    sliced = H100 | {"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "4"}
    found = brought([a_node(labels=sliced)], [a_pod(node="")])
    assert variant_of(found).spec.gpu_types == (f"{TYPE}-SHARED",)
    # Where there are whole GPUs as well, any may do.
    found = brought([a_node(labels=sliced), a_node("n2")], [a_pod(node="")])
    assert variant_of(found).spec.gpu_types == ()


# Groups -------------------------------------------------------------------------------------------

TWO = [a_node("n1"), a_node("n2")]
CHANNEL = {"compute-domain-default-channel.nvidia.com": 1}


def test_a_group_is_a_variant_over_its_nodes():
    found = brought(TWO, [lws(0, requests={"cpu": 1000}), lws(1, "n2", requests={"cpu": 3000})])
    spec = variant_of(found, "llm/r1-0").spec
    assert (spec.name, spec.gpus, spec.nodes) == ("8x-h100-80gb-hbm3-2n", 8, 2)
    assert (spec.cpu_millis, spec.topology_key) == (3000, None)


def test_a_group_that_lacks_a_pod_is_of_the_variant_of_the_whole_one():
    size = {"leaderworkerset.sigs.k8s.io/size": "2"}
    found = brought(TWO, [lws(0, gpus=4, annotations=size)])
    assert variant_of(found, "llm/r1-0").name == "4x-h100-80gb-hbm3-2n"
    assert found.document.replicas["llm/r1-0"].state == "failed"


@pytest.mark.parametrize(
    ("nodes", "size", "variant"),
    [
        (["n1", "n1", "n2"], 3, (4, 3, 7)),  # 12 GPUs: two nodes of 8 would be 16
        (["n1", "n1", "n2"], 4, (4, 4, 7)),
        (["n1", "n1", ""], 3, (4, 3, 7)),
        (["n1", "n1", "n2", "n2"], 4, (8, 2, 14)),
        (["n1", "n1"], 4, (8, 2, 14)),
    ],
)
def test_pods_that_lie_unevenly_are_taken_one_by_one(nodes, size, variant):
    told = {"leaderworkerset.sigs.k8s.io/size": str(size)}
    pods = [lws(n, node, gpus=4, annotations=told, requests={"cpu": 7}) for n, node in enumerate(nodes)]
    found = brought(TWO, pods)
    spec = variant_of(found, "llm/r1-0").spec
    assert (spec.gpus, spec.nodes, spec.cpu_millis) == variant
    bound = [node for node in nodes if node]
    placement = tuple((node, tuple(range(4 * bound.count(node)))) for node in sorted(set(bound)))
    assert found.document.replicas["llm/r1-0"].placement == placement


def test_pods_of_different_size_make_a_variant_of_the_largest():
    found = brought(TWO, [lws(0, gpus=4), lws(1, "n2", gpus=8)])
    spec = variant_of(found, "llm/r1-0").spec
    assert (spec.gpus, spec.nodes) == (8, 2)


def test_pods_of_a_group_on_one_node_are_one_node_of_it():
    found = brought([a_node()], [lws(0, gpus=2, requests={"cpu": 10}), lws(1, gpus=2, requests={"cpu": 5})])
    spec = variant_of(found, "llm/r1-0").spec
    assert (spec.gpus, spec.nodes, spec.cpu_millis) == (4, 1, 15)


@pytest.mark.parametrize(
    ("facts", "tables", "key"),
    [
        ({"annotations": {"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}}, {}, "rack"),
        (
            {"selector_terms": ((("nvidia.com/gpu.clique", "Exists", ()),),)},
            {},
            "nvidia.com/gpu.clique",
        ),
        (
            {"claims": ("channel",)},
            {
                "claims": {
                    ("llm", "channel"): ClaimFacts(
                        "llm", "channel", {"compute-domain-default-channel.nvidia.com": 1}
                    )
                }
            },
            "nvidia.com/gpu.clique",
        ),
    ],
)
def test_what_the_nodes_of_a_group_share(facts, tables, key):
    pods = [lws(0, gpus=4, **facts), lws(1, "n2", gpus=4, **facts)]
    spec = variant_of(brought(TWO, pods, **tables), "llm/r1-0").spec
    assert spec.topology_key == key


def test_the_hosts_of_a_tpu_slice_share_their_node_pool():
    labels = {"cloud.google.com/gke-nodepool": "a", "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite"}
    tpu = "google.com/tpu"
    nodes = [a_node(name, 4, resource=tpu, labels=labels) for name in ("n1", "n2")]
    found = brought(nodes, [lws(0, gpus=4, resource=tpu), lws(1, "n2", gpus=4, resource=tpu)])
    assert variant_of(found, "llm/r1-0").spec.topology_key == "cloud.google.com/gke-nodepool"


# Names of variants --------------------------------------------------------------------------------


def test_a_label_names_the_variant():
    found = brought([a_node()], [a_pod(labels={"llmgw-admin/model": "m", "llmgw-admin/variant": "fp8"})])
    assert variant_of(found).name == "fp8"


def test_one_name_for_two_shapes_stays_with_the_one_that_has_it():
    labels = {"llmgw-admin/model": "m", "llmgw-admin/variant": "fp8"}
    large = a_pod("a", gpus=4, labels=labels)
    before = brought([a_node()], [large])
    after = brought([a_node()], [large, a_pod("b", gpus=2, labels=labels)], stored=before.document)
    assert after.document.replicas["llm/a"].variant == "fp8"
    assert after.document.replicas["llm/b"].variant == "fp8-2x-h100-80gb-hbm3"


# Beside what people keep --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        VariantSpec("mine", gpus=4),
        VariantSpec("mine", gpus=4, gpu_types=("H100 80GB HBM3",)),
        VariantSpec("mine", gpus=4, gpu_types=("L4", TYPE), cpu_millis=1, topology_key="rack"),
    ],
)
def test_a_variant_kept_by_hand_that_fits_is_used_and_not_changed(spec):
    stored = by_hand(VariantSpec("small"), spec)
    found = brought([a_node()], [a_pod(gpus=4)], stored=stored)
    assert found.document.replicas["llm/llama-0"].variant == "mine"
    assert variants(found) == stored.models["org/llama"].variants


@pytest.mark.parametrize(
    "spec",
    [
        VariantSpec("mine", gpus=2),
        VariantSpec("mine", gpus=4, nodes=2),
        VariantSpec("mine", gpus=4, gpu_memory_mib=60000),
        VariantSpec("mine", gpus=4, gpu_memory_fraction=Decimal(1)),
        VariantSpec("mine", gpus=4, gpu_types=("NVIDIA-L4",)),
    ],
)
def test_a_variant_kept_by_hand_that_does_not_fit_gets_one_of_the_cluster_beside_it(spec):
    stored = by_hand(spec)
    found = brought([a_node()], [a_pod(gpus=4)], stored=stored)
    assert list(variants(found)) == ["mine", "4x-h100-80gb-hbm3"]
    assert variants(found)["mine"] == VariantEntry(spec, 0)
    assert (variant_of(found).position, variant_of(found).source) == (1, "kubernetes")


def test_a_label_chooses_among_the_variants_kept_by_hand():
    stored = by_hand(VariantSpec("bf16"), VariantSpec("fp8"))
    labels = {"llmgw-admin/model": "org/llama", "llmgw-admin/variant": "fp8"}
    found = brought([a_node()], [a_pod(labels=labels), a_pod("b")], stored=stored)
    assert found.document.replicas["llm/llama-0"].variant == "fp8"
    assert found.document.replicas["llm/b"].variant == "bf16"


def test_a_variant_kept_by_hand_that_is_not_like_its_pods_is_told():
    labels = {"llmgw-admin/model": "org/llama", "llmgw-admin/variant": "fp8"}
    found = brought([a_node()], [a_pod(labels=labels)], stored=by_hand(VariantSpec("fp8", gpus=8)))
    assert variant_of(found).name == "fp8-1x-h100-80gb-hbm3"
    assert found.warnings == [
        'variant "fp8" of model "org/llama" is kept by hand and not like the pods that name it,'
        " which are 1x-h100-80gb-hbm3"
    ]


def test_a_model_kept_by_hand_is_not_changed():
    stored = by_hand(VariantSpec("mine"), priority=50, min_replicas=2, preemption_policy="Never", owner="us")
    found = brought([a_node()], [a_pod(priority=9)], stored=stored)
    assert found.document.models["org/llama"] == stored.models["org/llama"]


def test_a_model_of_the_cluster_is_updated_and_keeps_what_people_set():
    stored = by_hand(VariantSpec("mine", gpus=8), priority=50, max_replicas=3, default_profile="chat")
    stored.models["org/llama"].source = "kubernetes"
    found = brought([a_node()], [a_pod(priority=9)], stored=stored)
    assert found.document.models["org/llama"] == ModelEntry(
        "org/llama", priority=9, max_replicas=3, default_profile="chat", source="kubernetes"
    )
    assert list(variants(found)) == ["mine", "1x-h100-80gb-hbm3"]


def test_replicas_say_their_priority_where_it_is_not_their_models():
    pods = [a_pod("a", priority=100), a_pod("b", priority=10)]
    replicas = brought([a_node()], pods).document.replicas
    assert [replicas[name].priority for name in ("llm/a", "llm/b")] == [None, 10]


def test_another_workload_never_becomes_a_model_that_people_keep():
    stored = Document(models={"llm/lab": ModelEntry("llm/lab", variants={})})
    found = brought([a_node()], [a_pod(words=(), owner=("StatefulSet", "lab"))], stored=stored)
    assert list(found.document.models) == ["llm/lab (other)"]
    assert found.document.replicas["llm/llama-0"].model == "llm/lab (other)"


def test_what_people_set_on_a_replica_stays_where_the_cluster_says_nothing():
    replica = ReplicaEntry("llm/llama-0", "x", "y", endpoint="http://10.0.0.9:1/v1", benchable=True)
    stored = Document(replicas={"llm/llama-0": replica})
    found = brought([a_node()], [a_pod()], stored=stored).document.replicas["llm/llama-0"]
    assert (found.endpoint, found.benchable) == ("http://10.0.0.9:1/v1", True)
    told = a_pod(annotations={"llmgw-admin/benchable": "false"})
    found = brought([a_node()], [told], stored=stored).document.replicas["llm/llama-0"]
    assert found.benchable is False


def test_replicas_kept_by_hand_on_the_clusters_nodes_are_displaced():
    stored = Document(nodes={"mine": NodeEntry("mine"), "n1": NodeEntry("n1")})
    for name, node in (("here", "n1"), ("there", "mine"), ("llm/llama-0", "n1")):
        stored.replicas[name] = ReplicaEntry(name, "m", "v", placement=((node, (0,)),))
    found = brought([a_node()], [a_pod()], stored=stored)
    assert found.displaced == ["here"]
    assert found.warnings == [
        '1 replica kept by hand on nodes of the cluster must go, since its pods are what runs there: "here"'
    ]
    assert list(found.document.replicas) == ["llm/llama-0"]


def test_what_becomes_nothing_is_counted_by_reason_with_five_examples():
    pods = [a_pod(f"plain-{n}", gpus=0) for n in range(7)]
    found = brought([a_node()], pods)
    assert found.ignored == [
        {
            "kind": "Pod",
            "reason": "asks for no device",
            "count": 7,
            "examples": [f"llm/plain-{n}" for n in range(5)],
        }
    ]
