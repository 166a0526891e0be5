"""Dynamic resource allocation in all its versions."""

from __future__ import annotations

from typing import Any

import pytest

from sizing.domain.specs import Taint
from sizing.inventory.kubernetes import objects
from sizing.inventory.kubernetes.facts import ClaimFacts, SliceDevice, SliceFacts, TaintRuleFacts
from tests.kubernetes.made import GPU, Object, container, listed, node, pod, the_pod

DRIVER = "gpu.nvidia.com"


def resource_slice(version: str, devices: list[Any], **spec: Any) -> Object:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": DRIVER,
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 2, "resourceSliceCount": 1},
            "devices": devices,
        }
        | spec,
    }


def claim(requests: list[Any], results: Any = None, version: str = "v1", **status: Any) -> Object:
    if results is not None:
        status["allocation"] = {"devices": {"results": results}}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "llm"},
        "spec": {"devices": {"requests": requests}},
        "status": status,
    }


def given(request: str, device: str, **more: Any) -> Object:
    return {"request": request, "driver": DRIVER, "pool": "n1", "device": device} | more


def asked(*requests: Any, results: Any = None) -> dict[str, int]:
    (found,) = listed(claim(list(requests), results)).claims.values()
    return found.asks


ATTRIBUTES: Object = {
    "productName": {"string": "NVIDIA H100 80GB HBM3"},
    f"{DRIVER}/driverVersion": {"version": "580.1.0"},
    "index": {"int": 3},
    "mig": {"bool": False},
    "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
}
READ = {
    "productName": "NVIDIA H100 80GB HBM3",
    "driverVersion": "580.1.0",
    "index": "3",
    "mig": "false",
    "resource.kubernetes.io/pcieRoot": "pci0000:00",
}


@pytest.mark.parametrize(
    ("version", "device"),
    [
        ("v1", {"attributes": ATTRIBUTES, "capacity": {"memory": {"value": "81559Mi"}}}),
        ("v1beta2", {"attributes": ATTRIBUTES, "capacity": {f"{DRIVER}/memory": {"value": "81559Mi"}}}),
        ("v1beta1", {"basic": {"attributes": ATTRIBUTES, "capacity": {"memory": {"value": "81559Mi"}}}}),
        ("v1alpha3", {"basic": {"attributes": ATTRIBUTES, "capacity": {"memory": "81559Mi"}}}),
    ],
)
def test_a_slice_is_read_in_every_version(version: str, device: Object) -> None:
    assert listed(resource_slice(version, [{"name": "gpu-0"} | device])).slices == {
        "s": SliceFacts("s", DRIVER, "n1", 2, "n1", (SliceDevice("gpu-0", READ, 81559 * 1024**2, ()),), 1)
    }


def test_taints_of_a_device_are_read() -> None:
    taint = {
        "key": "gpu.nvidia.com/xid",
        "value": "79",
        "effect": "NoSchedule",
        "timeAdded": "2026-01-01T00:00:00Z",
    }
    (found,) = listed(resource_slice("v1", [{"name": "gpu-0", "taints": [taint]}])).slices.values()
    assert found.devices[0].taints == (Taint("gpu.nvidia.com/xid", "79", "NoSchedule"),)
    assert found.devices[0].memory_bytes is None


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (resource_slice("v1", [], driver=None), "spec.driver is missing"),
        (resource_slice("v1", [{"name": 3}]), "the name of a device is no text"),
        (
            resource_slice("v1", [{"name": "g", "capacity": {"memory": {"value": "x"}}}]),
            "device g: memory 'x' is no quantity",
        ),
        (
            resource_slice("v1", [], perDeviceNodeSelection=True),
            "its devices are on several nodes, which is not read",
        ),
    ],
)
def test_a_slice_that_cannot_be_counted_is_skipped(item: Object, why: str) -> None:
    listing = listed(item)
    assert listing.slices == {}
    assert [skipped.reason for skipped in listing.skipped] == [why]


def test_a_claim_is_read_with_its_devices_and_its_pods() -> None:
    item = claim(
        [{"name": "gpu", "exactly": {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": 2}}],
        [given("gpu", "gpu-0"), given("gpu", "gpu-1")],
        reservedFor=[{"resource": "pods", "name": "p", "uid": "u-1"}, {"resource": "jobs", "uid": "u-2"}],
    )
    assert listed(item).claims == {
        ("llm", "c"): ClaimFacts(
            "llm", "c", {DRIVER: 2}, ((DRIVER, "n1", "gpu-0"), (DRIVER, "n1", "gpu-1")), ("u-1",)
        )
    }


def test_a_part_of_a_devices_memory_is_read() -> None:
    shares = [{"memory": "10Gi"}, {f"{DRIVER}/memory": "1Gi"}, {"slots": "1"}, None]
    results = [given("gpu", f"gpu-{at // 2}", consumedCapacity=share) for at, share in enumerate(shares)]
    (found,) = listed(claim([{"name": "gpu", "deviceClassName": DRIVER}], results)).claims.values()
    assert found.memory_bytes == {(DRIVER, "n1", "gpu-0"): 11 * 2**30}
    wrong = claim([], [given("gpu", "gpu-0", consumedCapacity={"memory": "much"})])
    (skipped,) = listed(wrong).skipped
    assert skipped.reason.startswith("device gpu-0: ")


def test_requests_are_read_in_every_version() -> None:
    assert asked({"name": "a", "exactly": {"deviceClassName": DRIVER}}) == {DRIVER: 1}
    assert asked({"name": "a", "deviceClassName": DRIVER, "count": 3}) == {DRIVER: 3}
    assert asked({"name": "a", "deviceClassName": DRIVER}, {"name": "b", "deviceClassName": DRIVER}) == {
        DRIVER: 2
    }


def test_of_alternatives_the_one_that_was_given_counts_else_the_first() -> None:
    request = {
        "name": "gpu",
        "firstAvailable": [
            {"name": "large", "deviceClassName": "h100"},
            {"name": "small", "deviceClassName": "l4", "count": 2},
        ],
    }
    assert asked(request) == {"h100": 1}
    assert asked(request, results=[given("gpu/small", "d0"), given("gpu/small", "d1")]) == {"l4": 2}


def test_all_devices_are_as_many_as_were_given() -> None:
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER, "allocationMode": "All"}}
    assert asked(request, results=[given("gpu", f"d{number}") for number in range(4)]) == {DRIVER: 4}
    assert asked(request) == {DRIVER: 1}


def test_a_request_with_admin_access_holds_nothing() -> None:
    request = {"name": "watch", "exactly": {"deviceClassName": DRIVER, "adminAccess": True}}
    (found,) = listed(claim([request], [given("watch", "d0", adminAccess=True)])).claims.values()
    assert (found.asks, found.devices) == ({}, ())


@pytest.mark.parametrize("count", ["x", 0, -1, 2.5, 10_001, 10**30])
def test_an_impossible_count_skips_the_claim(count: Any) -> None:
    listing = listed(claim([{"name": "a", "exactly": {"deviceClassName": DRIVER, "count": count}}]))
    assert listing.claims == {}
    assert listing.skipped[0].reason == "a count of devices must be a whole number from 1 to 10,000"


def test_device_classes_tell_the_extended_resource_that_they_serve() -> None:
    def device_class(name: str, **spec: Any) -> Object:
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": spec,
        }

    listing = listed(device_class(DRIVER, extendedResourceName=GPU), device_class("other"))
    assert listing.device_classes == {DRIVER: GPU, "other": ""}


def test_a_pod_names_its_claims_also_those_made_from_templates() -> None:
    spec = {
        "containers": [{"name": "a"}],
        "resourceClaims": [
            {"name": "x", "resourceClaimName": "shared"},
            {"name": "y", "resourceClaimTemplateName": "t"},
            {"name": "z", "source": {"resourceClaimName": "old"}},
        ],
    }
    status = {"resourceClaimStatuses": [{"name": "y", "resourceClaimName": "p1-y-7xk2p"}]}
    found = the_pod(pod(spec=spec, status=status, labels={"app": "a"}))
    assert found.claims == ("shared", "p1-y-7xk2p", "old")
    assert found.labels == {"app": "a"}


def test_a_pod_that_waits_for_its_claim_asks_for_devices() -> None:
    spec = {
        "containers": [{"name": "a"}],
        "resourceClaims": [{"name": "y", "resourceClaimTemplateName": "t"}],
    }
    found = the_pod(pod(spec=spec, labels={"app": "a"}))
    assert (found.claims, found.labels) == ((), {"app": "a"})


def test_a_pod_names_the_claim_that_serves_its_extended_resources() -> None:
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "p1-ext"}}
    listing = listed(node(), pod(spec={"containers": [container()]}, status=status))
    assert [found.extended_claim for found in listing.pods.values()] == ["p1-ext"]


def taint_rule(version: str = "v1beta2", **spec: Any) -> Object:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {"taint": {"key": "maintenance", "value": "fans", "effect": "NoExecute"}} | spec,
    }


def test_a_taint_rule_is_read_with_what_it_selects() -> None:
    selector = {"driver": DRIVER, "pool": "n1", "device": "gpu-0"}
    taint = Taint("maintenance", "fans", "NoExecute")
    assert listed(taint_rule(deviceSelector=selector)).taint_rules == {
        "r": TaintRuleFacts("r", taint, DRIVER, "n1", "gpu-0")
    }
    assert listed(taint_rule(deviceSelector={})).taint_rules == {"r": TaintRuleFacts("r", taint)}
    by_class = taint_rule("v1alpha3", deviceSelector={"deviceClassName": "gpu"})
    assert listed(by_class).taint_rules["r"].unread


def test_a_taint_rule_without_a_selector_is_of_no_device_and_one_without_a_taint_is_none() -> None:
    assert listed(taint_rule()).taint_rules == {}
    (skipped,) = listed(taint_rule(deviceSelector={}, taint=None)).skipped
    assert (skipped.kind, skipped.reason) == ("DeviceTaintRule", "it has no taint")


def test_a_taint_rule_that_is_gone_taints_no_more() -> None:
    listing = listed(taint_rule(deviceSelector={}))
    objects.remove(listing, taint_rule(deviceSelector={}))
    assert listing.taint_rules == {}
