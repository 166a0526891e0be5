"""Who gives way, found by trying every set of victims: what the product's preemption is held against.

Room comes from the brute force for what fits. Two cuts, both sound: nodes that no replica of the variant can
span (single nodes, or domains) are counted apart, and a state of these that was seen is not searched again.
Good for about ten possible victims. `best_by_nodes` goes further where every node can be looked at alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import combinations
from typing import NamedTuple

from sizing.domain.specs import ModelSpec, NodeSpec, ReplicaSpec, VariantSpec
from tests.domain.brute_force import domain_of, free_room
from tests.domain.plain_rules import cards_of, host_of, is_open

STOPPABLE = ("starting", "ready", "failed")
COUNTING = ("starting", "ready")
"""States that count for a model's minimum."""

Names = frozenset[str]


class Key(NamedTuple):
    """What a set of victims costs; less is better, in this order. `highest` is None for no victims."""

    highest: int | None
    number: int
    priority_sum: int


class Found(NamedTuple):
    """The best that preemption does: how many more replicas, at what cost, and every set that does it."""

    gain: int
    key: Key
    sets: tuple[Names, ...]
    preferred: Names


def possible_victims(
    nodes: Sequence[NodeSpec],
    models: Sequence[ModelSpec],
    replicas: Sequence[ReplicaSpec],
    model: ModelSpec,
    variant: VariantSpec,
) -> list[ReplicaSpec]:
    """The replicas that might be stopped, each looked at alone: minima stand apart."""
    if model.preemption_policy == "Never":
        return []
    open_nodes = {node.name for node in nodes if is_open(node, variant)}
    return [
        replica
        for replica in replicas
        if replica.model != model.name
        and priority_of(models, replica) < model.priority
        and replica.state in STOPPABLE
        and all(name in open_nodes for name, _ in replica.placement)
    ]


def priority_of(models: Iterable[ModelSpec], replica: ReplicaSpec) -> int:
    """The replica's own priority where it has one, else its model's."""
    if replica.priority is not None:
        return replica.priority
    [priority] = [one.priority for one in models if one.name == replica.model]
    return priority


def keeps_minima(
    models: Sequence[ModelSpec], replicas: Sequence[ReplicaSpec], stopped: Iterable[ReplicaSpec]
) -> bool:
    """Whether no model loses a starting or ready replica that it needs for its minimum."""
    lost = [replica.model for replica in stopped if replica.state in COUNTING]
    for model in models:
        has = len([1 for replica in replicas if replica.model == model.name and replica.state in COUNTING])
        if lost.count(model.name) and has - lost.count(model.name) < model.min_replicas:
            return False
    return True


def key_of(models: Sequence[ModelSpec], stopped: Iterable[ReplicaSpec]) -> Key:
    priorities = [priority_of(models, replica) for replica in stopped]
    return Key(max(priorities, default=None), len(priorities), sum(priorities))


def islands(nodes: Sequence[NodeSpec], variant: VariantSpec) -> list[list[NodeSpec]]:
    """The open nodes, parted so that no replica of the variant can stand on nodes of two parts."""
    open_nodes = [node for node in nodes if is_open(node, variant)]
    if variant.nodes == 1:
        return [[node] for node in open_nodes]
    domains = sorted({repr(domain_of(node, variant)) for node in open_nodes})
    return [[node for node in open_nodes if repr(domain_of(node, variant)) == domain] for domain in domains]


class Rooms:
    """The free room of a variant without some replicas; remembers what it has searched."""

    def __init__(
        self,
        nodes: Sequence[NodeSpec],
        models: Sequence[ModelSpec],
        replicas: Sequence[ReplicaSpec],
        variant: VariantSpec,
    ) -> None:
        self.models, self.replicas, self.variant = models, replicas, variant
        self.islands = islands(nodes, variant)
        self._by_names: dict[tuple[int, Names], int] = {}
        self._by_state: dict[str, int] = {}

    def without(self, stopped: Names) -> int:
        return sum(self.of_island(number, stopped) for number in range(len(self.islands)))

    def of_island(self, number: int, stopped: Names) -> int:
        nodes = self.islands[number]
        names = {node.name for node in nodes}
        here = [replica for replica in self.replicas if any(name in names for name, _ in replica.placement)]
        gone = frozenset(replica.name for replica in here if replica.name in stopped)
        if (number, gone) not in self._by_names:
            left = [replica for replica in here if replica.name not in gone]
            self._by_names[number, gone] = self._searched(nodes, left)
        return self._by_names[number, gone]

    def _searched(self, nodes: Sequence[NodeSpec], left: Sequence[ReplicaSpec]) -> int:
        states = [
            repr((sorted(map(repr, cards_of(self.models, left, node))), host_of(self.models, left, node)))
            for node in nodes
        ]
        state = repr(sorted(states))
        if state not in self._by_state:
            self._by_state[state] = free_room(nodes, self.models, left, self.variant)
        return self._by_state[state]


def gain_of(rooms: Rooms, stopped: Names, wanted: int) -> int:
    """How many of the wanted replicas stopping these gives, beyond those that fit anyway."""
    return min(wanted, rooms.without(stopped) - rooms.without(frozenset()))


def allowed_sets(
    models: Sequence[ModelSpec], replicas: Sequence[ReplicaSpec], victims: Sequence[ReplicaSpec]
) -> Iterator[tuple[ReplicaSpec, ...]]:
    for count in range(len(victims) + 1):
        for stopped in combinations(victims, count):
            if keeps_minima(models, replicas, stopped):
                yield stopped


def best(
    nodes: Sequence[NodeSpec],
    models: Sequence[ModelSpec],
    replicas: Sequence[ReplicaSpec],
    model: ModelSpec,
    variant: VariantSpec,
    wanted: int,
) -> Found:
    """The best that preemption does for `wanted` replicas that do not fit as it is."""
    victims = possible_victims(nodes, models, replicas, model, variant)
    rooms = Rooms(nodes, models, replicas, variant)
    gain, key, sets = 0, Key(None, 0, 0), [frozenset[str]()]
    for stopped in allowed_sets(models, replicas, victims):
        names = frozenset(replica.name for replica in stopped)
        its_gain, its_key = gain_of(rooms, names, wanted), key_of(models, stopped)
        if its_gain < gain or not names:
            continue
        if its_gain > gain or is_less(its_key, key):
            gain, key, sets = its_gain, its_key, [names]
        elif its_key == key:
            sets.append(names)
    return Found(gain, key, tuple(sets), most_preferred(victims, sets))


def is_less(one: Key, other: Key) -> bool:
    """Whether the first costs less; nothing costs less than no victims."""
    if one.highest is None or other.highest is None:
        return one.highest is None and other.highest is not None
    return one < other


def most_preferred(victims: Sequence[ReplicaSpec], sets: Sequence[Names]) -> Names:
    """Of equal sets the one with the first possible victim that any of them has, then the next, and so on:
    later started first (without a time last), then the name that is less by code point."""
    left = list(sets)
    for victim in in_order(victims):
        with_it = [names for names in left if victim.name in names]
        left = with_it or left
    [preferred] = left
    return preferred


def in_order(victims: Sequence[ReplicaSpec]) -> list[ReplicaSpec]:
    oldest = datetime.min.replace(tzinfo=UTC)
    by_name = sorted(victims, key=lambda replica: replica.name)
    return sorted(by_name, key=lambda replica: replica.started_at or oldest, reverse=True)


def best_by_nodes(
    nodes: Sequence[NodeSpec],
    models: Sequence[ModelSpec],
    replicas: Sequence[ReplicaSpec],
    model: ModelSpec,
    variant: VariantSpec,
    wanted: int,
) -> tuple[int, Key]:
    """Gain and key of the best, where the ask and every possible victim stand on one node each.

    Every set of each node's victims is tried; what the nodes do together is kept as the cheapest for each
    number of replicas gained and of replicas lost by each model.
    """
    victims = possible_victims(nodes, models, replicas, model, variant)
    rooms = Rooms(nodes, models, replicas, variant)
    priority = {one.name: priority_of(models, one) for one in victims}
    names = sorted(one.name for one in models)
    spare = []
    for name in names:
        counting = [replica for replica in replicas if replica.model == name and replica.state in COUNTING]
        [minimum] = [one.min_replicas for one in models if one.name == name]
        spare.append(max(len(counting) - minimum, 0))

    def cheapest(ceiling: int) -> dict[int, tuple[int, int]]:
        """By gain: the least number of victims up to a priority, and of these the lowest sum."""
        together = {(0, (0,) * len(names)): (0, 0)}
        for number, [node] in enumerate(rooms.islands):
            here = [one for one in victims if one.placement[0][0] == node.name]
            here = [one for one in here if priority[one.name] <= ceiling]
            before, together = together, {}
            for stopped in (some for count in range(len(here) + 1) for some in combinations(here, count)):
                gone = frozenset(one.name for one in stopped)
                gives = rooms.of_island(number, gone) - rooms.of_island(number, frozenset())
                lost = [sum(one.model == name and one.state in COUNTING for one in stopped) for name in names]
                price = sum(priority[one.name] for one in stopped)
                for (gain, losses), (count, total) in before.items():
                    sums = tuple(map(sum, zip(losses, lost, strict=True)))
                    if any(loss > limit for loss, limit in zip(sums, spare, strict=True)):
                        continue
                    state, cost = (min(gain + gives, wanted), sums), (count + len(stopped), total + price)
                    together[state] = min(cost, together.get(state, cost))
        costs: dict[int, tuple[int, int]] = {}
        for (gain, _), cost in together.items():
            costs[gain] = min(cost, costs.get(gain, cost))
        return costs

    ladder = sorted(set(priority.values()))
    gain = max(cheapest(ladder[-1])) if ladder else 0
    if gain <= 0:
        return 0, Key(None, 0, 0)
    highest = next(ceiling for ceiling in ladder if gain in cheapest(ceiling))
    return gain, Key(highest, *cheapest(highest)[gain])
