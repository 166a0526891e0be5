"""What is used of a node's devices, what is free, and which pods hold nothing."""

from __future__ import annotations

from sizing.inventory.kubernetes.counted import Need
from tests.kubernetes.parts import GPU, H100, counted, counted_node, node, pod


def test_free_is_allocatable_minus_used_and_never_below_zero() -> None:
    found = counted_node(node({GPU: 8}, H100, {GPU: 5}), pod({GPU: 6})).resources[GPU]
    assert (found.capacity, found.allocatable, found.used, found.free, found.overcommitted) == (8, 5, 6, 0, 1)


def test_an_unhealthy_gpu_is_not_free_when_the_other_seven_are_used() -> None:
    found = counted_node(node({GPU: 8}, H100, {GPU: 7}), pod({GPU: 7}))
    assert found.resources[GPU].free == 0
    assert found.details["unhealthy"] == 1
    assert found.pools[0].withdrawn == 1


def test_pods_that_ended_hold_nothing_and_those_pending_on_a_node_or_being_deleted_do() -> None:
    found = counted(
        node({GPU: 8}, H100),
        pod({GPU: 1}, name="done", phase="Succeeded"),
        pod({GPU: 1}, name="evicted", phase="Failed", reason="Evicted"),
        pod({GPU: 2}, name="starting", phase="Pending"),
        pod({GPU: 3}, name="going", deleting=True),
        pod({GPU: 1}, name="lost", phase="Unknown"),
    )
    assert found.nodes["n1"].resources[GPU].used == 6
    assert [one.name for one in found.ended] == ["done", "evicted"]
    assert [one.name for one in found.terminating] == ["going"]
    assert "llm/done" not in found.needs


def test_a_pod_of_a_node_that_is_not_listed_is_an_orphan_and_uses_nothing() -> None:
    found = counted(node({GPU: 8}, H100), pod({GPU: 4}, on="gone"), pod({"cpu": 100}, on="gone", name="p2"))
    assert found.nodes["n1"].resources[GPU].used == 0
    assert [one.name for one in found.orphans] == ["p1"]


def test_a_pod_without_a_node_waits_and_one_that_asks_for_zero_devices_does_not() -> None:
    found = counted(node({GPU: 8}, H100), pod({GPU: 4}, on=""), pod({GPU: 0}, on="", name="zero"))
    assert [one.name for one in found.unplaced] == ["p1"]
    assert found.needs == {"llm/p1": [Need(GPU, 4)]}


def test_host_cpu_memory_and_pods_are_used_by_every_bound_pod() -> None:
    host = {"cpu": 96000, "memory": 1024, "pods": 110}
    found = counted_node(
        node({GPU: 8, **host}, H100),
        pod({GPU: 1, "cpu": 4000, "memory": 100}),
        pod({"cpu": 500}, name="p2"),
        pod({"cpu": 9000}, name="p3", phase="Succeeded"),
    ).host
    assert (found.cpu, found.cpu_used, found.memory, found.memory_used) == (96000, 4500, 1024, 100)
    assert (found.pods, found.pods_used) == (110, 2)


def test_a_host_resource_that_is_not_told_is_unknown() -> None:
    assert counted_node(node({GPU: 8}, H100)).host.cpu is None


def test_devices_that_pods_hold_beyond_the_capacity_are_rows_and_withdrawn() -> None:
    pool = counted_node(node({GPU: 4}, H100, {GPU: 4}), pod({GPU: 6})).pools[0]
    assert (len(pool.devices), pool.withdrawn) == (6, 2)


def test_a_node_of_which_nothing_is_allocatable_or_held_has_no_devices_to_store() -> None:
    assert counted_node(node({GPU: 16}, H100, {GPU: 0})).pools == []


def test_devices_held_on_a_node_that_offers_none_are_kept_and_told() -> None:
    found = counted(node({}, H100), pod({GPU: 2}))
    assert found.nodes["n1"].resources == {}
    assert [(p.resource, len(p.devices), p.withdrawn) for p in found.nodes["n1"].pools] == [(GPU, 2, 2)]
    assert "node n1: pods hold 2 nvidia.com/gpu, which the node does not offer" in found.warnings


def test_devices_reserved_for_nominated_pods_are_told_but_not_subtracted() -> None:
    found = counted_node(node({GPU: 8}, H100), pod({GPU: 4}, on="", nominated="n1"))
    assert found.details["reserved_by_nominated"] == {GPU: 4}
    assert found.resources[GPU].free == 8


def test_devices_held_by_pods_of_negative_priority_are_told() -> None:
    found = counted_node(
        node({GPU: 8}, H100), pod({GPU: 4}, priority=-1), pod({GPU: 4}, name="p2", priority=0)
    )
    assert found.details["used_below_priority"] == {"0": 4}


def test_memory_and_core_shares_and_network_devices_are_no_accelerators() -> None:
    offers = {GPU: 1, "nvidia.com/gpumem": 20000, "nvidia.com/hostdev": 8, "rdma/hca": 1, "intel.com/sgx": 1}
    assert list(counted_node(node(offers, H100)).resources) == [GPU]


def test_a_monitoring_resource_and_shares_of_intel_are_no_accelerators() -> None:
    offers = {
        "gpu.intel.com/i915": 2,
        "gpu.intel.com/i915_monitoring": 1,
        "gpu.intel.com/millicores": 2000,
        "gpu.intel.com/memory.max": 2**36,
        "gpu.intel.com/tiles": 4,
    }
    assert list(counted_node(node(offers)).resources) == ["gpu.intel.com/i915"]
