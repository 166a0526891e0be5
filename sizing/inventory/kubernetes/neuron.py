"""AWS Neuron: a node names the same hardware as devices and as their cores.

Whoever holds one core of a device holds it as far as whole devices are asked for; cores of several pods are
on one device where they fit.
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/kubernetes-getting-started.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sizing.inventory.kubernetes.facts import Listing, PodFacts
from sizing.inventory.kubernetes.holders import seniority
from sizing.inventory.kubernetes.vendors import NEURON, NEURON_CORE, NEURON_DEVICE

# Cores of a Neuron device of Inferentia2 and Trainium1, where no node tells them.
_CORES = 2


def cores_per_device(capacity: Mapping[str, int]) -> int:
    """The cores of one Neuron device of a node."""
    devices = capacity.get(NEURON, 0) or capacity.get(NEURON_DEVICE, 0)
    cores = capacity.get(NEURON_CORE, 0)
    return max(1, cores // devices) if devices and cores else _CORES


def devices_held(listing: Listing) -> dict[str, int]:
    """The devices of each bound pod that asks for Neuron, by key: 0 where others hold all that it is on."""
    by_node: dict[str, list[PodFacts]] = {}
    for pod in listing.pods.values():
        if pod.bound and _asks(pod.requests):
            by_node.setdefault(pod.node, []).append(pod)
    found: dict[str, int] = {}
    for name, pods in by_node.items():
        node = listing.nodes.get(name)
        found.update(_on_node(pods, node.capacity if node is not None else {}))
    return found


def devices_asked(requests: Mapping[str, int]) -> int:
    """The devices that a pod waits for."""
    return max(_whole(requests), -(-requests.get(NEURON_CORE, 0) // _CORES))


def _asks(requests: Mapping[str, int]) -> bool:
    return any(requests.get(name) for name in (NEURON, NEURON_CORE, NEURON_DEVICE))


def _whole(requests: Mapping[str, int]) -> int:
    return max(requests.get(NEURON, 0), requests.get(NEURON_DEVICE, 0))


def _on_node(pods: Iterable[PodFacts], capacity: Mapping[str, int]) -> dict[str, int]:
    per_device = cores_per_device(capacity)
    found: dict[str, int] = {}
    left: list[int] = []  # cores of each device of which some are held
    for pod in sorted(pods, key=lambda p: (not _whole(p.requests), seniority(p))):
        whole = _whole(pod.requests)
        devices, rest = divmod(pod.requests.get(NEURON_CORE, 0), per_device)
        if rest and not whole:
            room = [at for at, cores in enumerate(left) if cores >= rest]
            if room:
                left[min(room, key=lambda at: (left[at], at))] -= rest
            else:
                devices += 1
                left.append(per_device - rest)
        found[pod.key] = max(whole, devices)
    return found
