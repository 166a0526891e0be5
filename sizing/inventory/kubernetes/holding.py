"""What pods hold, or wait for, of accelerators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sizing.inventory.kubernetes import dra as dynamic
from sizing.inventory.kubernetes import hami
from sizing.inventory.kubernetes.counted import Need
from sizing.inventory.kubernetes.facts import Listing, PodFacts
from sizing.inventory.kubernetes.holders import Holders, holders_of
from sizing.inventory.kubernetes.neuron import devices_asked, devices_held
from sizing.inventory.kubernetes.vendors import NEURON, NEURON_CORE, NEURON_DEVICE, NVIDIA_GPU, is_device


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
    """What decides over all pods together: who holds what several share, each node's cards, and how many
    Neuron devices each bound pod holds."""

    listing: Listing
    dra: dynamic.Dra
    cards: dict[str, hami.Cards]
    holders: Holders
    neuron: dict[str, int]

    @classmethod
    def open(cls, listing: Listing, dra: dynamic.Dra) -> Books:
        cards = {}
        for node in listing.nodes.values():
            found = hami.cards_of(node.annotations) if node.annotations else None
            if found:
                cards[node.name] = found
        return cls(listing, dra, cards, holders_of(listing, dra), devices_held(listing))

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
        if not found.needs and not self.neuron.get(pod.key, 1):
            found.note = "is on cores of Neuron devices that other pods hold"
        return found

    def _from_claims(self, pod: PodFacts, held: Mapping[str, list[dynamic.Key]], found: Holding) -> None:
        shares: dict[dynamic.Key, int | None] = {}
        for name, keys in held.items():
            claim = (pod.namespace, name)
            holder = self.holders.claims.get(claim, pod.key)
            if holder != pod.key:
                found.note = f"shares claim {name} with {holder}, which holds its devices"
                continue
            for key in keys:
                holder = self.holders.devices.get(key, pod.key)
                if holder != pod.key:
                    found.note = f"shares device {key[2]} with {holder}, which holds it"
                    continue
                share = self.holders.shares.get(claim, {}).get(key)
                before = shares.get(key, 0)
                shares[key] = None if share is None or before is None else before + share
        by_driver: dict[tuple[str, int | None], list[str]] = {}
        for (driver, pool, device), mib in shares.items():
            by_driver.setdefault((driver, mib), []).append(f"{pool}/{device}")
        for (driver, mib), names in by_driver.items():
            found.needs.append(Need(driver, len(names), memory_mib=mib, names=tuple(names)))

    def _from_plugins(self, pod: PodFacts, plain: dict[str, int]) -> list[Need]:
        needs: list[Need] = []
        cards = self.cards.get(pod.node) if pod.node else None
        neuron = {name: n for name, n in plain.items() if name in (NEURON, NEURON_CORE, NEURON_DEVICE)}
        if neuron:
            devices = self.neuron[pod.key] if pod.key in self.neuron else devices_asked(plain)
            needs.extend([Need(NEURON, devices)] if devices else [])
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
