"""What pods hold, or wait for, of accelerators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sizing.inventory.kubernetes import dra as dynamic
from sizing.inventory.kubernetes import hami
from sizing.inventory.kubernetes.counted import Need
from sizing.inventory.kubernetes.facts import Listing, PodFacts
from sizing.inventory.kubernetes.vendors import NEURON, NEURON_CORE, NEURON_DEVICE, NVIDIA_GPU, is_device

# Cores of a Neuron device of Inferentia2 and Trainium1, where no node tells them.
_CORES = 2


@dataclass(slots=True)
class Holding:
    """What one pod asks for. `asked` is by resource or device class, as people write it; `plain` the part
    that device plugins serve, not claims; `needs` what it holds or waits for; `note` why that is nothing."""

    asked: dict[str, int] = field(default_factory=dict)
    plain: dict[str, int] = field(default_factory=dict)
    needs: list[Need] = field(default_factory=list)
    note: str = ""

    @property
    def devices(self) -> int:
        """How many devices it holds in all."""
        return sum(need.count for need in self.needs)


@dataclass(slots=True)
class Books:
    """What decides over all pods together: who holds a claim that several share, and each node's cards."""

    listing: Listing
    dra: dynamic.Dra
    cards: dict[str, hami.Cards]
    holders: dict[tuple[str, str], str]

    @classmethod
    def open(cls, listing: Listing, dra: dynamic.Dra) -> Books:
        cards = {}
        for node in listing.nodes.values():
            found = hami.cards_of(node.annotations) if node.annotations else None
            if found:
                cards[node.name] = found
        return cls(listing, dra, cards, _holders(listing))

    def holding_of(self, pod: PodFacts) -> Holding | None:
        """What the pod asks for of accelerators; None where it asks for none."""
        plain = {name: n for name, n in pod.requests.items() if n > 0 and is_device(name)}
        if not plain and not pod.claims and not pod.extended_claim:
            return None
        claimed = dynamic.asked_by(pod, self.listing, self.dra)
        asked = plain | claimed
        held = dynamic.held_by(pod, self.listing, self.dra)
        if not asked and not held:
            return None
        if pod.extended_claim:
            # Its scheduler serves the resource from a claim: what the claim holds is all that it holds.
            claimed, plain = asked, {}
        found = Holding(asked, plain)
        self._from_claims(pod, held, found)
        if not held and not pod.bound:
            found.needs.extend(Need(name, count) for name, count in claimed.items())
        found.needs.extend(self._from_plugins(pod, plain))
        return found

    def _from_claims(self, pod: PodFacts, held: Mapping[str, list[dynamic.Key]], found: Holding) -> None:
        by_driver: dict[str, list[str]] = {}
        for name, keys in held.items():
            holder = self.holders.get((pod.namespace, name), pod.key)
            if holder != pod.key:
                found.note = f"shares claim {name} with {holder}, which holds its devices"
                continue
            for driver, pool, device in keys:
                by_driver.setdefault(driver, []).append(f"{pool}/{device}")
        for driver, names in by_driver.items():
            distinct = tuple(dict.fromkeys(names))
            found.needs.append(Need(driver, len(distinct), names=distinct))

    def _from_plugins(self, pod: PodFacts, plain: dict[str, int]) -> list[Need]:
        needs: list[Need] = []
        cards = self.cards.get(pod.node) if pod.node else None
        neuron = {name: n for name, n in plain.items() if name in (NEURON, NEURON_CORE, NEURON_DEVICE)}
        if neuron:
            needs.append(Need(NEURON, self._neuron_devices(pod, neuron)))
        for resource, count in plain.items():
            if resource in neuron:
                continue
            if cards is not None and resource == cards.resource:
                needs.extend(hami.needs_of(pod, cards))
            elif resource == NVIDIA_GPU and not pod.node and hami.asks_for_shares(pod):
                needs.extend(hami.asked_of(pod, resource))
            else:
                needs.append(Need(resource, count))
        return needs

    def _neuron_devices(self, pod: PodFacts, asked: Mapping[str, int]) -> int:
        """Neuron names the same hardware as devices and cores: a device of which a core is held is held."""
        node = self.listing.nodes.get(pod.node)
        capacity = node.capacity if node is not None else {}
        per_device = cores_per_device(capacity)
        cores = -(-asked.get(NEURON_CORE, 0) // per_device)
        return max(asked.get(NEURON, 0), asked.get(NEURON_DEVICE, 0), cores)


def cores_per_device(capacity: Mapping[str, int]) -> int:
    """The cores of one Neuron device of a node."""
    devices = capacity.get(NEURON, 0) or capacity.get(NEURON_DEVICE, 0)
    cores = capacity.get(NEURON_CORE, 0)
    return max(1, cores // devices) if devices and cores else _CORES


def _holders(listing: Listing) -> dict[tuple[str, str], str]:
    """Of each claim that several pods share, the pod that holds it: the first by age, then by name."""
    users: dict[tuple[str, str], list[PodFacts]] = {}
    for pod in listing.pods.values():
        if not pod.ended:
            for name in (*pod.claims, *((pod.extended_claim,) if pod.extended_claim else ())):
                users.setdefault((pod.namespace, name), []).append(pod)
    return {claim: min(pods, key=_seniority).key for claim, pods in users.items()}


def _seniority(pod: PodFacts) -> tuple[bool, bool, float, str]:
    """A pod that is bound before one that waits, then the older one."""
    age = pod.created_at.timestamp() if pod.created_at else 0.0
    return (not pod.bound, pod.created_at is None, age, pod.key)
