"""A listing counted: what each node has, what is used of it, what closes it, and which pods wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sizing.inventory.kubernetes import cautions, closed, hami, telling
from sizing.inventory.kubernetes import dra as dynamic
from sizing.inventory.kubernetes.counted import Counted, HostCount, NodeCount, ResourceCount
from sizing.inventory.kubernetes.describing import describe
from sizing.inventory.kubernetes.devices import pools
from sizing.inventory.kubernetes.facts import CPU, MEMORY, PODS, Listing, NodeFacts, PodFacts
from sizing.inventory.kubernetes.hami import Cards
from sizing.inventory.kubernetes.hardware import Hardware
from sizing.inventory.kubernetes.holding import Books, Holding
from sizing.inventory.kubernetes.signs import promised
from sizing.inventory.kubernetes.vendors import NEURON, NEURON_CORE, NEURON_DEVICE, is_device

_ALL_MIB = 2**40
"""Stands for all of a card's memory."""


@dataclass(slots=True)
class _Usage:
    """What the pods of one node use. `held` are devices by pool; `low` those of negative priority; `cards` is
    memory, `slots` and `cores` what is taken beside it, by uuid."""

    plain: dict[str, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    nominated: dict[str, int] = field(default_factory=dict)
    cards: dict[str, int] = field(default_factory=dict)
    slots: dict[str, int] = field(default_factory=dict)
    cores: dict[str, int] = field(default_factory=dict)
    unnamed: int = 0
    low: int = 0
    cpu: int = 0
    memory: int = 0
    pods: int = 0


def count(listing: Listing) -> Counted:
    """Count a cluster: rule by rule as the scheduler books it.

    used = the requests of all pods that are bound and have not ended, also of pods that are pending on their
    node or being deleted; free = allocatable - used, never below 0; capacity - allocatable are devices that
    the device plugin withdrew.
    """
    dra = dynamic.read(listing)
    books = Books.open(listing, dra)
    counted = Counted(listing)
    usage = {name: _Usage() for name in listing.nodes}
    for pod in listing.pods.values():
        _count_pod(pod, books, counted, usage)
    for name, facts in listing.nodes.items():
        counted.nodes[name] = _count_node(facts, usage[name], dra, books.cards.get(name))
    counted.reserved = _reserved(counted, dra)
    for node in counted.nodes.values():
        node.say = telling.say(node)
    telling.tell_broken_slices(counted.nodes)
    counted.warnings.extend([*cautions.of_listing(counted), *dra.warnings, *cautions.of_nodes(counted)])
    counted.warnings.extend(cautions.of_pods(counted))
    return counted


def _count_pod(pod: PodFacts, books: Books, counted: Counted, usage: Mapping[str, _Usage]) -> None:
    holding = books.holding_of(pod)
    if pod.ended:
        if holding is not None:
            counted.ended.append(pod)
        return
    here = usage.get(pod.node) if pod.node else None
    if here is not None:
        here.cpu += pod.requests.get(CPU, 0)
        here.memory += pod.requests.get(MEMORY, 0)
        here.pods += 1
    if holding is None:
        return
    counted.needs[pod.key] = holding.needs
    if holding.note:
        counted.notes[pod.key] = holding.note
    if pod.node:
        if here is None:
            counted.orphans.append(pod)
            return
        _book(here, pod, holding)
        cards = books.cards.get(pod.node)
        for uuid, taken in hami.taken_of(pod, cards).items() if cards else ():
            _add(here.slots, {uuid: taken.slots})
            _add(here.cores, {uuid: taken.cores})
        if pod.deleting:
            counted.terminating.append(pod)
        return
    counted.unplaced.append(pod)
    if pod.nominated:
        counted.nominated.append(pod)
        if pod.nominated in usage:
            _add(usage[pod.nominated].nominated, holding.asked)


def _reserved(counted: Counted, dra: dynamic.Dra) -> dict[str, set[tuple[str, str]]]:
    """Devices of each node that claims have and no bound pod holds there."""
    held = {
        (pod.node, need.resource, name)
        for pod in counted.listing.pods.values()
        if pod.bound
        for need in counted.needs.get(pod.key, ())
        for name in need.names
    }
    found: dict[str, set[tuple[str, str]]] = {}
    for node, published in dra.nodes.items():
        for one in published:
            if one.key in dra.held and (node, one.driver, one.name) not in held:
                found.setdefault(node, set()).add((one.driver, one.name))
    return found


def _book(here: _Usage, pod: PodFacts, holding: Holding) -> None:
    _add(here.plain, holding.plain)
    for need in holding.needs:
        here.held[need.resource] = here.held.get(need.resource, 0) + need.count
        if need.names:
            mib = need.memory_mib or _ALL_MIB
            for name in need.names:
                here.cards[name] = here.cards.get(name, 0) + mib
        else:
            here.unnamed += need.count
    if pod.priority < 0:
        here.low += holding.devices


def _add(sums: dict[str, int], more: Mapping[str, int]) -> None:
    for name, number in more.items():
        sums[name] = sums.get(name, 0) + number


def _count_node(facts: NodeFacts, usage: _Usage, dra: dynamic.Dra, cards: Cards | None) -> NodeCount:
    node = NodeCount(facts)
    for name in sorted({*facts.capacity, *facts.allocatable}):
        if is_device(name):
            node.resources[name] = ResourceCount(
                facts.capacity.get(name, 0), facts.allocatable.get(name, 0), usage.plain.get(name, 0)
            )
    published = dra.nodes.get(facts.name, [])
    hardware = Hardware.of(node, cards, published)
    describe(hardware, node)
    node.taints_that_count = closed.taints_that_count(facts)
    node.blocked = closed.closing_codes(facts, node.taints_that_count)
    node.blocked.extend(closed.lacking_codes(node.resources, bool(published), promised(facts.labels)))
    reconfiguring = closed.mig_reconfiguring(facts)
    full = cards.full(usage.slots, usage.cores) if cards is not None else frozenset()
    node.pools = pools(hardware, node, usage.held, reconfiguring, full)
    node.host = _host(facts, usage)
    details = node.details
    withdrawn = sum(
        max(0, n.capacity - n.allocatable)
        for name, n in node.resources.items()
        # The cores of Neuron are its devices once more.
        if not (name == NEURON_CORE and NEURON in node.resources)
        and not (name == NEURON_DEVICE and NEURON in node.resources)
    )
    if cards is not None:
        details.update(_card_details(cards, usage, full))
    elif reconfiguring or withdrawn:
        details["unhealthy"] = 0 if reconfiguring else withdrawn
    if published or facts.name in dra.stale:
        details["dra"] = _dra_details(published, dra, facts.name)
    if usage.nominated:
        details["reserved_by_nominated"] = dict(sorted(usage.nominated.items()))
    if usage.low:
        details["used_below_priority"] = {"0": usage.low}
    return node


def _host(facts: NodeFacts, usage: _Usage) -> HostCount:
    told = facts.allocatable
    return HostCount(told.get(CPU), usage.cpu, told.get(MEMORY), usage.memory, told.get(PODS), usage.pods)


def _card_details(cards: Cards, usage: _Usage, full: frozenset[str]) -> dict[str, Any]:
    """Each card with what pods hold of its memory, none of it free on `full` ones; a pod that names no card
    may be on any."""
    told = []
    for card in cards.cards:
        used = min(usage.cards.get(card.uuid, 0), card.memory_mib)
        told.append(
            {
                "uuid": card.uuid,
                "memory_mib": card.memory_mib,
                "used_mib": used,
                "free_mib": card.memory_mib - used if card.healthy and card.uuid not in full else 0,
                "healthy": card.healthy,
            }
        )
    untouched = sum(card.healthy and card.uuid not in usage.cards for card in cards.cards)
    unhealthy = sum(not card.healthy for card in cards.cards)
    found: dict[str, Any] = {
        "sharing": {"strategy": "hami", "splits_per_gpu": max(card.slots for card in cards.cards)},
        "whole_devices_free": max(0, untouched - usage.unnamed),
        "cards": told,
    }
    return found | ({"unhealthy": unhealthy} if unhealthy else {})


def _dra_details(published: list[dynamic.Published], dra: dynamic.Dra, name: str) -> dict[str, Any]:
    drivers = list(dict.fromkeys(one.driver for one in published))
    free = [one for one in published if one.key not in dra.held and not one.tainted]
    found: dict[str, Any] = {
        "driver": drivers[0] if drivers else None,
        "devices": len(published),
        "allocated": sum(one.key in dra.held for one in published),
        "tainted": sum(one.tainted for one in published),
        "free": len(free),
    }
    if len(drivers) > 1:
        found["drivers"] = drivers
    if dra.stale.get(name):
        found["stale_slices_ignored"] = sorted(dra.stale[name])
    return found
