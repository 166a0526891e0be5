"""What keeps new pods away from a node, as codes in a fixed order."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kubernetes.parts import GPU, H100, counted_node, node, pod, reported_node, taint


def blocked(**told: Any) -> list[str]:
    return counted_node(node({GPU: 8}, H100, **told)).blocked


def test_an_open_node_has_no_codes() -> None:
    assert blocked() == []
    assert counted_node(node({GPU: 8}, H100)).schedulable


@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_a_node_that_is_not_ready_is_closed_once(ready: str) -> None:
    taints = (
        taint("node.kubernetes.io/unreachable"),
        taint("node.kubernetes.io/not-ready", effect="NoExecute"),
    )
    assert blocked(ready=ready, taints=taints) == [f"not_ready:{ready}"]


def test_a_not_ready_taint_of_a_node_that_is_ready_closes_it() -> None:
    code = "taint:node.kubernetes.io/not-ready:NoSchedule"
    assert blocked(taints=(taint("node.kubernetes.io/not-ready"),)) == [code]


def test_a_cordoned_node_is_closed_once_and_keeps_its_pods() -> None:
    facts = node({GPU: 8}, H100, unschedulable=True, taints=(taint("node.kubernetes.io/unschedulable"),))
    found = counted_node(facts, pod({GPU: 2}))
    assert found.blocked == ["cordoned"]
    assert found.resources[GPU].free == 6
    assert found.taints_that_count == ()


def test_a_node_that_is_being_deleted_is_closed() -> None:
    assert blocked(deleting=True) == ["deleting"]


def test_taints_close_but_not_the_preferred_ones_nor_the_one_that_gpu_pods_tolerate() -> None:
    taints = (
        taint("nvidia.com/gpu", "present"),
        taint("dedicated", "rag"),
        taint("spot", "true", "PreferNoSchedule"),
        taint("nvidia.com/gpu", "present", "NoExecute"),
        taint("node-role.kubernetes.io/control-plane"),
    )
    assert blocked(taints=taints) == [
        "taint:dedicated=rag:NoSchedule",
        "taint:nvidia.com/gpu=present:NoExecute",
        "taint:node-role.kubernetes.io/control-plane:NoSchedule",
    ]


@pytest.mark.parametrize("state", ["pending", "rebooting", "failed"])
def test_a_mig_layout_that_is_not_as_wished_promises_nothing_and_nothing_is_unhealthy(state: str) -> None:
    labels = {**H100, "nvidia.com/mig.config.state": state, "nvidia.com/mig.strategy": "mixed"}
    found = counted_node(node({GPU: 8}, labels, {GPU: 0}, unschedulable=True))
    assert found.blocked == ["mig_reconfiguring", "cordoned", "allocatable_zero"]
    assert found.details["unhealthy"] == 0


def test_a_node_without_accelerators_has_none() -> None:
    found = reported_node(node({"cpu": 64000}))
    assert found["blocked_by"] == ["no_gpu"]
    assert (found["vendor"], found["type"], found["physical_devices"]) == (None, None, 0)


@pytest.mark.parametrize(
    ("labels", "vendor", "type_"),
    [
        ({"kubernetes.azure.com/accelerator": "nvidia", "accelerator": "nvidia"}, "nvidia", None),
        ({"k8s.amazonaws.com/accelerator": "nvidia-tesla-t4"}, "nvidia", "tesla-t4"),
        ({"feature.node.kubernetes.io/pci-10de.present": "true"}, "nvidia", None),
        ({"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, "amd", "Instinct-MI300X"),
        ({"karpenter.k8s.aws/instance-accelerator-name": "trainium"}, "aws", "trainium"),
    ],
)
def test_labels_promise_accelerators_that_no_device_plugin_offers(
    labels: dict[str, str], vendor: str, type_: str | None
) -> None:
    found = reported_node(node({"cpu": 64000}, labels))
    assert found["blocked_by"] == ["no_device_plugin"]
    assert (found["vendor"], found["type"], found["physical_devices"]) == (vendor, type_, None)
    assert found["resources"] == {}


def test_a_label_that_says_there_is_no_gpu_promises_none() -> None:
    assert counted_node(node({}, {"nvidia.com/gpu.present": "false"})).blocked == ["no_gpu"]


def test_resources_of_which_none_is_allocatable_close_a_node_after_all_else() -> None:
    facts = node({GPU: 8}, H100, {GPU: 0}, deleting=True, taints=(taint("a", "b"),))
    assert counted_node(facts).blocked == ["deleting", "taint:a=b:NoSchedule", "allocatable_zero"]


def test_a_virtual_node_offers_a_quota_and_no_hardware() -> None:
    facts = node(
        {GPU: 100},
        {"type": "virtual-kubelet"},
        taints=(taint("virtual-kubelet.io/provider", "azure"),),
    )
    found = counted_node(facts)
    assert found.blocked == ["taint:virtual-kubelet.io/provider=azure:NoSchedule"]
    assert (found.details["virtual"], found.physical, found.pools) == (True, None, [])
    assert found.resources[GPU].free == 100
