"""The core against the brute force, on random clusters.

`HYPOTHESIS_PROFILE=thorough` tries many more.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import replace
from decimal import Decimal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sizing.domain.claims import claim_mib
from sizing.domain.demand import replicas_needed
from sizing.domain.fleet import Fleet
from sizing.domain.placement import room
from sizing.domain.reasons import survey
from sizing.domain.specs import NodeSpec, ReplicaSpec, VariantSpec
from tests.domain import brute_force, plain_rules
from tests.domain.strategies import CLOSING, Cluster, clusters

settings.register_profile(
    "normal", max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("normal"), max_examples=5000)
trials = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "normal"))


def fleet_of(cluster: Cluster) -> Fleet:
    return Fleet.build(cluster.nodes, cluster.models, cluster.replicas)


def searched_room(cluster: Cluster) -> int:
    return brute_force.free_room(cluster.nodes, cluster.models, cluster.replicas, cluster.variant)


def searched_codes(cluster: Cluster) -> list[str]:
    nodes, models, replicas, _, variant = cluster
    names = sorted(node.name for node in nodes)
    return [brute_force.node_code(nodes, models, replicas, variant, name) for name in names]


def searched_fits(cluster: Cluster) -> list[int]:
    nodes, models, replicas, _, variant = cluster
    names = sorted(node.name for node in nodes)
    return [brute_force.node_fits(nodes, models, replicas, variant, name) for name in names]


@trials
@given(clusters())
def test_the_room_is_what_a_search_finds(cluster: Cluster) -> None:
    assert room(fleet_of(cluster), cluster.variant) == searched_room(cluster)


@trials
@given(clusters(never=CLOSING))
def test_the_room_of_open_clusters_is_what_a_search_finds(cluster: Cluster) -> None:
    assert room(fleet_of(cluster), cluster.variant) == searched_room(cluster)


@trials
@given(clusters(always=("many nodes", "many GPUs"), never=CLOSING, max_replicas=4))
def test_the_room_for_replicas_over_several_nodes_is_what_a_search_finds(cluster: Cluster) -> None:
    assert room(fleet_of(cluster), cluster.variant) == searched_room(cluster)


@trials
@given(clusters(always=("many nodes", "many GPUs", "two types", "host"), never=CLOSING, max_replicas=3))
def test_the_room_where_types_compete_for_the_host_is_what_a_search_finds(cluster: Cluster) -> None:
    assert room(fleet_of(cluster), cluster.variant) == searched_room(cluster)


@trials
@given(clusters())
def test_one_fleet_answers_each_variant_as_a_search_does(cluster: Cluster) -> None:
    """What is remembered for one variant must not leak into the answer of another."""
    fleet = fleet_of(cluster)
    for variant in [variant for model in cluster.models for variant in model.variants]:
        assert room(fleet, variant) == searched_room(cluster._replace(variant=variant))
        assert survey(fleet, variant).codes == searched_codes(cluster._replace(variant=variant))


@trials
@given(clusters())
def test_every_node_has_the_code_and_the_shares_that_a_search_finds(cluster: Cluster) -> None:
    found = survey(fleet_of(cluster), cluster.variant)
    assert found.codes == searched_codes(cluster)
    assert found.fits == searched_fits(cluster)


@trials
@given(clusters())
def test_codes_fits_and_room_agree_with_each_other(cluster: Cluster) -> None:
    fleet = fleet_of(cluster)
    found, fitting = survey(fleet, cluster.variant), room(fleet, cluster.variant)
    counts = Counter(found.codes)
    assert counts.total() == len(cluster.nodes)
    assert (counts["open"] > 0) == (fitting > 0)
    if cluster.variant.nodes == 1:
        assert sum(found.fits) == fitting
        assert counts["too_few_nodes"] == 0
    for code, fits in zip(found.codes, found.fits, strict=True):
        assert (fits > 0) == (code in ("open", "too_few_nodes"))


@trials
@given(clusters(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(cluster: Cluster, shuffler: random.Random) -> None:
    nodes, models, replicas = list(cluster.nodes), list(cluster.models), list(cluster.replicas)
    for rows in (nodes, models, replicas):
        shuffler.shuffle(rows)
    shuffled = Fleet.build(nodes, models, replicas)
    assert room(shuffled, cluster.variant) == room(fleet_of(cluster), cluster.variant)
    assert survey(shuffled, cluster.variant).codes == survey(fleet_of(cluster), cluster.variant).codes


def holders_on(replicas: tuple[ReplicaSpec, ...], node: str) -> set[str]:
    holding = [replica for replica in replicas if replica.state in plain_rules.HOLDING]
    return {replica.name for replica in holding if node in dict(replica.placement)}


@trials
@given(clusters(always=("host",)), st.data())
def test_a_fleet_that_changed_answers_like_a_new_one(cluster: Cluster, data: st.DataObject) -> None:
    if not cluster.replicas:
        return
    leaving = data.draw(st.sampled_from(cluster.replicas))
    others = tuple(replica for replica in cluster.replicas if replica is not leaving)
    full = fleet_of(cluster)
    smaller = full.with_replicas(removed=[leaving.name])
    again = smaller.with_replicas(added=[leaving])
    without = cluster._replace(replicas=others)
    assert room(smaller, cluster.variant) == searched_room(without)
    assert survey(smaller, cluster.variant).codes == searched_codes(without)
    for number, name in enumerate(sorted(node.name for node in cluster.nodes)):
        assert smaller.holders_on(number) == holders_on(others, name)
        assert again.holders_on(number) == holders_on(cluster.replicas, name)
    assert room(again, cluster.variant) == room(full, cluster.variant) == searched_room(cluster)


FLAGS: tuple[dict[str, bool], ...] = (
    {"ready": True},
    {"schedulable": True},
    {"stale": False},
    {"healthy": True},
    {"outside": False},
    {"ready": False},
)


def changed(node: NodeSpec, flags: dict[str, bool]) -> NodeSpec:
    """The node as `Fleet.as_if` with these flags means it."""
    gpus = tuple(
        replace(
            gpu,
            healthy=flags.get("healthy", gpu.healthy),
            used_outside_mib=gpu.used_outside_mib if flags.get("outside", True) else 0,
        )
        for gpu in node.gpus
    )
    return replace(
        node,
        gpus=gpus,
        ready=flags.get("ready", node.ready),
        schedulable=flags.get("schedulable", node.schedulable),
        stale=flags.get("stale", node.stale),
    )


@trials
@given(clusters(), st.sampled_from(FLAGS), st.lists(st.integers(0, 3), unique=True))
def test_a_change_that_is_only_supposed_answers_like_one_that_was_made(
    cluster: Cluster, flags: dict[str, bool], chosen: list[int]
) -> None:
    nodes = sorted(cluster.nodes, key=lambda node: node.name)
    numbers = [number for number in chosen if number < len(nodes)]
    fleet = fleet_of(cluster)
    before = room(fleet, cluster.variant)
    supposed = fleet.as_if(numbers, **flags)
    made = [changed(node, flags) if number in numbers else node for number, node in enumerate(nodes)]
    after = cluster._replace(nodes=tuple(made))
    assert room(supposed, cluster.variant) == searched_room(after)
    assert survey(supposed, cluster.variant).codes == searched_codes(after)
    assert room(fleet, cluster.variant) == before


@trials
@given(st.decimals("0.01", "1", places=2) | st.decimals("0.000001", "1", places=6), st.integers(1, 250))
def test_a_fraction_claims_what_counting_in_exact_numbers_gives(fraction: Decimal, thousands: int) -> None:
    variant = VariantSpec("v", gpu_memory_fraction=fraction)
    for memory in (1000 * thousands, 1000 * thousands - 1, 1024 * thousands):
        assert claim_mib(variant, memory) == plain_rules.claim_on(memory, variant)


def rates(least: str, most: str) -> st.SearchStrategy[Decimal]:
    """Decimals of at most six places."""
    return st.decimals(least, most, places=6) | st.decimals(least, most, places=1)


@trials
@given(
    rates("0.1", "300"),
    rates("0.3", "50"),
    st.decimals("0.2", "1", places=2) | st.just(Decimal(1)),
    st.lists(st.none() | rates("0.1", "100"), max_size=3),
)
def test_the_need_is_what_adding_replicas_one_by_one_gives(
    tokens: Decimal, per_replica: Decimal, utilization: Decimal, others: list[Decimal | None]
) -> None:
    measured = [other or Decimal(0) for other in others]
    expected = brute_force.needed(tokens, per_replica, utilization, others)
    assert replicas_needed(tokens, per_replica, utilization, measured) == expected


@trials
@given(st.integers(1, 40), rates("0.1", "50"), st.decimals("0.2", "1", places=2))
def test_an_exact_multiple_needs_no_replica_more(
    count: int, per_replica: Decimal, utilization: Decimal
) -> None:
    tokens = count * per_replica * utilization
    assert replicas_needed(tokens, per_replica, utilization) == count
    assert replicas_needed(tokens + Decimal("0.000001"), per_replica, utilization) == count + 1
