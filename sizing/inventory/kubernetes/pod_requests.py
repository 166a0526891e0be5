"""What the scheduler books for a pod.

Follows `PodRequests` of Kubernetes' component-helpers and the defaults of its API: limits stand in for
requests that are missing; sidecars (init containers with `restartPolicy: Always`) count from their place
on; while a container is being resized the larger of what is asked, allocated and in force counts; requests
of the pod as a whole replace the sum of CPU and memory. See
https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers
and https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sizing.inventory.kubernetes.facts import CPU, MEMORY, Quantities
from sizing.inventory.kubernetes.quantity import QuantityError, read_quantities
from sizing.inventory.kubernetes.texts import mapping, mappings

_POD_LEVEL = (CPU, MEMORY)
_HUGE_PAGES = "hugepages-"


class PodRequests:
    """The requests of a pod (`total`, without zeros) and of each of its containers by `container`.

    Raises `QuantityError` where one of them is no quantity.
    """

    def __init__(self, spec: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        self._status = _container_statuses(status)
        self._infeasible = bool(self._status) and _resize_is_infeasible(status)
        self._found: dict[int, Quantities] = {}
        total: Quantities = {}
        for container in mappings(spec.get("containers")):
            _add(total, self.container(container))
        sidecars: Quantities = {}
        starting: Quantities = {}
        for container in mappings(spec.get("initContainers")):
            if is_sidecar(container):
                requests = self.container(container)
                _add(total, requests)
                _add(sidecars, requests)
            else:
                requests = dict(self.container(container))
                _add(requests, sidecars)
                _raise(starting, requests)
        _raise(total, starting)
        if spec.get("resources"):
            total.update(_of_the_pod(mapping(spec["resources"]), total))
        if spec.get("overhead"):
            _add(total, _named("overhead", lambda: read_quantities(spec["overhead"])))
        self.total = {resource: amount for resource, amount in total.items() if amount}

    def container(self, container: Mapping[str, Any]) -> Quantities:
        """What one container asks for, also while it is being resized."""
        found = self._found.get(id(container))
        if found is None:
            name = container.get("name")
            status = self._status.get(name) if isinstance(name, str) else None
            try:
                found = self._container(mapping(container.get("resources")), status)
            except QuantityError as error:
                raise QuantityError(f"container {name}: {error}") from None
            self._found[id(container)] = found
        return found

    def _container(self, resources: Mapping[str, Any], status: Mapping[str, Any] | None) -> Quantities:
        asked = _requests(resources)
        if status is None:
            return asked
        booked = {} if self._infeasible else asked
        told = mapping(status.get("resources")).get("requests")
        if told != resources.get("requests"):
            _raise(booked, read_quantities(told))
        elif self._infeasible:
            booked = asked
        _raise(booked, read_quantities(status.get("allocatedResources")))
        return booked


def is_sidecar(container: Mapping[str, Any]) -> bool:
    """Whether an init container stays beside the others."""
    return container.get("restartPolicy") == "Always"


def _requests(resources: Mapping[str, Any]) -> Quantities:
    requests = read_quantities(resources.get("requests"))
    limits = resources.get("limits")
    if limits:
        for resource, amount in read_quantities(limits).items():
            requests.setdefault(resource, amount)
    return requests


def _of_the_pod(resources: Mapping[str, Any], total: Quantities) -> Quantities:
    """Requests of the pod as a whole; its limits stand in only where no container asks."""
    requests = _named("the pod", lambda: read_quantities(resources.get("requests")))
    for resource, amount in _named("the pod", lambda: read_quantities(resources.get("limits"))).items():
        requests.setdefault(resource, total.get(resource) or amount)
    return {
        resource: amount
        for resource, amount in requests.items()
        if resource in _POD_LEVEL or resource.startswith(_HUGE_PAGES)
    }


def _container_statuses(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Statuses that tell resources, by the container's name."""
    return {
        each["name"]: each
        for key in ("containerStatuses", "initContainerStatuses")
        for each in mappings(status.get(key))
        if isinstance(each.get("resources"), dict) and isinstance(each.get("name"), str)
    }


def _resize_is_infeasible(status: Mapping[str, Any]) -> bool:
    for condition in mappings(status.get("conditions")):
        if condition.get("type") == "PodResizePending":
            return bool(condition.get("reason") == "Infeasible")
    return False


def _add(total: Quantities, more: Quantities) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, 0) + amount


def _raise(total: Quantities, least: Quantities) -> None:
    for resource, amount in least.items():
        if amount > total.get(resource, 0):
            total[resource] = amount


def _named(place: str, read: Callable[[], Quantities]) -> Quantities:
    try:
        return read()
    except QuantityError as error:
        raise QuantityError(f"{place}: {error}") from None
