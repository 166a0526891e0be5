"""Dynamic resource allocation: ResourceSlices, ResourceClaims, DeviceClasses and DeviceTaintRules as facts.

All versions of `resource.k8s.io` that have structured devices: v1 and v1beta2, v1beta1 and v1alpha3 (where
a device's attributes stand in `basic`, and a request names its class directly). See
https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sizing.inventory.kubernetes.facts import MEMORY, ClaimFacts, SliceDevice, SliceFacts, TaintRuleFacts
from sizing.inventory.kubernetes.quantity import MOST_DEVICES, QuantityError, read_quantity
from sizing.inventory.kubernetes.texts import (
    NotTakenError,
    line,
    mapping,
    mappings,
    name,
    taints,
    text,
    whole,
)

_KINDS_OF_VALUES = ("string", "version", "int", "bool")


def read_slice(item: Mapping[str, Any]) -> SliceFacts:
    """Raises `NotTakenError` with the reason where it cannot be counted."""
    spec = mapping(item.get("spec"))
    pool = mapping(spec.get("pool"))
    driver = name(spec.get("driver"), "spec.driver")
    if spec.get("perDeviceNodeSelection") is True:
        raise NotTakenError("its devices are on several nodes, which is not read")
    node = spec.get("nodeName")
    return SliceFacts(
        name=name(mapping(item.get("metadata")).get("name")),
        driver=driver,
        pool=line(pool.get("name")),
        generation=whole(pool.get("generation")) or 0,
        node=name(node, "spec.nodeName") if node else "",
        devices=tuple(_device(each, driver) for each in mappings(spec.get("devices"))),
        slices=whole(pool.get("resourceSliceCount")) or 0,
    )


def _device(device: Mapping[str, Any], driver: str) -> SliceDevice:
    named = name(device.get("name"), "the name of a device")
    told = device["basic"] if isinstance(device.get("basic"), dict) else device
    own = f"{driver}/"
    attributes = {
        line(key.removeprefix(own)): _attribute(value)
        for key, value in mapping(told.get("attributes")).items()
    }
    capacity = {key.removeprefix(own): value for key, value in mapping(told.get("capacity")).items()}
    memory = capacity.get(MEMORY)
    if isinstance(memory, dict):
        memory = memory.get("value")
    try:
        size = None if memory is None else read_quantity(MEMORY, memory)
    except QuantityError as error:
        raise NotTakenError(f"device {named}: {error}") from None
    return SliceDevice(named, attributes, size, taints(told.get("taints")))


def _attribute(value: Any) -> str:
    if isinstance(value, dict):
        return next((line(value[kind]) for kind in _KINDS_OF_VALUES if value.get(kind) is not None), "")
    return line(value)


def read_claim(item: Mapping[str, Any]) -> ClaimFacts:
    """Raises `NotTakenError` with the reason where it cannot be counted."""
    metadata, status = mapping(item.get("metadata")), mapping(item.get("status"))
    namespace = name(metadata.get("namespace") or "default", "its namespace")
    named = name(metadata.get("name"))
    devices = mapping(mapping(item.get("spec")).get("devices"))
    # A request with admin access watches devices that others hold.
    results = [
        each
        for each in mappings(mapping(mapping(status.get("allocation")).get("devices")).get("results"))
        if each.get("adminAccess") is not True
    ]
    chosen = [text(each.get("request")) for each in results]
    asks: dict[str, int] = {}
    for device_class, count in _asks(devices, chosen):
        asks[device_class] = asks.get(device_class, 0) + count
    return ClaimFacts(
        namespace=namespace,
        name=named,
        asks=asks,
        devices=tuple(map(_key, results)),
        users=tuple(
            line(each.get("uid"))
            for each in mappings(status.get("reservedFor"))
            if each.get("resource") == "pods" and line(each.get("uid"))
        ),
        memory_bytes=_shares(results),
    )


def _key(result: Mapping[str, Any]) -> tuple[str, str, str]:
    return (line(result.get("driver")), line(result.get("pool")), line(result.get("device")))


def _shares(results: list[Mapping[str, Any]]) -> dict[tuple[str, str, str], int]:
    """What a claim has of the memory of devices that take several claims (`consumedCapacity`)."""
    shares: dict[tuple[str, str, str], int] = {}
    for result in results:
        consumed = mapping(result.get("consumedCapacity"))
        key = _key(result)
        told = consumed.get(MEMORY, consumed.get(f"{key[0]}/{MEMORY}"))
        if told is None:
            continue
        try:
            shares[key] = shares.get(key, 0) + read_quantity(MEMORY, told)
        except QuantityError as error:
            raise NotTakenError(f"device {key[2]}: {error}") from None
    return shares


def _asks(devices: Mapping[str, Any], chosen: list[str]) -> Iterator[tuple[str, int]]:
    """Device classes and counts; of alternatives the chosen one, else the first."""
    for request in mappings(devices.get("requests")):
        named = text(request.get("name"))
        exactly = request.get("exactly")
        wanted = mapping(exactly) if isinstance(exactly, dict) else request
        alternatives = list(mappings(request.get("firstAvailable")))
        if alternatives:
            names = [f"{named}/{text(each.get('name'))}" for each in alternatives]
            at = next((at for at, name_ in enumerate(names) if name_ in chosen), 0)
            wanted, named = alternatives[at], names[at]
        device_class = line(wanted.get("deviceClassName"))
        if device_class and wanted.get("adminAccess") is not True:
            yield device_class, _count(wanted, chosen.count(named))


def _count(wanted: Mapping[str, Any], given: int) -> int:
    """How many devices; how many `All` are shows only when they are given."""
    if wanted.get("allocationMode") == "All":
        return max(given, 1)
    count = wanted.get("count")
    number = 1 if count is None else whole(count)
    if number is None or not 1 <= number <= MOST_DEVICES:
        raise NotTakenError(f"a count of devices must be a whole number from 1 to {MOST_DEVICES:,}")
    return number


def read_device_class(item: Mapping[str, Any]) -> tuple[str, str]:
    """Its name, and the extended resource that it serves; empty where it serves none."""
    named = name(mapping(item.get("metadata")).get("name"))
    return named, line(mapping(item.get("spec")).get("extendedResourceName"))


def read_taint_rule(item: Mapping[str, Any]) -> TaintRuleFacts | None:
    """A taint that is given to devices; None without a selector, which is of no device.

    Raises `NotTakenError` with the reason where it has no taint.
    """
    named = name(mapping(item.get("metadata")).get("name"))
    spec = mapping(item.get("spec"))
    selector = spec.get("deviceSelector")
    given = taints([spec.get("taint")])
    if not given:
        raise NotTakenError("it has no taint")
    if not isinstance(selector, dict):
        return None
    return TaintRuleFacts(
        named,
        given[0],
        line(selector.get("driver")),
        line(selector.get("pool")),
        line(selector.get("device")),
        unread=bool(selector.get("deviceClassName") or selector.get("selectors")),
    )
