"""The rule for what replicas hold, as REST and admin use it after a write."""

from __future__ import annotations

import pytest

from sizing.models import Gpu, Node, Placement, Replica, Variant
from sizing.services.inventory import check_nodes, check_variant
from tests.inventory.documents import load, replica, sound

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fleet() -> None:
    load(sound())


def hold(name: str, node: str, index: int) -> None:
    gpu = Gpu.objects.get(node__name=node, index=index)
    Placement.objects.create(replica=Replica.objects.get(name=name), gpu=gpu)


def on(*nodes: str) -> set[int]:
    return set(Node.objects.filter(name__in=nodes).values_list("pk", flat=True))


def test_sound_nodes_have_no_errors() -> None:
    assert check_nodes(on("gpu-a1", "gpu-a2")).errors == []


def test_a_second_holder_of_a_whole_gpu_is_an_error() -> None:
    Replica.objects.create(name="x", variant=Variant.objects.get(name="half"))
    hold("x", "gpu-a1", 0)
    assert [str(error) for error in check_nodes(on("gpu-a1")).errors] == [
        'replica "x": GPU 0 of node "gpu-a1": replica "llama-0" claims the whole GPU, but "x" holds it too'
    ]


def test_the_shape_of_a_replica_is_checked_over_all_its_nodes() -> None:
    hold("llama-1", "gpu-a2", 0)
    assert [error.message for error in check_nodes(on("gpu-a1")).errors] == [
        'replica "llama-1" is on 2 nodes, but variant "half" spans 1'
    ]
    assert [str(error) for error in check_nodes(on("gpu-a1")).errors] == [
        'replica "llama-1": is on 2 nodes, but variant "half" spans 1'
    ]


def test_a_replica_that_names_no_gpu_is_found_by_its_id() -> None:
    new = Replica.objects.create(name="x", variant=Variant.objects.get(name="half"))
    assert [error.message for error in check_nodes((), [new.pk]).errors] == [
        'replica "x" is ready, so it must name the GPUs that it holds'
    ]


def test_a_larger_claim_of_a_variant_is_checked_where_it_runs() -> None:
    load(sound(("replicas.+", replica("x", "half", ("gpu-a1", [2])))))
    variant = Variant.objects.get(name="half")
    assert check_variant(variant.pk).errors == []
    Variant.objects.filter(pk=variant.pk).update(gpu_memory_fraction="0.500001")
    assert [error.message for error in check_variant(variant.pk).errors] == [
        'GPU 2 of node "gpu-a1": the claims add up to 80002 MiB of 80000 MiB ("llama-1" 40001, "x" 40001)'
    ]


def test_memory_used_outside_is_odd_but_no_error() -> None:
    Gpu.objects.filter(index=2).update(used_outside_mib=50000)
    found = check_nodes(on("gpu-a1"))
    assert found.errors == []
    assert [str(warning) for warning in found.warnings] == [
        'GPU 2 of node "gpu-a1": claims of 40000 MiB and 50000 MiB used outside are more than 80000 MiB;'
        " nothing is free"
    ]


def test_thousands_of_replicas_are_checked_in_one_go() -> None:
    """More than a database takes as parameters of one statement."""
    assert check_nodes((), range(1, 40_000)).errors == []
