"""How many replicas fit at once.

On one node and type, with `s_i` claims fitting on GPU i, r replicas of g GPUs fit exactly when
`Σ min(s_i, r) ≥ g·r`: a replica uses a GPU at most once, and Hall's theorem gives the rest. A replica
over k nodes needs k different nodes; the same formula holds one level up.
"""

from __future__ import annotations

import numpy as np

from sizing.domain.fleet import Fleet
from sizing.domain.hardware import Bools, Hardware, Ints
from sizing.domain.joint import joint_room
from sizing.domain.specs import VariantSpec


def room(fleet: Fleet, variant: VariantSpec) -> int:
    """Free room: the largest number of further replicas of the variant that fit at once."""
    shares = group_shares(fleet, variant)
    if not len(shares):
        return 0
    if variant.nodes == 1:
        return int(within_host(fleet, variant, shares).sum())
    return _room_over_nodes(fleet, variant, shares)


def node_shares(fleet: Fleet, variant: VariantSpec) -> Ints:
    """By node: the shares of replicas that it takes alone, within its host limits; 0 where it is closed."""
    return within_host(fleet, variant, group_shares(fleet, variant))


def within_host(fleet: Fleet, variant: VariantSpec, shares: Ints) -> Ints:
    """By node: shares by group, summed and held to what the node's host takes."""
    return np.minimum(fleet.hardware.per_node(shares), host_cap(fleet, variant))


def largest_rounds(slots: Ints, starts: Ints, segment: Ints, size: int) -> Ints:
    """By segment, the largest r with `Σ min(slots, r) ≥ size·r`.

    `starts` are the first places of the segments in `slots`, `segment` the segment of each place.
    Beginning at `Σ slots / size` and putting `Σ min(slots, r) / size` for r comes down to it: what is
    feasible stays below each step, and where a step changes nothing r is feasible.
    """
    rounds: Ints = np.add.reduceat(slots, starts) // size
    while size > 1:
        fewer: Ints = np.add.reduceat(np.minimum(slots, rounds[segment]), starts) // size
        if np.array_equal(fewer, rounds):
            break
        rounds = fewer
    return rounds


def _rounds_in_groups(hardware: Hardware, slots: Ints, size: int) -> Ints:
    """`largest_rounds` of the hardware's groups; as a table, which is faster, where all are of one size."""
    if not hardware.group_width:
        return largest_rounds(slots, hardware.group_start, hardware.gpu_group, size)
    rounds: Ints = hardware.per_group(slots) // size
    table = slots.reshape(-1, hardware.group_width)
    # Where r is no less than every slot, a step changes nothing.
    open_rows = np.flatnonzero((rounds > 0) & (rounds < slots.max())) if size > 1 else rounds[:0]
    while len(open_rows):
        here = rounds[open_rows]
        fewer = np.einsum("ij->i", np.minimum(table[open_rows], here[:, np.newaxis])) // size
        rounds[open_rows] = fewer
        open_rows = open_rows[(fewer < here) & (fewer > 0)]
    return rounds


def group_shares(fleet: Fleet, variant: VariantSpec) -> Ints:
    """By group (GPUs of one node and type): the shares of replicas that it takes, before host limits."""
    hardware = fleet.hardware
    usable = hardware.group_open(variant)
    if not len(usable):
        return np.zeros(0, dtype=np.int64)
    if variant.whole_gpu:
        shares = fleet.whole_free_in_group // variant.gpus
    else:
        shares = _rounds_in_groups(hardware, slots(fleet, variant), variant.gpus)
    return np.where(usable, shares, 0)


def takes_claim(fleet: Fleet, variant: VariantSpec) -> Bools:
    """By GPU: it is healthy, and one more claim fits on it."""
    return fleet.whole_free if variant.whole_gpu else slots(fleet, variant) > 0


def slots(fleet: Fleet, variant: VariantSpec) -> Ints:
    """By GPU: how many claims of a size or a fraction fit on it, if it is healthy."""
    if variant.gpu_memory_fraction is None:
        assert variant.gpu_memory_mib is not None
        return fleet.free_healthy // variant.gpu_memory_mib
    claims = fleet.hardware.claims(variant)
    return np.where(claims > 0, fleet.free_healthy // np.maximum(claims, 1), 0)


def host_cap(fleet: Fleet, variant: VariantSpec) -> Ints:
    """By node: the shares that host CPU, host memory and pods allow, over all types together."""
    cap = fleet.pods_left
    if variant.cpu_millis:
        cap = np.minimum(cap, fleet.cpu_left // variant.cpu_millis)
    if variant.memory_mib:
        cap = np.minimum(cap, fleet.host_memory_left // variant.memory_mib)
    return cap


def _room_over_nodes(fleet: Fleet, variant: VariantSpec, shares: Ints) -> int:
    hardware = fleet.hardware
    used = np.flatnonzero(shares)
    if not len(used):
        return 0
    node, kind = hardware.group_node[used], hardware.group_type[used]
    cap = host_cap(fleet, variant)[node]
    shares = shares[used]
    domain = hardware.domain(variant)[node]
    joint = contested(node, shares, cap)
    clear = ~np.isin(domain, np.unique(domain[joint]))
    total = _room_by_type(domain[clear], kind[clear], np.minimum(shares, cap)[clear], variant.nodes)
    for number in np.unique(domain[joint]).tolist():
        here = domain == number
        total += joint_room(node[here], kind[here], shares[here], cap[here], variant.nodes)
    return total


def contested(node: Ints, shares: Ints, cap: Ints) -> Bools:
    """Places on nodes with several types whose host limit is below what these types take together."""
    _, inverse, count = np.unique(node, return_inverse=True, return_counts=True)
    together = np.bincount(inverse, weights=shares.astype(float))
    result: Bools = (count[inverse] > 1) & (together[inverse] > cap)
    return result


def _room_by_type(domain: Ints, kind: Ints, shares: Ints, nodes: int) -> int:
    if not len(shares):
        return 0
    key = domain * (int(kind.max()) + 1) + kind
    order = np.argsort(key, kind="stable")
    key, shares = key[order], shares[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    segment = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(key)))
    return int(largest_rounds(shares, starts, segment, nodes).sum())
