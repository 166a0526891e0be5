"""Random clusters as documents: what is free is what the counting says, in any order and every time."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from sizing.inventory.document import Document
from sizing.inventory.kubernetes import objects
from sizing.inventory.kubernetes.counted import Counted
from sizing.inventory.kubernetes.counting import count
from sizing.inventory.kubernetes.document import Brought
from sizing.inventory.kubernetes.facts import Listing
from tests.kubernetes.clusters import Cluster, Object, clusters
from tests.kubernetes.facts import from_counted, gpus


def read(items: list[Object], stored: Document | None = None) -> tuple[Counted, Brought]:
    listing = Listing()
    for item in items:
        objects.add(listing, item)
    objects.finish(listing)
    counted = count(listing)
    return counted, from_counted(counted, stored=stored)


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_as_many_gpus_are_free_as_the_counting_says(cluster: Cluster) -> None:
    counted, found = read(cluster.objects)
    for name, node in counted.nodes.items():
        held = {
            index
            for replica in found.document.replicas.values()
            for on, indexes in replica.placement
            for index in indexes
            if on == name
        }
        start = 0
        for pool in node.pools:
            span = range(start, start + len(pool.devices))
            start = span.stop
            free = sum(gpus(found, name)[i].healthy and i not in held for i in span)
            assert free == node.resources[pool.resource].free


@settings(max_examples=60, deadline=None)
@given(clusters(), st.integers(0, 10**6))
def test_any_order_and_a_second_time_give_the_same(cluster: Cluster, seed: int) -> None:
    _, first = read(cluster.objects)
    shuffled = cluster.objects
    Random(seed).shuffle(shuffled)
    for stored in (None, first.document):
        _, again = read(shuffled, stored)
        assert again.document == first.document
        assert [n.gpus for n in again.document.nodes.values()] == [
            n.gpus for n in first.document.nodes.values()
        ]
        assert [m.variants for m in again.document.models.values()] == [
            m.variants for m in first.document.models.values()
        ]
        assert (again.ignored, again.warnings) == (first.ignored, first.warnings)
