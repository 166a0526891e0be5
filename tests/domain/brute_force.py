"""What fits, and why not, found by trying: the yardstick that the product's core is held against.

Nothing here is clever on purpose. A node is filled share by share on concrete sets of GPUs, a cluster replica
by replica on concrete sets of nodes, and every way is walked (states seen before are not walked again). The
only cut is that a search ends where it has placed as many as the nodes could take without each other.
Good for clusters of a few nodes with a few GPUs each.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import combinations

from sizing.domain.specs import ModelSpec, NodeSpec, ReplicaSpec, VariantSpec
from tests.domain.plain_rules import (
    Card,
    Host,
    cards_of,
    fraction_enough,
    host_of,
    is_open,
    labels_match,
    large_enough,
    outside_leaves_enough,
    partition_allowed,
    taints_tolerated,
    type_allowed,
    with_one_more,
)

Counts = tuple[tuple[str, int], ...]
"""How many shares stand on each GPU type of a node, types in order, none with 0."""


# ---------------------------------------------------------------- searching


def one_more(counts: Counts, gpu_type: str) -> Counts:
    grown = dict(counts)
    grown[gpu_type] = grown.get(gpu_type, 0) + 1
    return tuple(sorted(grown.items()))


def total(counts: Counts) -> int:
    return sum(number for _, number in counts)


def ways_to_fill(cards: Sequence[Card], host: Host, variant: VariantSpec) -> frozenset[Counts]:
    """All counts of shares (each of another replica) that the node can hold together."""
    seen: set[tuple[tuple[Card, ...], Counts]] = set()
    pending: list[tuple[tuple[Card, ...], Host, Counts]] = [(tuple(cards), host, ())]
    while pending:
        before, room, counts = pending.pop()
        before = tuple(sorted(before, key=repr))  # equal GPUs may change places
        if (before, counts) in seen:
            continue
        seen.add((before, counts))
        if room.cpu < variant.cpu_millis or room.memory < variant.memory_mib or room.pods < 1:
            continue
        less = Host(room.cpu - variant.cpu_millis, room.memory - variant.memory_mib, room.pods - 1)
        for gpu_type in {card.type for card in before}:
            able = [
                i for i, card in enumerate(before) if card.type == gpu_type and with_one_more(card, variant)
            ]
            for chosen in combinations(able, variant.gpus):
                after = list(before)
                for i in chosen:
                    card = with_one_more(before[i], variant)
                    assert card is not None
                    after[i] = card
                pending.append((tuple(after), less, one_more(counts, gpu_type)))
    return frozenset(counts for _, counts in seen)


def node_ways(
    models: Sequence[ModelSpec], replicas: Sequence[ReplicaSpec], variant: VariantSpec, node: NodeSpec
) -> frozenset[Counts]:
    """`ways_to_fill` of a node as it stands: nothing but no share where it is closed."""
    if not is_open(node, variant):
        return frozenset({()})
    return ways_to_fill(cards_of(models, replicas, node), host_of(models, replicas, node), variant)


def domain_of(node: NodeSpec, variant: VariantSpec) -> str | None:
    """The value that all nodes of a replica share; None: any nodes go together."""
    if variant.nodes == 1 or variant.topology_key is None:
        return None
    return node.labels.get(variant.topology_key)


def free_room(
    nodes: Sequence[NodeSpec],
    models: Sequence[ModelSpec],
    replicas: Sequence[ReplicaSpec],
    variant: VariantSpec,
) -> int:
    """The largest number of further replicas that can be placed at once, before `max_replicas`."""
    numbers: dict[frozenset[Counts], int] = {}
    ways: list[frozenset[Counts]] = []
    start: list[tuple[str, int, Counts]] = []  # domain, which ways the node has, what was placed on it
    for node in nodes:
        possible = node_ways(models, replicas, variant, node)
        if possible not in numbers:
            numbers[possible] = len(ways)
            ways.append(possible)
        start.append((repr(domain_of(node, variant)), numbers[possible], ()))

    @cache
    def further(way: int, counts: Counts) -> int:
        floor = dict(counts)
        above = [more for more in ways[way] if all(dict(more).get(key, 0) >= floor[key] for key in floor)]
        return max(total(more) for more in above) - total(counts)

    @cache
    def most(state: tuple[tuple[str, int, Counts], ...]) -> int:
        enough = sum(further(way, counts) for _, way, counts in state) // variant.nodes
        best = 0
        for following in next_states(state):
            if best >= enough:
                break
            best = max(best, 1 + most(following))
        return best

    def next_states(state: tuple[tuple[str, int, Counts], ...]) -> set[tuple[tuple[str, int, Counts], ...]]:
        """Every state after one more replica: `nodes` different nodes of one domain, one GPU type on all."""
        found = set()
        for domain in {domain for domain, _, _ in state}:
            for gpu_type in {key for possible in ways for counts in possible for key, _ in counts}:
                able = [
                    i
                    for i, (of, way, counts) in enumerate(state)
                    if of == domain and one_more(counts, gpu_type) in ways[way]
                ]
                for chosen in combinations(able, variant.nodes):
                    after = list(state)
                    for i in chosen:
                        of, way, counts = state[i]
                        after[i] = (of, way, one_more(counts, gpu_type))
                    found.add(tuple(sorted(after)))
        return found

    return most(tuple(sorted(start)))


def node_fits(
    nodes: Sequence[NodeSpec],
    models: Sequence[ModelSpec],
    replicas: Sequence[ReplicaSpec],
    variant: VariantSpec,
    node_name: str,
) -> int:
    """Shares of replicas that this node takes alone; 0 for a closed one."""
    [node] = [node for node in nodes if node.name == node_name]
    return max(total(counts) for counts in node_ways(models, replicas, variant, node))


# ---------------------------------------------------------------- the ladder of reasons


def node_code(
    nodes: Sequence[NodeSpec],
    models: Sequence[ModelSpec],
    replicas: Sequence[ReplicaSpec],
    variant: VariantSpec,
    node_name: str,
) -> str:
    """The node's primary code: the first rung that leaves too little."""
    [node] = [node for node in nodes if node.name == node_name]

    def enough(cards: Sequence[Card]) -> bool:
        """Whether a single type has as many GPUs as a share needs."""
        return any(len([1 for card in cards if card.type == one.type]) >= variant.gpus for one in cards)

    cards = cards_of(models, replicas, node)
    if not cards:
        return "no_gpus"
    cards = [card for card in cards if type_allowed(card, variant)]
    if not cards:
        return "gpu_type_mismatch"
    if not labels_match(node, variant):
        return "selector_mismatch"
    if not taints_tolerated(node, variant):
        return "taint_not_tolerated"
    cards = [card for card in cards if partition_allowed(card, variant)]
    if not cards:
        return "partition_not_usable"
    cards = [card for card in cards if fraction_enough(card, variant)]
    if not cards:
        return "fraction_below_need"
    cards = [card for card in cards if large_enough(card, variant)]
    if not cards:
        return "gpu_memory_too_small"
    if not enough(cards):
        return "too_few_gpus"
    if not node.ready:
        return "node_not_ready"
    if not node.schedulable:
        return "node_cordoned"
    if node.stale:
        return "node_stale"
    cards = [card for card in cards if card.healthy]
    if not enough(cards):
        return "gpu_unhealthy"
    cards = [card for card in cards if outside_leaves_enough(card, variant)]
    if not enough(cards):
        return "used_outside"
    cards = [card for card in cards if with_one_more(card, variant) is not None]
    if not enough(cards):
        return "too_few_free_gpus"
    host = host_of(models, replicas, node)
    if host.cpu < variant.cpu_millis:
        return "host_cpu_short"
    if host.memory < variant.memory_mib:
        return "host_memory_short"
    if host.pods < 1:
        return "pods_short"
    if not has_company(nodes, models, replicas, variant, node):
        return "too_few_nodes"
    return "open"


def has_company(
    nodes: Sequence[NodeSpec],
    models: Sequence[ModelSpec],
    replicas: Sequence[ReplicaSpec],
    variant: VariantSpec,
    node: NodeSpec,
) -> bool:
    """Whether some replica, placed alone, can have a share on this node."""

    def takes(one: NodeSpec) -> set[str]:
        return {key for counts in node_ways(models, replicas, variant, one) for key, _ in counts}

    domain = domain_of(node, variant)
    others = [one for one in nodes if one.name != node.name and domain_of(one, variant) == domain]
    for company in combinations(others, variant.nodes - 1):
        if set.intersection(takes(node), *(takes(one) for one in company)):
            return True
    return False


# ---------------------------------------------------------------- sizing


def needed(
    tokens_per_sec: Decimal,
    per_replica: Decimal,
    utilization: Decimal = Decimal(1),
    others: Sequence[Decimal | None] = (),
) -> int:
    """Replicas that serve the target: the kept ones of other variants (None: unmeasured) and as many of this
    one, added one by one until it is served; at least one."""
    served = Fraction(0)
    replicas = 0
    for other in others:
        served += Fraction(other or 0) * Fraction(utilization)
        replicas += 1
    while replicas < 1 or served < Fraction(tokens_per_sec):
        served += Fraction(per_replica) * Fraction(utilization)
        replicas += 1
    return replicas
