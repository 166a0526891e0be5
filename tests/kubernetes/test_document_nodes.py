"""The cluster's nodes and their GPUs as entries of the inventory."""

from __future__ import annotations

from decimal import Decimal

from sizing.domain.specs import Taint
from sizing.inventory.document import Document, GpuEntry, NodeEntry, ReplicaEntry
from sizing.inventory.kubernetes.counted import Counted, Device, NodeCount, Pool
from sizing.inventory.kubernetes.facts import Listing
from tests.kubernetes.facts import H100, MIB, a_node, a_pod, brought, from_counted, gpus, unhealthy, variants


def only_node(**facts):
    return brought([a_node(**facts)], []).document.nodes["n1"]


def test_a_node_has_its_gpus_its_labels_and_the_taints_that_count():
    taints = (Taint("team", "a"), Taint("node.kubernetes.io/unschedulable"))
    node = only_node(gpus=2, taints=taints, unschedulable=True)
    assert node == NodeEntry(
        name="n1",
        schedulable=False,
        labels=H100,
        taints=(Taint("team", "a"),),
        cpu_millis=100_000,
        memory_mib=1000,
        pods=110,
        source="kubernetes",
    )
    gpu = GpuEntry(0, "NVIDIA-H100-80GB-HBM3", 81559)
    assert node.gpus == {0: gpu, 1: GpuEntry(1, gpu.type, gpu.memory_mib)}


def test_a_node_is_ready_unless_it_is_not_or_goes_or_its_mig_layout_is_changed():
    assert only_node().ready
    assert not only_node(ready="False").ready
    assert not only_node(ready="Unknown").ready
    assert not only_node(deleting=True).ready
    assert not only_node(labels=H100 | {"nvidia.com/mig.config.state": "pending"}).ready


def test_a_node_without_devices_is_kept():
    assert only_node(gpus=0, labels={}).gpus == {}


def test_what_is_free_of_the_host_is_what_all_pods_leave():
    pods = [
        a_pod("llama-0", requests={"cpu": 4000, "memory": 10 * MIB}),
        a_pod("plain", gpus=0, requests={"cpu": 1500, "memory": 5 * MIB + 1}),
    ]
    found = brought([a_node()], pods)
    node = found.document.nodes["n1"]
    spec = variants(found)["1x-h100-80gb-hbm3"].spec
    assert (spec.cpu_millis, spec.memory_mib) == (4000, 10)
    # One replica takes of these what its variant says; what is left is allocatable less all that is used.
    assert (node.cpu_millis, node.memory_mib, node.pods) == (
        100_000 - 5500 + 4000,
        1000 - 16 + 10,
        110 - 2 + 1,
    )


def test_the_host_is_never_below_nothing_and_what_is_not_told_stays_unknown():
    busy = a_pod("plain", gpus=0, requests={"cpu": 200_000})
    assert brought([a_node()], [busy]).document.nodes["n1"].cpu_millis == 0
    node = a_node()
    node.allocatable = {"nvidia.com/gpu": 8}
    node.capacity = {"nvidia.com/gpu": 8}
    entry = brought([node], []).document.nodes["n1"]
    assert (entry.cpu_millis, entry.memory_mib, entry.pods) == (None, None, None)


def test_what_the_cluster_does_not_tell_of_a_node_stays():
    before = {
        0: GpuEntry(0, "h100 80gb hbm3", None, uuid="GPU-a", used_outside_mib=7),
        1: GpuEntry(1, "L4", uuid="GPU-b"),
    }
    stored = Document(nodes={"n1": NodeEntry("n1", cost_per_hour=Decimal("31.2"), gpus=before)})
    found = brought([a_node(gpus=2)], [], stored=stored)
    assert found.document.nodes["n1"].cost_per_hour == Decimal("31.2")
    assert [(g.uuid, g.used_outside_mib, g.memory_mib) for g in gpus(found).values()] == [
        ("GPU-a", 7, 81559),
        ("", 0, 81559),
    ]


def test_a_uuid_that_is_told_twice_is_given_once():
    device = Device("L4", 23034, uuid="GPU-a")
    counted = Counted(Listing())
    for name in ("n1", "n2"):
        counted.nodes[name] = NodeCount(a_node(name), pools=[Pool("nvidia.com/gpu", [device])])
    found = from_counted(counted)
    assert [gpus(found, name)[0].uuid for name in ("n1", "n2")] == ["GPU-a", ""]


# Withdrawn devices --------------------------------------------------------------------------------


def test_withdrawn_devices_are_free_ones_first():
    assert unhealthy(brought([a_node(withdrawn=1)], [a_pod(gpus=6)])) == [7]
    assert unhealthy(brought([a_node(withdrawn=3)], [a_pod(gpus=6)])) == [5, 6, 7]


def test_more_held_than_allocatable_leaves_nothing_free():
    found = brought([a_node(gpus=8, withdrawn=3)], [a_pod(gpus=6)])
    held = dict(found.document.replicas["llm/llama-0"].placement)["n1"]
    bad = unhealthy(found)
    assert len({*held, *bad}) == 8


def test_more_held_than_there_are_is_shown_with_gpus_that_are_out_of_order():
    found = brought([a_node(gpus=4)], [a_pod("a", gpus=4), a_pod("b", gpus=2)])
    held = [i for r in found.document.replicas.values() for i in dict(r.placement)["n1"]]
    assert sorted(held) == [0, 1, 2, 3, 4, 5]
    assert len(unhealthy(found)) == 2


def test_the_same_devices_stay_withdrawn_while_they_are_free():
    before = {i: GpuEntry(i, "NVIDIA-H100-80GB-HBM3", 81559, healthy=i != 2) for i in range(8)}
    stored = Document(nodes={"n1": NodeEntry("n1", gpus=before)})
    found = brought([a_node(withdrawn=1)], [a_pod(gpus=4)], stored=stored)
    assert unhealthy(found) == [2]
    assert found.document.replicas["llm/llama-0"].placement == (("n1", (0, 1, 3, 4)),)


def test_a_device_that_is_held_is_taken_for_withdrawn_only_where_none_is_free():
    before = {i: GpuEntry(i, "NVIDIA-H100-80GB-HBM3", 81559, healthy=i != 2) for i in range(8)}
    replica = ReplicaEntry("llm/llama-0", "m", "v", placement=(("n1", (2,)),), source="kubernetes")
    stored = Document(nodes={"n1": NodeEntry("n1", gpus=before)}, replicas={"llm/llama-0": replica})
    found = brought([a_node(withdrawn=1)], [a_pod()], stored=stored)
    assert found.document.replicas["llm/llama-0"].placement == (("n1", (2,)),)
    assert unhealthy(found) == [7]
