"""The fleet at a glance: each GPU counted once, groups, filters, and how what is free is spread."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import given, settings

from sizing.domain.board import By, Counts, gpu_types, survey, zones
from sizing.domain.fleet import Fleet
from sizing.domain.picture import ZONE_LABEL, node_picture
from sizing.domain.specs import GpuSpec, ModelSpec, NodeSpec, ReplicaSpec, VariantSpec
from tests.domain.strategies import Cluster, clusters

H100, L40S, SLICE = "NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S", "NVIDIA-H100-MIG-1g.10gb"


def node(name: str, zone: str | None, *gpus: GpuSpec, **flags: Any) -> NodeSpec:
    return NodeSpec(name, gpus, labels={} if zone is None else {ZONE_LABEL: zone}, **flags)


def whole(count: int, gpu_type: str = H100, begin: int = 0) -> list[GpuSpec]:
    return [GpuSpec(begin + index, gpu_type, 80_000) for index in range(count)]


def fleet() -> Fleet:
    """Two zones: a1 holds all that a GPU can be, a2 is cordoned, b1 is of another type, c1 is in no zone,
    d1 has whole GPUs and slices, e1 has no GPUs."""
    of_a1 = [
        *whole(4),
        GpuSpec(4, H100, 80_000, healthy=False),
        GpuSpec(5, H100, 80_000, healthy=False),
        GpuSpec(6, H100, 80_000, used_outside_mib=1025),
        GpuSpec(7, H100, 80_000, used_outside_mib=1024),
    ]
    nodes = [
        node("a1", "eu-a", *of_a1),
        node("a2", "eu-a", *whole(2), schedulable=False),
        node("b1", "eu-b", *whole(4, L40S)),
        node("c1", None, *whole(2)),
        node("d1", "eu-b", *whole(1), GpuSpec(1, SLICE, 10_000, partition=True)),
        node("e1", "eu-b"),
    ]
    llama = ModelSpec("llama", variants=(VariantSpec("tp2", gpus=2),))
    small = ModelSpec("small", variants=(VariantSpec("half", gpu_memory_fraction=Decimal("0.5")),))
    replicas = [
        ReplicaSpec("llama-0", "llama", "tp2", placement=(("a1", (0, 1)),)),
        ReplicaSpec("small-0", "small", "half", placement=(("a1", (2,)),)),
        ReplicaSpec("small-1", "small", "half", state="failed", placement=(("a1", (5,)),)),
        ReplicaSpec("small-2", "small", "half", placement=(("b1", (3,)),)),
        ReplicaSpec("llama-1", "llama", "tp2", state="pending", placement=(("c1", (0, 1)),)),
    ]
    return Fleet.build(nodes, [llama, small], replicas)


def names(found: Fleet, numbers: Any) -> list[str]:
    return [found.hardware.nodes[number].name for number in numbers.tolist()]


def test_every_gpu_is_counted_once_and_what_is_free_is_spread_over_open_nodes() -> None:
    total = survey(fleet()).total
    assert total == Counts(
        nodes=5,
        closed=1,
        gpus=18,
        held=5,
        free=9,
        shut=2,
        outside=1,
        unhealthy=1,
        unhealthy_held=1,
        parts=3,
        widest=8,
        spread=((2, 3), (3, 1)),
    )
    assert total.most == 3


def test_nodes_are_grouped_by_zone_and_by_all_of_their_types() -> None:
    found = fleet()

    def groups(by: By) -> list[tuple[Any, Any, list[str]]]:
        return [(g.zone, g.types, names(found, g.nodes)) for g in survey(found, by).groups]

    assert groups(By.ZONE_AND_TYPE) == [
        ("eu-a", (H100,), ["a1", "a2"]),
        ("eu-b", (H100, SLICE), ["d1"]),
        ("eu-b", (L40S,), ["b1"]),
        ("", (H100,), ["c1"]),
    ]
    assert groups(By.ZONE) == [
        ("eu-a", None, ["a1", "a2"]),
        ("eu-b", None, ["b1", "d1"]),
        ("", None, ["c1"]),
    ]
    assert groups(By.TYPE) == [
        (None, (H100,), ["a1", "a2", "c1"]),
        (None, (H100, SLICE), ["d1"]),
        (None, (L40S,), ["b1"]),
    ]


def test_a_zone_a_type_in_any_spelling_and_a_model_that_holds_something_can_be_asked_for() -> None:
    found = fleet()

    def asked(**wanted: Any) -> list[str]:
        return sorted(name for g in survey(found, **wanted).groups for name in names(found, g.nodes))

    assert asked(zone="eu-a") == ["a1", "a2"]
    assert asked(zone="") == ["c1"]
    assert asked(zone="eu-z") == []
    assert asked(gpu_type="h100 80gb hbm3") == ["a1", "a2", "c1", "d1"]
    assert asked(gpu_type=SLICE) == ["d1"]
    assert asked(gpu_type="B200") == []
    assert asked(model="small") == ["a1", "b1"]
    assert asked(model="llama") == ["a1"]
    assert asked(model="nobody") == []
    assert asked(zone="eu-b", model="small") == ["b1"]
    assert survey(found, zone="eu-z").total.nodes == 0
    assert survey(found, zone="eu-z").total.most == 0
    assert zones(found.hardware) == ["", "eu-a", "eu-b"]
    assert gpu_types(found.hardware) == sorted([H100, L40S, SLICE])


def test_of_a_type_only_its_gpus_are_counted_and_those_left_out_are_told() -> None:
    found = survey(fleet(), gpu_type="h100-mig-1g.10gb")
    total = found.total
    assert (total.nodes, total.gpus, total.free, total.widest, found.left_out) == (1, 1, 1, 1, 1)
    (group,) = found.groups
    assert (group.types, group.counts) == ((H100, SLICE), total)
    found = survey(fleet(), zone="eu-b")
    assert (found.total.gpus, found.total.free, found.left_out) == (6, 5, 0)
    assert survey(fleet(), gpu_type=L40S).left_out == 0


def test_a_model_is_found_where_it_holds_something_after_a_replica_came_and_went() -> None:
    before = fleet()
    assert names(before, survey(before, model="llama").groups[0].nodes) == ["a1"]
    moved = ReplicaSpec("llama-0", "llama", "tp2", placement=(("c1", (0, 1)),))
    after = before.with_replicas(added=[moved])
    assert names(after, survey(after, model="llama").groups[0].nodes) == ["c1"]
    assert names(before, survey(before, model="llama").groups[0].nodes) == ["a1"]


def test_a_fleet_without_nodes_has_no_groups() -> None:
    found = survey(Fleet.build([], [], []))
    assert (found.total.gpus, found.total.spread, found.groups) == (0, (), ())


@settings(max_examples=40, deadline=None)
@given(clusters())
def test_the_counts_are_those_of_the_nodes_looked_at_one_by_one(cluster: Cluster) -> None:
    found = Fleet.build(cluster.nodes, cluster.models, cluster.replicas)
    pictures = [node_picture(found, number) for number in range(len(found.hardware.nodes))]
    pictures = [picture for picture in pictures if picture.gpus]
    gpus = [(picture, gpu) for picture in pictures for gpu in picture.gpus]
    total = survey(found).total
    assert total.nodes == len(pictures)
    assert total.closed == sum(bool(picture.closed) for picture in pictures)
    assert total.gpus == len(gpus)
    assert total.held == sum(bool(gpu.holders) for _, gpu in gpus)
    assert total.free == sum(gpu.whole and not picture.closed for picture, gpu in gpus)
    assert total.shut == sum(gpu.whole and bool(picture.closed) for picture, gpu in gpus)
    assert total.unhealthy == sum(not gpu.healthy and not gpu.holders for _, gpu in gpus)
    assert total.parts == sum(
        gpu.free_mib > 0 and gpu.healthy and not gpu.whole and not picture.closed for picture, gpu in gpus
    )
    assert total.outside == total.gpus - total.held - total.free - total.shut - total.unhealthy
    for by in By:
        groups = survey(found, by).groups
        assert sum(group.counts.gpus for group in groups) == total.gpus
        assert sum(group.counts.free for group in groups) == total.free
