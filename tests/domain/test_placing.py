"""Where further replicas would go, held against the plain rules claim by claim."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sizing.domain.fleet import Fleet
from sizing.domain.placement import room
from sizing.domain.placing import Placed, Plan, place
from sizing.domain.specs import GpuSpec, ModelSpec, NodeSpec, ReplicaSpec, VariantSpec
from tests.domain import brute_force
from tests.domain.plain_rules import Host, cards_of, host_of, is_open, with_one_more
from tests.domain.strategies import CLOSING, Cluster, clusters

settings.register_profile(
    "placing", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("placing thorough", settings.get_profile("placing"), max_examples=5000)
thorough = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
trials = settings.get_profile("placing thorough" if thorough else "placing")

COMPETING = ("many nodes", "many GPUs", "two types", "host")


def fleet_of(cluster: Cluster) -> Fleet:
    return Fleet.build(cluster.nodes, cluster.models, cluster.replicas)


def check(cluster: Cluster, placed: Sequence[Placed]) -> None:
    """Put the replicas on one by one: every claim must find its GPU as the rules ask for."""
    nodes, models, replicas, _, variant = cluster
    by_name = {node.name: node for node in nodes}
    cards = {
        (node.name, gpu.index): card
        for node in nodes
        for gpu, card in zip(node.gpus, cards_of(models, replicas, node), strict=True)
    }
    hosts = {node.name: host_of(models, replicas, node) for node in nodes}
    for one in placed:
        names = [name for name, _ in one.placement]
        assert len(set(names)) == len(names) == variant.nodes
        assert names == sorted(names)
        assert len({brute_force.domain_of(by_name[name], variant) for name in names}) == 1
        types = set()
        for name, indexes in one.placement:
            assert is_open(by_name[name], variant)
            assert len(set(indexes)) == len(indexes) == variant.gpus
            for index in indexes:
                types.add(cards[name, index].type)
                after = with_one_more(cards[name, index], variant)
                assert after is not None, f"GPU {index} of {name} takes no claim"
                cards[name, index] = after
            left = hosts[name]
            assert left.cpu >= variant.cpu_millis
            assert left.memory >= variant.memory_mib
            assert left.pods >= 1
            hosts[name] = Host(left.cpu - variant.cpu_millis, left.memory - variant.memory_mib, left.pods - 1)
        assert len(types) == 1


def with_placed(cluster: Cluster, placed: Sequence[Placed]) -> Fleet:
    model, variant = cluster.model.name, cluster.variant.name
    new = [ReplicaSpec(f"new {n}", model, variant, "ready", None, p.placement) for n, p in enumerate(placed)]
    return fleet_of(cluster).with_replicas(added=new)


def check_by_node(fleet: Fleet, plan: Plan, placed: Sequence[Placed]) -> None:
    """What the plan says of a node is what its replicas say."""
    for number_of_node, node in enumerate(fleet.hardware.nodes):
        here = [
            (number, gpus)
            for number, one in enumerate(placed)
            for name, gpus in one.placement
            if name == node.name
        ]
        assert sorted(plan.on(number_of_node)) == here
        assert plan.claims(number_of_node) == Counter(gpu for _, gpus in here for gpu in gpus)


def check_all(cluster: Cluster, leaves_room: bool = True) -> None:
    """All that fit, and each smaller number of them."""
    fleet = fleet_of(cluster)
    most = room(fleet, cluster.variant)
    for number in range(most + 1):
        plan = place(fleet, cluster.variant, number)
        placed = list(plan)
        assert len(plan) == len(placed) == number
        check(cluster, placed)
        there = Counter(name for one in placed for name, _ in one.placement)
        assert plan.shares.tolist() == [there[node.name] for node in fleet.hardware.nodes]
        check_by_node(fleet, plan, placed)
        if leaves_room:
            assert room(with_placed(cluster, placed), cluster.variant) == most - number


@trials
@given(clusters())
def test_as_many_replicas_as_fit_get_valid_places_of_their_own(cluster: Cluster) -> None:
    check_all(cluster, leaves_room=cluster.variant.nodes == 1)


@trials
@given(clusters(always=("many GPUs", "mixed sizes"), never=(*CLOSING, "many nodes"), max_replicas=4))
def test_shared_gpus_keep_room_for_those_that_come_later(cluster: Cluster) -> None:
    check_all(cluster)


@trials
@given(clusters(always=("many nodes", "many GPUs"), never=(*CLOSING, "host"), max_replicas=4))
def test_replicas_over_several_nodes_get_different_nodes_of_one_domain(cluster: Cluster) -> None:
    check_all(cluster)


@trials
@given(clusters(always=COMPETING, never=CLOSING, max_replicas=3))
def test_types_that_compete_for_a_host_share_its_limit(cluster: Cluster) -> None:
    check_all(cluster, leaves_room=False)


@trials
@given(clusters(never=("many nodes",)))
def test_started_nodes_are_filled_before_an_empty_one_is_opened(cluster: Cluster) -> None:
    nodes, models, replicas, _, variant = cluster
    started = {node.name for node in nodes if any(card.held for card in cards_of(models, replicas, node))}
    there = sum(brute_force.node_fits(nodes, models, replicas, variant, name) for name in started)
    fleet = fleet_of(cluster)
    for number in range(room(fleet, variant) + 1):
        on = [one.placement[0][0] for one in place(fleet, variant, number)]
        assert len([name for name in on if name in started]) == min(number, there)


@trials
@given(clusters(), st.randoms(use_true_random=False))
def test_the_same_cluster_gives_the_same_places_in_any_order_of_rows(
    cluster: Cluster, chance: random.Random
) -> None:
    nodes, models, replicas, model, variant = cluster
    turned = Cluster(
        tuple(chance.sample(nodes, len(nodes))),
        models,
        tuple(chance.sample(replicas, len(replicas))),
        model,
        variant,
    )
    number = room(fleet_of(cluster), variant)
    assert list(place(fleet_of(turned), variant, number)) == list(place(fleet_of(cluster), variant, number))


def test_the_fullest_node_that_takes_it_comes_first_and_its_gpus_stand_together() -> None:
    gpus = tuple(GpuSpec(index, "H100", 80_000) for index in range(8))
    nodes = [NodeSpec(name, gpus) for name in ("gpu-a", "gpu-b", "gpu-c")]
    variant = VariantSpec("tp2", gpus=2)
    load = VariantSpec("tp1")
    model = ModelSpec("m", variants=(variant, load))

    def held(name: str, node: str, *indexes: int) -> ReplicaSpec:
        return ReplicaSpec(name, "m", "tp1", "ready", None, ((node, indexes),))

    fleet = Fleet.build(nodes, [model], [held("x", "gpu-c", 0, 1, 2, 6), held("y", "gpu-b", 0)])
    assert [one.placement for one in place(fleet, variant, 6)] == [
        (("gpu-c", (3, 4)),),
        (("gpu-c", (5, 7)),),
        (("gpu-b", (1, 2)),),
        (("gpu-b", (3, 4)),),
        (("gpu-b", (5, 6)),),
        (("gpu-a", (0, 1)),),
    ]


def test_a_plan_of_very_many_replicas_is_found_one_by_one() -> None:
    gpus = tuple(GpuSpec(index, "H100", 80_000) for index in range(8))
    fleet = Fleet.build([NodeSpec(f"gpu-{n}", gpus) for n in range(20)], [], [])
    variant = VariantSpec("tiny", gpus=8, gpu_memory_mib=1, nodes=4)
    plan = place(fleet, variant, room(fleet, variant))
    assert len(plan) == 20 * 80_000 // 4
    assert [name for name, _ in plan[-1].placement] == ["gpu-12", "gpu-17", "gpu-4", "gpu-9"]
    assert plan[1:3] == (plan[1], plan[2])


def test_nodes_of_one_replica_are_of_one_zone() -> None:
    gpus = tuple(GpuSpec(index, "H100", 80_000) for index in range(8))
    nodes = [NodeSpec(f"gpu-{n}", gpus, labels={"zone": "east" if n % 2 else "west"}) for n in range(5)]
    variant = VariantSpec("pair", gpus=8, nodes=2, topology_key="zone")
    cluster = Cluster(tuple(nodes), (model := ModelSpec("m", variants=(variant,)),), (), model, variant)
    check_all(cluster)
    assert [[name for name, _ in one.placement] for one in place(fleet_of(cluster), variant, 2)] == [
        ["gpu-0", "gpu-2"],
        ["gpu-1", "gpu-3"],
    ]


def test_a_host_that_takes_three_shares_gives_them_over_its_types() -> None:
    gpus = (
        *(GpuSpec(index, "H100", 80_000) for index in range(2)),
        GpuSpec(2, "L4", 24_000),
        GpuSpec(3, "L4", 1),
    )
    nodes = (NodeSpec("gpu-a", gpus, cpu_millis=3500), NodeSpec("gpu-b", gpus, cpu_millis=4000))
    variant = VariantSpec("tp1", cpu_millis=1000)
    cluster = Cluster(nodes, (model := ModelSpec("m", variants=(variant,)),), (), model, variant)
    check_all(cluster)
    placed = [one.placement for one in place(fleet_of(cluster), variant, 7)]
    assert Counter(name for ((name, _),) in placed) == {"gpu-a": 3, "gpu-b": 4}
