"""GPUs that are cut or shared: MIG, time slices, MPS, vGPU, AMD partitions, Neuron cores."""

from __future__ import annotations

import pytest

from sizing.inventory.kubernetes.counted import Device, Need
from sizing.inventory.kubernetes.mig import slices_per_gpu
from tests.kubernetes.parts import GPU, H100, counted, counted_node, node, pod

MIG_SINGLE = {
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb",
    "nvidia.com/gpu.memory": "9728",
    "nvidia.com/gpu.count": "56",
    "nvidia.com/mig.strategy": "single",
}
L4 = {
    "nvidia.com/gpu.product": "NVIDIA-L4-SHARED",
    "nvidia.com/gpu.memory": "23034",
    "nvidia.com/gpu.count": "2",
    "nvidia.com/gpu.replicas": "4",
    "nvidia.com/gpu.sharing-strategy": "time-slicing",
}


def test_slices_that_are_named_like_gpus_are_no_gpus() -> None:
    found = counted_node(node({GPU: 56}, MIG_SINGLE), pod({GPU: 20}))
    assert (found.type, found.memory_mib, found.physical) == ("A100-SXM4-80GB", 9728, 8)
    assert found.details["mig"] == {"strategy": "single", "profile": "1g.10gb", "slices_per_gpu": 7}
    assert found.resources[GPU].free == 36
    device = Device("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", 9728, partition=True)
    assert found.pools[0].devices == [device] * 56


@pytest.mark.parametrize(
    ("profile", "product", "slices"),
    [
        ("1g.10gb", "NVIDIA-A100-SXM4-80GB", 7),
        ("1g.10gb", "NVIDIA-A100-SXM4-40GB", 4),
        ("1g.5gb", "NVIDIA-A100-SXM4-40GB", 7),
        ("2g.20gb", "NVIDIA-H100-80GB-HBM3", 3),
        ("3g.40gb", "NVIDIA-H100-80GB-HBM3", 2),
        ("4g.40gb", "NVIDIA-H100-80GB-HBM3", 1),
        ("7g.80gb", "NVIDIA-H100-80GB-HBM3", 1),
        ("1g.12gb", "NVIDIA-GH200-480GB", 7),
        ("1g.18gb", "NVIDIA-H200", 7),
        ("1g.35gb", "NVIDIA-H200", 4),
        ("1g.23gb", "NVIDIA-B200", 7),
        ("1g.6gb", "NVIDIA-A30", 4),
        ("2g.12gb", "NVIDIA-A30", 2),
        ("1g.24gb", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 4),
        ("1c.3g.40gb", "NVIDIA-A100-SXM4-80GB", 6),
        ("1g.5gb", "", 7),
        ("odd", "NVIDIA-A100-SXM4-80GB", None),
    ],
)
def test_a_gpu_holds_as_many_slices_as_its_compute_and_memory_allow(
    profile: str, product: str, slices: int | None
) -> None:
    assert slices_per_gpu(profile, product) == slices


def test_a_node_of_gke_that_is_cut_tells_it_in_a_label_of_its_own() -> None:
    labels = {
        "cloud.google.com/gke-accelerator": "nvidia-tesla-a100",
        "cloud.google.com/gke-gpu-partition-size": "1g.5gb",
    }
    found = counted_node(node({GPU: 7}, labels))
    assert (found.type, found.physical, found.memory_mib) == ("tesla-a100", 1, None)
    assert found.pools[0].devices[0] == Device("nvidia-tesla-a100-MIG-1g.5gb", None, partition=True)


def test_under_the_mixed_strategy_each_profile_is_a_resource_and_whole_gpus_stay_whole() -> None:
    labels = {**H100, "nvidia.com/mig.strategy": "mixed", "nvidia.com/mig-3g.40gb.memory": "40448"}
    offers = {GPU: 6, "nvidia.com/mig-3g.40gb": 2, "nvidia.com/mig-1g.10gb": 7, "nvidia.com/mig-2g.20gb": 0}
    found = counted_node(node(offers, labels), pod({"nvidia.com/mig-3g.40gb": 1}))
    assert found.details["mig"] == {"strategy": "mixed"}
    assert (found.physical, found.memory_mib) == (8, 81559)
    assert found.resources["nvidia.com/mig-3g.40gb"].free == 1
    assert {pool.resource: (len(pool.devices), pool.devices[0]) for pool in found.pools} == {
        GPU: (6, Device("NVIDIA-H100-80GB-HBM3", 81559)),
        "nvidia.com/mig-1g.10gb": (7, Device("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", None, partition=True)),
        "nvidia.com/mig-3g.40gb": (2, Device("NVIDIA-H100-80GB-HBM3-MIG-3g.40gb", 40448, partition=True)),
    }


def test_the_count_label_of_a_node_that_is_cut_whole_gives_no_whole_gpus() -> None:
    labels = {**H100, "nvidia.com/mig.strategy": "mixed"}
    found = counted(node({GPU: 0, "nvidia.com/mig-3g.40gb": 16}, labels))
    assert found.nodes["n1"].details["mig"] == {"strategy": "mixed", "profile": "3g.40gb"}
    assert [pool.resource for pool in found.nodes["n1"].pools] == ["nvidia.com/mig-3g.40gb"]
    assert any("a label tells 8 GPUs, but 0 are whole" in warning for warning in found.warnings)


def test_time_slices_are_shares_without_memory_of_their_own() -> None:
    found = counted_node(node({GPU: 8}, L4), pod({GPU: 3}))
    assert (found.type, found.physical, found.memory_mib) == ("L4", 2, 23034)
    assert found.details["sharing"] == {"strategy": "time-slicing", "replicas": 4}
    assert found.resources[GPU].free == 5
    assert found.pools[0].devices == [Device("NVIDIA-L4-SHARED", None, partition=True)] * 8


def test_a_renamed_resource_is_shared_and_the_pool_of_whole_gpus_is_empty() -> None:
    labels = {**L4, "nvidia.com/gpu.product": "NVIDIA-L4"}
    found = counted_node(node({GPU: 0, "nvidia.com/gpu.shared": 8}, labels))
    assert found.physical == 2
    assert [(pool.resource, pool.devices[0].type) for pool in found.pools] == [
        ("nvidia.com/gpu.shared", "NVIDIA-L4-SHARED")
    ]


def test_shares_by_mps_have_their_part_of_the_memory() -> None:
    found = counted_node(node({GPU: 8}, {**L4, "nvidia.com/gpu.sharing-strategy": "mps"}))
    assert found.details["sharing"] == {"strategy": "mps", "replicas": 4}
    assert found.pools[0].devices[0] == Device("NVIDIA-L4-SHARED", 5758, partition=True)


def test_a_gpu_that_gke_shares_is_counted_once() -> None:
    labels = {
        "cloud.google.com/gke-accelerator": "nvidia-l4",
        "cloud.google.com/gke-accelerator-count": "1",
        "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
        "cloud.google.com/gke-max-shared-clients-per-gpu": "4",
    }
    found = counted_node(node({GPU: 4}, labels))
    assert (found.type, found.physical) == ("l4", 1)
    assert found.details["sharing"] == {"strategy": "time-sharing", "replicas": 4}
    assert found.pools[0].devices[0] == Device("nvidia-l4-SHARED", None, partition=True)


def test_the_product_tells_sharing_also_without_the_other_labels_and_then_cards_cannot_be_known() -> None:
    found = counted_node(node({GPU: 8}, {"nvidia.com/gpu.product": "NVIDIA-L4-SHARED"}))
    assert found.details["sharing"] == {"strategy": "time-slicing"}
    assert found.physical is None


def test_a_vgpu_is_a_share_with_memory_of_its_own() -> None:
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-A10-12Q",
        "nvidia.com/gpu.memory": "12288",
        "nvidia.com/vgpu.present": "true",
    }
    found = counted_node(node({GPU: 1}, labels))
    assert found.details["sharing"] == {"strategy": "vgpu"}
    assert found.pools[0].devices == [Device("NVIDIA-A10-12Q-SHARED", 12288, partition=True)]


def test_replicas_of_one_are_no_sharing() -> None:
    labels = {**H100, "nvidia.com/gpu.replicas": "1", "nvidia.com/gpu.sharing-strategy": "none"}
    assert "sharing" not in counted_node(node({GPU: 8}, labels)).details


AMD = {
    "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
    "amd.com/gpu.vram": "192G",
    "amd.com/compute-memory-partition": "cpx_nps4",
}


def test_partitions_of_amd_cards_have_their_part_of_the_memory() -> None:
    found = counted_node(node({"amd.com/gpu": 64}, AMD), pod({"amd.com/gpu": 8}))
    assert (found.memory_mib, found.physical, found.details["partition"]) == (24576, 8, "cpx_nps4")
    device = Device("AMD_Instinct_MI300X_OAM-CPX_NPS4", 24576, partition=True)
    assert found.pools[0].devices == [device] * 64


def test_cuts_of_amd_cards_with_resources_of_their_own_are_told_apart() -> None:
    labels = {**AMD, "amd.com/compute-memory-partition": "spx_nps1"}
    found = counted_node(node({"amd.com/spx_nps1": 5, "amd.com/cpx_nps1": 24}, labels))
    assert (found.memory_mib, found.physical) == (196608, 8)
    assert "partition" not in found.details
    assert {pool.resource: pool.devices[0] for pool in found.pools} == {
        "amd.com/cpx_nps1": Device("AMD_Instinct_MI300X_OAM-CPX_NPS1", 24576, partition=True),
        "amd.com/spx_nps1": Device("AMD_Instinct_MI300X_OAM", 196608),
    }


@pytest.mark.parametrize(("product", "cards"), [("MI300A", 6), ("MI308X", 4), ("MI325X", 8)])
def test_a_card_has_as_many_partitions_as_dies(product: str, cards: int) -> None:
    labels = {**AMD, "amd.com/gpu.product-name": f"AMD_Instinct_{product}"}
    assert counted_node(node({"amd.com/gpu": cards}, labels)).physical == 1


NEURON = {"aws.amazon.com/neuron": 16, "aws.amazon.com/neurondevice": 16, "aws.amazon.com/neuroncore": 32}


def test_cores_of_several_pods_are_on_one_neuron_device_where_they_fit() -> None:
    cores = {"aws.amazon.com/neuron": 4, "aws.amazon.com/neuroncore": 32}
    asked = {"a": 5, "b": 2, "c": 2, "d": 1, "e": 11, "f": 5}
    found = counted(
        node(cores),
        *(pod({"aws.amazon.com/neuroncore": n}, name=name) for name, n in asked.items()),
        pod({"aws.amazon.com/neuroncore": 1}, name="waits", on=""),
    )
    assert {key: sum(need.count for need in needs) for key, needs in found.needs.items()} == {
        "llm/a": 1,
        "llm/b": 0,
        "llm/c": 1,
        "llm/d": 0,
        "llm/e": 1,
        "llm/f": 1,
        "llm/waits": 1,
    }
    reason = "is on cores of Neuron devices that other pods hold"
    assert found.notes == {"llm/b": reason, "llm/d": reason}
    (pool,) = found.nodes["n1"].pools
    assert (len(pool.devices), pool.withdrawn) == (4, 0)


def test_neuron_devices_and_cores_are_the_same_hardware() -> None:
    found = counted(
        node(NEURON),
        pod({"aws.amazon.com/neuroncore": 3}, name="cores"),
        pod({"aws.amazon.com/neuron": 4}, name="devices"),
    )
    here = found.nodes["n1"]
    assert (here.vendor, here.physical, len(here.resources)) == ("aws", 16, 3)
    assert here.resources["aws.amazon.com/neuroncore"].used == 3
    assert [(pool.resource, len(pool.devices)) for pool in here.pools] == [("aws.amazon.com/neuron", 16)]
    assert found.needs == {
        "llm/cores": [Need("aws.amazon.com/neuron", 2)],
        "llm/devices": [Need("aws.amazon.com/neuron", 4)],
    }


def test_withdrawn_neuron_devices_are_counted_once() -> None:
    lost = {"aws.amazon.com/neuron": 15, "aws.amazon.com/neurondevice": 15, "aws.amazon.com/neuroncore": 30}
    assert counted_node(node(NEURON, None, lost)).details["unhealthy"] == 1


@pytest.mark.parametrize(
    ("profile", "product", "slices"),
    [
        ("1g.10gb.me", "NVIDIA-H100-80GB-HBM3", 1),
        ("1g.10gb+me", "NVIDIA-H100-80GB-HBM3", 1),
        ("1g.24gb+me.all", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 1),
        ("1g.24gb.gfx", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 4),
        ("1g.20gb", "NVIDIA-H100-PCIe", 4),
        ("1g.18gb", "NVIDIA-GH200-144G-HBM3e", 7),
        ("1g.36gb", "NVIDIA-GH200-144G-HBM3e", 4),
        ("3g.72gb", "NVIDIA-GH200-144G-HBM3e", 2),
        ("1g.24gb", "NVIDIA-GH200-480GB", 4),
        ("1g.24gb", "NVIDIA-H20", 4),
        ("1g.12gb", "NVIDIA-H20", 7),
    ],
)
def test_slices_with_media_engines_and_cards_that_do_not_name_their_memory_are_known(
    profile: str, product: str, slices: int
) -> None:
    assert slices_per_gpu(profile, product) == slices


def test_a_node_whose_cards_are_not_all_cut_alike_has_no_profile() -> None:
    labels = {**MIG_SINGLE, "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-INVALID"}
    found = counted_node(node({GPU: 2}, labels))
    assert "mig" not in found.details
    assert found.type == "A100-SXM4-40GB"
    assert found.pools[0].devices[0].type == "NVIDIA-A100-SXM4-40GB"


SLICED = "nvidia.com/mig-3g.40gb"


def test_slices_that_are_shared_themselves_are_told_as_shares_beside_whole_gpus() -> None:
    labels = {
        **H100,
        "nvidia.com/mig.strategy": "mixed",
        f"{SLICED}.product": "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb-SHARED",
        f"{SLICED}.memory": "40192",
        f"{SLICED}.replicas": "2",
        f"{SLICED}.sharing-strategy": "time-slicing",
    }
    found = counted_node(node({GPU: 4, SLICED: 16}, labels))
    assert found.details["sharing"] == {"strategy": "time-slicing", "replicas": 2}
    assert {pool.resource: pool.devices[0] for pool in found.pools} == {
        GPU: Device("NVIDIA-H100-80GB-HBM3", 81559),
        SLICED: Device("NVIDIA-H100-80GB-HBM3-MIG-3g.40gb-SHARED", None, partition=True),
    }
    assert "16 shares (time-slicing) of MIG slices 3g.40gb" in found.say
    assert f"4 H100-80GB-HBM3 ({GPU}): 0 used, 4 free" in found.say


def test_slices_of_which_each_serves_one_pod_are_not_shared() -> None:
    labels = {**H100, "nvidia.com/mig.strategy": "mixed", f"{SLICED}.replicas": "1"}
    assert "sharing" not in counted_node(node({SLICED: 16}, labels)).details


@pytest.mark.parametrize(
    ("name", "memory"), [("GRID_T4-4Q", 4096), ("NVIDIA_L40S-12Q", 12288), ("NVIDIA_A100-1-5C", 5120)]
)
def test_a_virtual_gpu_under_the_name_of_its_profile_is_a_share(name: str, memory: int) -> None:
    resource = f"nvidia.com/{name}"
    found = counted_node(node({resource: 8}))
    assert (found.details["sharing"], found.physical) == ({"strategy": "vgpu"}, None)
    assert found.pools[0].devices == [Device(f"{resource}-SHARED", memory, partition=True)] * 8


def test_a_gpu_that_is_passed_through_beside_virtual_ones_stays_whole() -> None:
    found = counted_node(node({"nvidia.com/GRID_T4-4Q": 8, "nvidia.com/GA102GL_A10": 2}))
    assert found.pools[0].devices == [Device("nvidia.com/GA102GL_A10")] * 2
    assert "2 nvidia.com/GA102GL_A10: 0 used, 2 free" in found.say
