"""Labels that promise accelerators where no device plugin offers any."""

from __future__ import annotations

import pytest

from tests.kubernetes.parts import counted_node, node


@pytest.mark.parametrize(
    ("key", "value", "vendor"),
    [
        ("nvidia.com/gpu.present", "true", "nvidia"),
        ("nvidia.com/gpu.deploy.device-plugin", "true", "nvidia"),
        ("cloud.google.com/gke-gpu", "true", "nvidia"),
        ("feature.node.kubernetes.io/pci-0302_10de.present", "true", "nvidia"),
        ("karpenter.k8s.aws/instance-gpu-name", "a100", "nvidia"),
        ("eks.amazonaws.com/instance-gpu-name", "l40s", "nvidia"),
        ("karpenter.k8s.aws/instance-gpu-name", "radeon-pro-v520", "amd"),
        ("karpenter.k8s.aws/instance-gpu-name", "gaudi-hl-205", "habana"),
        ("amd.com/gpu.family", "AI", "amd"),
        ("beta.amd.com/gpu.device-id.6860", "1", "amd"),
        ("intel.feature.node.kubernetes.io/gpu", "true", "intel"),
        ("gpu.intel.com/device-id.0380-56c0.present", "true", "intel"),
        ("feature.node.kubernetes.io/pci-1da3.present", "true", "habana"),
        ("eks.amazonaws.com/instance-accelerator-name", "trainium", "aws"),
        ("accelerator", "huawei-Ascend910", "huawei"),
        ("accelerator", "nvidia-tesla-v100", "nvidia"),
        ("karpenter.k8s.aws/instance-gpu-count", "8", None),
    ],
)
def test_a_label_that_promises_accelerators_tells_that_a_device_plugin_is_missing(
    key: str, value: str, vendor: str | None
) -> None:
    found = counted_node(node({}, {key: value}))
    assert (found.blocked, found.vendor, found.physical) == (["no_device_plugin"], vendor, None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cloud.google.com/gke-gpu", "false"),
        ("karpenter.k8s.aws/instance-gpu-count", "0"),
        ("feature.node.kubernetes.io/pci-8086.present", "true"),
        ("amd.com/gpu.device-id", ""),
    ],
)
def test_a_label_that_promises_none_is_no_sign(key: str, value: str) -> None:
    found = counted_node(node({}, {key: value}))
    assert (found.blocked, found.vendor, found.physical) == (["no_gpu"], None, 0)
