"""The devices that pods hold or wait for, one by one, and what a replica claims of each of its GPUs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple

from sizing.domain.claims import fraction_mib
from sizing.inventory.kubernetes.counted import Need
from sizing.inventory.kubernetes.mapping import Member


class Claim(NamedTuple):
    """What a replica takes of each of its GPUs: a size in MiB, a fraction, or with neither all of it."""

    mib: int | None = None
    fraction: Decimal | None = None


WHOLE = Claim()


class Want(NamedTuple):
    """One device that a pod holds, by name where the cluster tells it."""

    resource: str
    claim: Claim
    name: str = ""


def wants_of(needs: Iterable[Need]) -> list[Want]:
    """The devices of some needs, one by one; what is named twice is one device with both claims."""
    wants: list[Want] = []
    named: dict[str, int] = {}
    for need in needs:
        claim = Claim(need.memory_mib, need.fraction)
        for number in range(need.count):
            name = need.names[number] if number < len(need.names) else ""
            if name and name in named:
                at = named[name]
                wants[at] = Want(need.resource, _both(wants[at].claim, claim), name)
                continue
            if name:
                named[name] = len(wants)
            wants.append(Want(need.resource, claim, name))
    return wants


def by_node(members: Iterable[Member]) -> dict[str, list[Want]]:
    """What bound pods hold, by node."""
    needs: dict[str, list[Need]] = defaultdict(list)
    for member in members:
        needs[member.pod.node] += member.needs
    return {node: wants_of(of_node) for node, of_node in needs.items()}


def _both(one: Claim, other: Claim) -> Claim:
    if one.mib is not None and other.mib is not None:
        return Claim(one.mib + other.mib)
    if one.fraction is not None and other.fraction is not None:
        return Claim(None, min(one.fraction + other.fraction, Decimal(1)))
    return WHOLE


def claim_of(wants: Sequence[Want]) -> Claim:
    """One claim for all GPUs of a replica, the largest, for a variant has but one."""
    claims = {want.claim for want in wants}
    sizes = [c.mib for c in claims if c.mib is not None]
    if claims and len(sizes) == len(claims):
        return Claim(max(sizes))
    fractions = [c.fraction for c in claims if c.fraction is not None]
    if claims and len(fractions) == len(claims):
        return Claim(None, max(fractions).quantize(Decimal("0.000001")))
    return WHOLE


def mib_of(claim: Claim, memory: int) -> int:
    """The claim in MiB on a GPU of that memory."""
    if claim.fraction is not None:
        return fraction_mib(claim.fraction, memory)
    return memory if claim.mib is None else claim.mib
