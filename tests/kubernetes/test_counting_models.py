"""Models and memory as the vendors' labels tell them, each in its own unit."""

from __future__ import annotations

import pytest

from sizing.inventory.kubernetes.counted import Device
from sizing.inventory.kubernetes.vendors import is_device, plain_type, vendor_of
from tests.kubernetes.parts import GPU, H100, counted, counted_node, node, reported_node


@pytest.mark.parametrize(
    ("label", "plain"),
    [
        ("NVIDIA-H100-80GB-HBM3", "H100-80GB-HBM3"),
        ("NVIDIA H100 80GB HBM3", "H100-80GB-HBM3"),
        ("Tesla-T4", "T4"),
        ("nvidia-tesla-t4", "tesla-t4"),
        ("NVIDIA-Tesla V100-PCIE-32GB", "Tesla-V100-PCIE-32GB"),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "A100-SXM4-80GB"),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED", "A100-SXM4-80GB"),
        ("NVIDIA-L4-SHARED", "L4"),
        ("AMD_Instinct_MI300X_OAM", "Instinct-MI300X"),
        ("H100_NVLINK_80GB", "H100_NVLINK_80GB"),
        ("Quadro-P2000", "Quadro-P2000"),
    ],
)
def test_a_type_is_told_without_the_vendor_and_the_marks_of_its_cut(label: str, plain: str) -> None:
    assert plain_type(label) == plain


@pytest.mark.parametrize(
    ("resource", "vendor"),
    [
        ("nvidia.com/gpu", "nvidia"),
        ("nvidia.com/gpu.shared", "nvidia"),
        ("nvidia.com/mig-3g.40gb", "nvidia"),
        ("nvidia.com/GRID_T4-4Q", "nvidia"),
        ("nvidia.com/GA102GL_A10", "nvidia"),
        ("nvidia.com/rtx-3090", "nvidia"),
        ("amd.com/gpu", "amd"),
        ("amd.com/cpx_nps4", "amd"),
        ("gpu.intel.com/xe", "intel"),
        ("habana.ai/gaudi", "habana"),
        ("google.com/tpu", "google"),
        ("aws.amazon.com/neuroncore", "aws"),
        ("huawei.com/Ascend910B", "huawei"),
        ("huawei.com/Ascend910B-memory", None),
        ("cambricon.com/mlu", "cambricon"),
        ("nvidia.com/gpumem-percentage", None),
        ("nvidia.com/gpucores", None),
        ("nvidia.com/resibp0", None),
        ("gpu.intel.com/xe_monitoring", None),
        ("cpu", None),
        ("example.com/gpu", None),
    ],
)
def test_accelerators_are_known_by_their_resources(resource: str, vendor: str | None) -> None:
    assert vendor_of(resource) == vendor
    assert is_device(resource) == (vendor is not None)


def test_the_memory_label_of_gpu_feature_discovery_is_mib() -> None:
    found = counted_node(node({GPU: 8}, H100))
    assert found.memory_mib == 81559
    assert found.pools[0].devices == [Device("NVIDIA-H100-80GB-HBM3", 81559)] * 8


def test_the_memory_label_of_coreweave_is_decimal_gb_and_the_report_leaves_it_as_it_is() -> None:
    labels = {"gpu.nvidia.com/class": "H100_NVLINK_80GB", "gpu.nvidia.com/vram": "81"}
    found = counted_node(node({GPU: 8}, labels))
    assert found.memory_mib is None
    assert found.details["memory_gb_label"] == 81
    assert found.pools[0].devices[0] == Device("H100_NVLINK_80GB", 77247)


def test_without_a_label_the_product_tells_the_memory_and_the_report_says_so() -> None:
    found = counted_node(node({GPU: 8}, {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}))
    assert found.memory_mib == 40960
    assert found.details["memory_from"] == "product"


@pytest.mark.parametrize(
    "product", ["NVIDIA-GH200-480GB", "NVIDIA-L40S", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"]
)
def test_a_number_that_is_not_the_memory_of_the_device_is_not_taken_for_it(product: str) -> None:
    found = counted_node(node({GPU: 7}, {"nvidia.com/gpu.product": product}))
    assert found.memory_mib is None
    assert found.pools[0].devices[0].memory_mib is None


@pytest.mark.parametrize("label", ["46068MiB", "45Gi", "-1", "80", "４６０６８", "9" * 40])
def test_a_memory_label_that_is_no_plausible_number_of_mib_is_told_and_not_used(label: str) -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-L40S", "nvidia.com/gpu.memory": label}
    found = counted(node({GPU: 8}, labels))
    assert found.nodes["n1"].memory_mib is None
    assert found.nodes["n1"].details["memory_unparsed"] == label
    assert any("memory label" in warning for warning in found.warnings)


def test_a_label_that_names_only_the_vendor_is_no_type() -> None:
    found = counted_node(node({GPU: 1}, {"accelerator": "nvidia"}))
    assert found.type is None
    assert found.pools[0].devices == [Device(GPU)]


def test_devices_are_counted_from_the_resource_and_never_from_the_label() -> None:
    found = counted(node({GPU: 7}, H100))
    assert found.nodes["n1"].physical == 7
    assert len(found.nodes["n1"].pools[0].devices) == 7
    assert any("a label tells 8 GPUs, but 7 are offered" in warning for warning in found.warnings)


def test_amd_memory_labels_are_gib() -> None:
    labels = {"beta.amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "beta.amd.com/gpu.vram": "192G"}
    found = counted_node(node({"amd.com/gpu": 8}, labels))
    assert (found.vendor, found.type, found.memory_mib, found.physical) == (
        "amd",
        "Instinct-MI300X",
        196608,
        8,
    )
    assert found.pools[0].devices[0] == Device("AMD_Instinct_MI300X_OAM", 196608)


def test_several_models_on_one_node_are_told_and_none_is_taken_for_all() -> None:
    labels = {
        "beta.amd.com/gpu.product-name.AMD_Instinct_MI210": "2",
        "beta.amd.com/gpu.product-name.AMD_Instinct_MI300X_OAM": "6",
    }
    found = counted(node({"amd.com/gpu": 8}, labels))
    assert found.nodes["n1"].details["models"] == {"Instinct-MI210": 2, "Instinct-MI300X": 6}
    assert found.nodes["n1"].type is None
    assert found.nodes["n1"].pools[0].devices[0] == Device("amd.com/gpu")
    assert any("several models" in warning for warning in found.warnings)


def test_intel_tells_the_memory_of_all_cards_in_bytes() -> None:
    labels = {
        "gpu.intel.com/product": "Max_1100",
        "gpu.intel.com/gpu-numbers": "0.1.2.3",
        "gpu.intel.com/memory.max": str(4 * 48 * 2**30),
    }
    found = counted_node(node({"gpu.intel.com/i915": 4}, labels))
    assert (found.vendor, found.type, found.memory_mib, found.physical) == ("intel", "Max_1100", 49152, 4)
    assert "sharing" not in found.details


def test_intel_cards_that_are_offered_several_times_are_shared() -> None:
    labels = {"gpu.intel.com/product": "Flex_170", "gpu.intel.com/cards": "card0.card1"}
    found = counted_node(node({"gpu.intel.com/i915": 20}, labels))
    assert found.physical == 2
    assert found.details["sharing"] == {"strategy": "shared-dev-num", "replicas": 10}
    assert found.pools[0].devices[0] == Device("Flex_170-SHARED", None, partition=True)


def test_intel_cards_that_do_not_divide_what_is_offered_are_not_called_shared() -> None:
    labels = {"gpu.intel.com/product": "Flex_170", "gpu.intel.com/cards": "card0.card1"}
    assert "sharing" not in counted_node(node({"gpu.intel.com/i915": 3}, labels)).details


def test_gaudi_is_counted_by_its_resource() -> None:
    found = counted_node(node({"habana.ai/gaudi": 8}, {"habana.ai/product.name": "Intel-Gaudi-2-96GB"}))
    assert (found.vendor, found.type, found.physical, found.memory_mib) == (
        "habana",
        "Gaudi-2-96GB",
        8,
        98304,
    )


def test_a_tpu_slice_over_two_hosts_is_told_with_its_chips() -> None:
    labels = {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "2x4",
        "cloud.google.com/gke-accelerator-count": "4",
        "cloud.google.com/gke-nodepool": "v5e-a",
    }
    found = reported_node(node({"google.com/tpu": 4}, labels))
    assert (found["vendor"], found["type"], found["physical_devices"]) == (
        "google",
        "tpu-v5-lite-podslice",
        4,
    )
    assert found["slice"] == {"nodepool": "v5e-a", "topology": "2x4", "chips": 8, "hosts": 2}


def test_the_nvlink_domain_is_told() -> None:
    labels = {**H100, "nvidia.com/gpu.clique": "7b96.1"}
    assert reported_node(node({GPU: 8}, labels))["clique"] == "7b96.1"
