"""Devices by dynamic resource allocation."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from sizing.inventory.kubernetes.counted import Device, Need
from sizing.inventory.kubernetes.counting import count
from sizing.inventory.kubernetes.facts import ClaimFacts, SliceDevice, SliceFacts, TaintRuleFacts
from sizing.inventory.kubernetes.report import report
from tests.kubernetes.parts import (
    GPU,
    H100,
    claim,
    counted,
    counted_node,
    gpu_device,
    gpu_slice,
    listing,
    node,
    pod,
    reported,
    taint,
)

MIG = {"type": "mig", "profile": "1g.5gb", "parentUUID": "GPU-0"}


def test_only_the_newest_generation_of_a_pool_counts_and_a_tainted_device_is_not_free() -> None:
    sick = gpu_device(3, taints=(taint("gpu.nvidia.com/xid", "79"),))
    found = counted(
        node(),
        gpu_slice(*(gpu_device(n) for n in range(5)), name="old", generation=1),
        gpu_slice(*(gpu_device(n) for n in range(3)), sick, name="new", generation=2),
        claim("gpu-0"),
        pod(claims=("c1",)),
    )
    here = found.nodes["n1"]
    assert here.details["dra"] == {
        "driver": "gpu.nvidia.com",
        "devices": 4,
        "allocated": 1,
        "tainted": 1,
        "free": 2,
        "stale_slices_ignored": ["old"],
    }
    assert (here.vendor, here.type, here.memory_mib, here.physical) == (
        "nvidia",
        "A100-SXM4-40GB",
        40960,
        4,
    )
    assert (here.resources, here.blocked) == ({}, [])
    assert here.pools[0].devices[3] == Device(
        "NVIDIA A100-SXM4-40GB", 40960, healthy=False, uuid="GPU-3", name="n1/gpu-3"
    )
    assert found.needs == {"llm/p1": [Need("gpu.nvidia.com", 1, names=("n1/gpu-0",))]}
    assert "node n1: stale resource slices were ignored: old" in found.warnings


def test_a_claim_that_pods_share_is_held_once_by_the_first_of_them() -> None:
    found = counted(
        node(),
        gpu_slice(gpu_device(0)),
        claim("gpu-0"),
        pod(claims=("c1",), name="b"),
        pod(claims=("c1",), name="a"),
    )
    dra = found.nodes["n1"].details["dra"]
    assert (dra["allocated"], dra["free"]) == (1, 0)
    assert found.needs["llm/a"] == [Need("gpu.nvidia.com", 1, names=("n1/gpu-0",))]
    assert found.needs["llm/b"] == []
    assert found.notes == {"llm/b": "shares claim c1 with llm/a, which holds its devices"}


def test_a_claim_that_is_not_allocated_waits_and_is_told_by_its_device_class() -> None:
    found = reported(
        node(), gpu_slice(gpu_device(0)), claim(asks=2), pod(claims=("c1",), on="", phase="Pending")
    )
    assert found["pods_unplaced"] == [{"pod": "llm/p1", "request": {"gpu.nvidia.com": 2}}]


def test_an_extended_resource_that_a_claim_serves_is_not_counted_twice() -> None:
    facts = listing(
        node(),
        gpu_slice(gpu_device(0), gpu_device(1), gpu_device(2)),
        claim("gpu-0", "gpu-1", asks=2),
        pod({GPU: 2}, extended_claim="c1", deleting=True),
    )
    facts.device_classes["gpu.nvidia.com"] = GPU
    found = count(facts)
    assert found.nodes["n1"].details["dra"]["free"] == 1
    assert found.nodes["n1"].resources == {}
    assert [pool.resource for pool in found.nodes["n1"].pools] == ["gpu.nvidia.com"]
    assert found.needs["llm/p1"] == [Need("gpu.nvidia.com", 2, names=("n1/gpu-0", "n1/gpu-1"))]
    assert report(found)["soon_free"] == [{"pod": "llm/p1", "node": "n1", "request": {GPU: 2}}]


def test_a_device_of_a_claim_without_a_pod_is_held() -> None:
    found = counted_node(node(), gpu_slice(gpu_device(0), gpu_device(1)), claim("gpu-0"))
    assert found.details["dra"]["free"] == 1


def test_devices_of_claims_that_no_bound_pod_has_are_reserved() -> None:
    names = "abcd"
    found = counted(
        node(),
        gpu_slice(*(gpu_device(n) for n in range(5))),
        *(claim(f"gpu-{at}", name=name) for at, name in enumerate(names)),
        pod(name="a", claims=("a",)),
        pod(name="b", claims=("b",), phase="Succeeded"),
        pod(name="c", claims=("c",), on="", phase="Pending"),
    )
    assert found.nodes["n1"].details["dra"]["free"] == 1
    assert found.reserved == {"n1": {("gpu.nvidia.com", f"n1/gpu-{n}") for n in (1, 2, 3)}}


def test_a_device_of_two_claims_is_held_by_the_older_pod() -> None:
    found = counted(
        node(),
        gpu_slice(gpu_device(0), gpu_device(1)),
        claim("gpu-0", "gpu-1", name="first"),
        claim("gpu-0", name="second"),
        pod(name="a", claims=("second",), created_at=datetime(2026, 11, 30, tzinfo=UTC)),
        pod(name="b", claims=("first",), created_at=datetime(2026, 11, 29, tzinfo=UTC)),
    )
    assert found.needs == {
        "llm/a": [],
        "llm/b": [Need("gpu.nvidia.com", 2, names=("n1/gpu-0", "n1/gpu-1"))],
    }
    assert found.notes == {"llm/a": "shares device gpu-0 with llm/b, which holds it"}
    assert found.reserved == {}


def test_claims_that_have_parts_of_a_devices_memory_hold_it_together() -> None:
    key = ("gpu.nvidia.com", "n1", "gpu-0")
    parts = [
        replace(claim("gpu-0", name=n), memory_bytes={key: mib * 2**20}) for n, mib in (("a", 10), ("b", 9))
    ]
    pods = [pod(name=name, claims=(name,)) for name in "ab"]
    found = counted(node(), gpu_slice(gpu_device(0)), *parts, *pods)
    assert found.needs == {
        f"llm/{name}": [Need("gpu.nvidia.com", 1, memory_mib=mib, names=("n1/gpu-0",))]
        for name, mib in (("a", 10), ("b", 9))
    }
    whole = replace(parts[0], memory_bytes={key: 40 * 2**30})
    found = counted(node(), gpu_slice(gpu_device(0)), whole, parts[1], *pods)
    assert found.needs["llm/a"] == [Need("gpu.nvidia.com", 1, names=("n1/gpu-0",))]
    assert found.needs["llm/b"] == []


def test_network_devices_and_channels_are_no_accelerators() -> None:
    channel = SliceDevice("channel-0", {"type": "channel"})
    facts = [
        SliceFacts("s1", "compute-domain.nvidia.com", "n1", 1, "n1", (channel,)),
        SliceFacts("s2", "dra.net", "n1", 1, "n1", (SliceDevice("eth0", {"ifName": "eth0"}),)),
    ]
    assert counted_node(node(), *facts).blocked == ["no_gpu"]


def test_the_passthrough_twin_of_a_gpu_is_not_counted_beside_it() -> None:
    twin = SliceDevice("gpu-vfio-0", {"type": "vfio", "uuid": "GPU-0"})
    found = counted_node(node(), gpu_slice(gpu_device(0), twin))
    assert found.details["dra"]["devices"] == 1


def test_slices_of_mig_are_devices_of_their_own_with_their_card() -> None:
    slices = [
        gpu_device(n, name=f"gpu-0-mig-{n}", attributes=MIG | {"uuid": f"MIG-{n}"}, memory_bytes=5 * 2**30)
        for n in range(7)
    ]
    found = counted_node(node(), gpu_slice(*slices), claim("gpu-0-mig-3"))
    assert (found.physical, found.memory_mib) == (1, 5120)
    assert (found.details["dra"]["devices"], found.details["dra"]["free"]) == (7, 6)
    assert found.pools[0].devices[0] == Device(
        "NVIDIA A100-SXM4-40GB-MIG-1g.5gb", 5120, partition=True, uuid="MIG-0", name="n1/gpu-0-mig-0"
    )


def test_slices_that_could_be_cut_are_not_counted_beside_their_card() -> None:
    possible = [gpu_device(9, name=f"gpu-0-mig-1g5gb-19-{n}", attributes=MIG) for n in range(7)]
    whole = counted_node(node(), gpu_slice(gpu_device(0), gpu_device(1), *possible))
    assert [device.name for device in whole.pools[0].devices] == ["n1/gpu-0", "n1/gpu-1"]
    cut = counted_node(
        node(), gpu_slice(gpu_device(0), gpu_device(1), *possible), claim("gpu-0-mig-1g5gb-19-2")
    )
    assert [device.name for device in cut.pools[0].devices] == ["n1/gpu-1", "n1/gpu-0-mig-1g5gb-19-2"]
    assert (cut.physical, cut.details["dra"]["free"]) == (2, 1)


def test_two_models_are_told_one_by_one() -> None:
    other = gpu_device(1, attributes={"productName": "NVIDIA T4"}, memory_bytes=15 * 2**30)
    found = counted_node(node(), gpu_slice(gpu_device(0), other))
    assert found.details["models"] == {"A100-SXM4-40GB": 1, "T4": 1}
    assert (found.type, found.memory_mib) == (None, None)


def test_several_pools_of_one_node_add_up() -> None:
    second = SliceFacts("s2", "gpu.nvidia.com", "n1-b", 7, "n1", (gpu_device(1),))
    found = counted_node(node(), gpu_slice(gpu_device(0)), second)
    assert found.details["dra"]["devices"] == 2
    assert [device.name for device in found.pools[0].devices] == ["n1/gpu-0", "n1-b/gpu-1"]


def test_devices_of_no_node_and_claims_on_devices_that_are_gone_are_told() -> None:
    nowhere = replace(gpu_slice(gpu_device(0)), node="")
    found = counted(node(), nowhere, claim("gpu-7"))
    assert "resource slice s1: its 1 devices are of no single node, not counted" in found.warnings
    assert "claim llm/c1 holds gpu-7, which no listed slice publishes" in found.warnings


def test_a_claim_that_is_not_listed_is_told() -> None:
    found = counted(node(), gpu_slice(gpu_device(0)), pod(claims=("c9",)))
    assert "1 resource claim of pods not listed: llm/c9" in found.warnings


def test_the_claim_of_a_network_device_is_no_gpu() -> None:
    network = ClaimFacts("llm", "c1", asks={"roce": 1}, devices=(("dra.net", "n1", "eth0"),))
    found = counted(node(), gpu_slice(gpu_device(0)), network, pod(claims=("c1",)))
    assert found.needs == {}
    assert found.warnings == []


def test_a_pool_of_which_slices_are_missing_is_told() -> None:
    found = counted(node(), replace(gpu_slice(gpu_device(0)), slices=2), pod())
    assert (
        "pool n1 of gpu.nvidia.com: 1 of its 2 resource slices are listed, so that it may have more devices"
        in found.warnings
    )
    whole = counted(node(), replace(gpu_slice(gpu_device(0)), slices=1), pod())
    assert not any("resource slices are listed" in warning for warning in whole.warnings)


MI300X = "AMD_Instinct_MI300X_OAM"


def amd_slice(kind: str, profile: str, *addresses: str) -> SliceFacts:
    devices = [
        SliceDevice(
            f"gpu-{n}-{128 + n}",
            {"type": kind, "productName": MI300X, "partitionProfile": profile, "parentPciAddr": address},
            192 * 2**30,
        )
        for n, address in enumerate(addresses)
    ]
    return SliceFacts("s1", "gpu.amd.com", "n1", 1, "n1", tuple(devices))


def test_whole_gpus_of_the_driver_of_amd_are_whole() -> None:
    found = counted_node(node(), amd_slice("amdgpu", "spx_nps1", "a", "b"))
    assert (found.vendor, found.type, found.physical, found.blocked) == ("amd", "Instinct-MI300X", 2, [])
    assert found.pools[0].devices[0] == Device(MI300X, 196608, name="n1/gpu-0-128")


def test_partitions_of_the_driver_of_amd_are_partitions_of_their_card() -> None:
    found = counted_node(node(), amd_slice("amdgpu-partition", "cpx_nps4", "a", "a", "b"))
    assert (found.physical, found.details["dra"]["devices"]) == (2, 3)
    assert found.pools[0].devices[0] == Device(
        f"{MI300X}-CPX_NPS4", 196608, partition=True, name="n1/gpu-0-128"
    )


def tainted_by(rule: TaintRuleFacts) -> tuple[list[bool], list[str]]:
    facts = listing(node(), gpu_slice(gpu_device(0), gpu_device(1)), claim())
    facts.taint_rules[rule.name] = rule
    found = count(facts)
    return [not device.healthy for device in found.nodes["n1"].pools[0].devices], found.warnings


def test_a_taint_rule_taints_the_devices_that_it_selects() -> None:
    key = taint("maintenance")
    assert tainted_by(TaintRuleFacts("r", key, "gpu.nvidia.com", "n1", "gpu-1")) == ([False, True], [])
    assert tainted_by(TaintRuleFacts("r", key)) == ([True, True], [])
    assert tainted_by(TaintRuleFacts("r", key, pool="n2")) == ([False, False], [])
    assert tainted_by(TaintRuleFacts("r", key, driver="gpu.amd.com")) == ([False, False], [])
    assert tainted_by(TaintRuleFacts("r", taint("x", effect="None"))) == ([False, False], [])


def test_a_taint_rule_that_selects_by_expressions_is_told_and_taints_nothing() -> None:
    tainted, warnings = tainted_by(TaintRuleFacts("r", taint("x"), unread=True))
    assert tainted == [False, False]
    assert len(warnings) == 1
    assert "device taint rule r selects by class or expression" in warnings[0]


def test_a_plugin_and_a_driver_that_may_offer_the_same_cards_are_told() -> None:
    told = (
        "node n1: a device plugin offers nvidia.com/gpu and DRA driver gpu.nvidia.com publishes devices too"
    )
    both = counted(node({GPU: 1}, H100), gpu_slice(gpu_device(0)), claim())
    assert any(warning.startswith(told) for warning in both.warnings)
    other = counted(node({"amd.com/gpu": 1}), gpu_slice(gpu_device(0)), claim())
    assert not any("a device plugin offers" in warning for warning in other.warnings)
