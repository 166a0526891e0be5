"""Of several pods with the same claim, or with claims to the same device: which one holds it."""

from __future__ import annotations

from dataclasses import dataclass, field

from sizing.inventory.kubernetes.dra import Dra, Key
from sizing.inventory.kubernetes.facts import Listing, PodFacts

Claim = tuple[str, str]
"""A claim by namespace and name."""

_MIB = 2**20


@dataclass(slots=True)
class Holders:
    """The pod that holds each claim, and each device that several claims have, by its key.

    A device of which every claim has a told part of the memory (`shares`, MiB by claim and device) is held
    by all of them together and not in `devices`.
    """

    claims: dict[Claim, str] = field(default_factory=dict)
    devices: dict[Key, str] = field(default_factory=dict)
    shares: dict[Claim, dict[Key, int]] = field(default_factory=dict)


def holders_of(listing: Listing, dra: Dra) -> Holders:
    """Who holds what: pods that are bound before those that wait, then by age, then by name."""
    found = Holders()
    users: dict[Claim, list[PodFacts]] = {}
    for pod in listing.pods.values():
        if not pod.ended:
            for name in (*pod.claims, *((pod.extended_claim,) if pod.extended_claim else ())):
                users.setdefault((pod.namespace, name), []).append(pod)
    holding = {claim: min(pods, key=seniority) for claim, pods in users.items()}
    found.claims = {claim: pod.key for claim, pod in holding.items()}
    sizes = {one.key: one.device.memory_bytes or 0 for node in dra.nodes.values() for one in node}
    pods_of: dict[Key, list[PodFacts]] = {}
    undivided = set()
    for claim, facts in listing.claims.items():
        if claim not in holding:
            continue
        # All of the memory is no part.
        shares = {key: -(-n // _MIB) for key, n in facts.memory_bytes.items() if n < sizes.get(key, 0)}
        found.shares[claim] = shares
        for key in facts.devices:
            pods_of.setdefault(key, []).append(holding[claim])
            if not shares.get(key):
                undivided.add(key)
    found.devices = {key: min(pods_of[key], key=seniority).key for key in undivided}
    return found


def seniority(pod: PodFacts) -> tuple[bool, bool, float, str]:
    """A pod that is bound before one that waits, then the older one."""
    age = pod.created_at.timestamp() if pod.created_at else 0.0
    return (not pod.bound, pod.created_at is None, age, pod.key)
