"""Nodes with devices of several vendors or models, and devices under names of their owner's choice."""

from __future__ import annotations

from sizing.inventory.kubernetes.counted import Device
from tests.kubernetes.parts import GPU, counted, counted_node, node, pod, reported_node

L4 = {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.memory": "23034", "nvidia.com/gpu.count": "2"}
A100 = {
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
    "nvidia.com/gpu.memory": "40960",
    "nvidia.com/gpu.count": "2",
}
I915, AMD = "gpu.intel.com/i915", "amd.com/gpu"


def test_devices_of_each_vendor_are_described_by_its_own_labels() -> None:
    found = counted_node(node({GPU: 2, I915: 1}, L4))
    assert {pool.resource: pool.devices[0] for pool in found.pools} == {
        GPU: Device("NVIDIA-L4", 23034),
        I915: Device(I915),
    }
    assert (found.vendor, found.type, found.memory_mib, found.physical) == ("nvidia", "L4", 23034, 3)
    assert found.details["models"] == {"L4": 2, I915: 1}
    assert found.say == f"1 {I915}: 0 used, 1 free; 2 L4 ({GPU}): 0 used, 2 free"


def test_two_vendors_with_labels_are_both_known() -> None:
    labels = {**L4, "amd.com/gpu.product-name": "AMD_Instinct_MI210", "amd.com/gpu.vram": "64G"}
    found = counted_node(node({GPU: 2, AMD: 1}, labels))
    assert {pool.resource: pool.devices[0] for pool in found.pools} == {
        GPU: Device("NVIDIA-L4", 23034),
        AMD: Device("AMD_Instinct_MI210", 65536),
    }
    assert found.details["models"] == {"L4": 2, "Instinct-MI210": 1}


def test_of_two_vendors_the_report_names_the_one_whose_model_is_told() -> None:
    found = counted_node(node({GPU: 1, I915: 8}, L4))
    assert (found.vendor, found.type) == ("nvidia", "L4")
    assert counted_node(node({GPU: 1, I915: 8})).vendor == "intel"


def test_a_label_of_any_vendor_that_names_another_one_is_no_model() -> None:
    found = counted_node(node({GPU: 1, I915: 1}, {"accelerator": "nvidia-tesla-t4"}))
    assert {pool.resource: pool.devices[0].type for pool in found.pools} == {
        GPU: "nvidia-tesla-t4",
        I915: I915,
    }


def test_discovery_labels_one_of_several_models_and_how_many_cards_it_has() -> None:
    found = counted(node({GPU: 4}, A100), pod({GPU: 1}))
    here = found.nodes["n1"]
    assert here.pools[0].devices == [Device("NVIDIA-A100-SXM4-40GB", 40960)] * 2 + [Device(GPU)] * 2
    assert here.details["models"] == {"A100-SXM4-40GB": 2, "unknown": 2}
    assert "2 A100-SXM4-40GB and 2 of unknown model" in here.say
    assert any("several models: 2 A100-SXM4-40GB, 2 unknown" in warning for warning in found.warnings)


def test_a_gpu_that_is_lost_to_discovery_and_withdrawn_is_of_the_model_of_the_others() -> None:
    found = counted_node(node({GPU: 3}, A100, {GPU: 2}))
    assert found.pools[0].devices == [Device("NVIDIA-A100-SXM4-40GB", 40960)] * 3
    assert "models" not in found.details


def test_a_count_that_sharing_or_mig_explains_tells_of_no_second_model() -> None:
    shared = {**A100, "nvidia.com/gpu.replicas": "2"}
    assert "models" not in counted_node(node({GPU: 4}, shared)).details
    assert "models" not in counted_node(node({GPU: 4, "nvidia.com/mig-1g.5gb": 7}, A100)).details


def test_gpus_under_names_of_their_owners_choice_are_gpus_and_others_are_told() -> None:
    offers = {
        "nvidia.com/gpu-a100": 2,
        "nvidia.com/geforce-rtx-3090": 1,
        "nvidia.com/gpumem": 81920,
        "nvidia.com/gpucores": 100,
        "nvidia.com/hostdev": 4,
        "nvidia.com/big": 2,
    }
    found = counted(node(offers, A100))
    here = found.nodes["n1"]
    assert {pool.resource: pool.devices for pool in here.pools} == {
        "nvidia.com/geforce-rtx-3090": [Device("nvidia.com/geforce-rtx-3090")],
        "nvidia.com/gpu-a100": [Device("NVIDIA-A100-SXM4-40GB", 40960)] * 2,
    }
    assert here.details["models"] == {"A100-SXM4-40GB": 2, "nvidia.com/geforce-rtx-3090": 1}
    assert [warning for warning in found.warnings if "not known to be a GPU" in warning] == [
        "nvidia.com/big of 1 node (n1) is not known to be a GPU and not counted"
    ]


def test_a_label_is_of_the_only_gpus_whatever_their_name() -> None:
    found = counted_node(node({"nvidia.com/gpu-big": 2}, A100))
    assert found.pools[0].devices == [Device("NVIDIA-A100-SXM4-40GB", 40960)] * 2


def test_labels_of_an_old_labeller_of_amd_have_their_values_in_their_keys() -> None:
    labels = {
        "beta.amd.com/gpu.vram.16G": "1",
        "beta.amd.com/gpu.device-id.6860": "1",
        "beta.amd.com/gpu.family.AI": "1",
    }
    assert counted_node(node({AMD: 1}, labels)).pools[0].devices == [Device(AMD, 16384)]
    assert reported_node(node({}, labels))["blocked_by"] == ["no_device_plugin"]
    two = counted_node(node({AMD: 2}, labels | {"beta.amd.com/gpu.vram.32G": "1"}))
    assert two.memory_mib is None


def test_intel_cards_that_are_only_counted_by_labels_show_that_they_are_shared() -> None:
    labels = {"gpu.intel.com/product": "Flex_170", "gpu.intel.com/device.count": "2"}
    found = counted_node(node({I915: 20}, labels))
    assert (found.physical, found.details["sharing"]) == (2, {"strategy": "shared-dev-num", "replicas": 10})
    assert found.pools[0].devices[0] == Device("Flex_170-SHARED", None, partition=True)
    by_id = {"gpu.intel.com/device-id.0380-0bda.count": "4"}
    assert counted_node(node({I915: 8, "gpu.intel.com/xe": 8}, by_id)).details["sharing"]["replicas"] == 4
    assert "sharing" not in counted_node(node({I915: 4}, by_id)).details


def test_ascend_is_not_taken_for_nvidia() -> None:
    found = counted_node(node({"huawei.com/Ascend910": 8}, {"accelerator": "huawei-Ascend910"}))
    assert (found.vendor, found.type) == ("huawei", "huawei-Ascend910")
