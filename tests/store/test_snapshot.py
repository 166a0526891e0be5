"""A patched snapshot says the same as one that is read anew."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TransactionTestCase

from sizing import set_aside, snapshot
from sizing.domain.preemption.ledger import ledger
from sizing.models import BenchProfile, Gpu, Node, Placement, Replica, ServedModel, Variant
from sizing.snapshot import Snapshot
from tests import builders


def assert_same(patched: Snapshot, fresh: Snapshot) -> None:
    assert patched.catalog == fresh.catalog
    assert patched.replica_names == fresh.replica_names
    assert patched.node_names == fresh.node_names
    a, b = patched.fleet, fresh.fleet
    assert a.models == b.models
    assert a.hardware.nodes == b.hardware.nodes
    assert {n: h.spec for n, h in a.replicas.items()} == {n: h.spec for n, h in b.replicas.items()}
    for name in ("free", "free_healthy", "unheld", "whole_free", "cpu_left", "host_memory_left", "pods_left"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    for number in range(len(b.hardware.nodes)):
        assert a.holders_on(number) == b.holders_on(number)
    for model in b.models:
        assert a.of_model(model) == b.of_model(model)


def read_anew() -> Snapshot:
    return snapshot._read(snapshot._newest())


KINDS = ["start", "stop", "state", "priority", "rename", "move", "cordon", "gpu", "variant", "node", "gone"]
KINDS += ["limits", "labels", "swap"]
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 5)), min_size=1, max_size=8)


class TestPatching(TransactionTestCase):
    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(steps=STEPS)
    def test_any_series_of_writes_leaves_the_patched_snapshot_equal_to_a_fresh_one(
        self, steps: list[tuple[str, int]]
    ) -> None:
        nodes = [builders.node(f"n{i}", gpus=3, cpu_millis=9000) for i in range(2)]
        llama = builders.model()
        tp1 = builders.variant(llama, "tp1", gpus=1, cpu_millis=1000)
        share = builders.variant(llama, "share", gpus=1, gpu_memory_mib=20000)
        builders.measurement(tp1, builders.profile())
        for i in range(3):
            builders.replica(f"r{i}", tp1 if i else share, nodes[i % 2], (i,))
        snapshot.current()
        for kind, number in steps:
            write(kind, number)
            assert_same(snapshot.current(), read_anew())


def write(kind: str, number: int) -> None:
    replicas = list(Replica.objects.order_by("id"))
    nodes = list(Node.objects.order_by("id"))
    one: Any = replicas[number % len(replicas)] if replicas else None
    node = nodes[number % len(nodes)] if nodes else None
    if kind == "start" and node is not None:
        name = f"new-{uuid4()}"
        builders.replica(name, Variant.objects.earliest("id"), node, (number % 3,))
    elif kind == "stop" and one:
        one.delete()
    elif kind == "state" and one:
        Replica.objects.filter(pk=one.pk).update(state=["ready", "pending", "failed"][number % 3])
    elif kind == "priority" and one:
        Replica.objects.filter(pk=one.pk).update(priority=number or None)
    elif kind == "rename" and one:
        Replica.objects.filter(pk=one.pk).update(name=f"renamed-{one.pk}")
    elif kind == "move" and one and node is not None:
        gpu = node.gpus.order_by("-index").first()
        if gpu is not None:
            Placement.objects.filter(replica=one).delete()
            Placement.objects.create(replica=one, gpu=gpu)
    elif kind == "cordon" and node is not None:
        Node.objects.filter(pk=node.pk).update(schedulable=bool(number % 2))
    elif kind == "gpu":
        Gpu.objects.filter(index=number % 3).update(used_outside_mib=number * 1000)
    elif kind == "variant":
        Variant.objects.filter(name="share").update(gpu_memory_mib=10000 + number)
    elif kind == "limits":
        ServedModel.objects.update(priority=number % 2, min_replicas=number, max_replicas=number or None)
    elif kind == "labels" and node is not None:
        Node.objects.filter(pk=node.pk).update(labels={"zone": str(number)})
    elif kind == "swap":
        swap_names()
    elif kind == "node":
        builders.node(f"added-{uuid4()}", gpus=number)
    elif kind == "gone" and node is not None:
        Placement.objects.filter(gpu__node=node).delete()
        node.delete()


def swap_names() -> None:
    """Each variant gets the other's name, in one commit."""
    one, two = Variant.objects.order_by("id")
    with transaction.atomic():
        for variant, name in ((one, "between"), (two, one.name), (one, two.name)):
            Variant.objects.filter(pk=variant.pk).update(name=name)


@pytest.mark.django_db(transaction=True)
def test_variants_that_swapped_their_names_are_run_by_the_others_replicas() -> None:
    llama = builders.model()
    variants = [builders.variant(llama, name, gpus=1) for name in ("a", "b")]
    builders.replica("r", variants[0], builders.node(gpus=2), (0,), state="ready")
    assert snapshot.current().fleet.serving_by_variant("llama") == {"a": 1}
    swap_names()
    assert snapshot.current().fleet.serving_by_variant("llama") == {"b": 1}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("change", [{"schedulable": False}, {"ready": False}, {"labels": {"zone": "a"}}])
def test_a_node_that_changes_leaves_all_that_is_known_of_its_replicas(change: dict[str, Any]) -> None:
    tp1 = builders.variant(builders.model(), "tp1", gpus=1)
    node = builders.node(gpus=2)
    builders.replica("r", tp1, node, (0,))
    before = snapshot.current()
    known = ledger(before.fleet)
    Node.objects.filter(pk=node.pk).update(**change)
    after = snapshot.current()
    assert after.revision != before.revision
    assert ledger(after.fleet) is known


@pytest.mark.django_db(transaction=True)
def test_an_unchanged_inventory_costs_one_query() -> None:
    builders.node()
    snapshot.current()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        snapshot.current()
    assert len(queries) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("fleet_size", [1, 20])
def test_one_changed_replica_costs_the_same_however_large_the_fleet(fleet_size: int) -> None:
    tp1 = builders.variant(builders.model(), "tp1", gpus=1)
    for i in range(fleet_size):
        builders.replica(f"r{i}", tp1, builders.node(f"n{i}", gpus=2), (0,))
    snapshot.current()
    Replica.objects.filter(name="r0").update(state="failed")
    with CaptureQueriesContext(connection) as queries:
        changed = snapshot.current()
    read = [q["sql"] for q in queries if "FROM" in q["sql"]]
    assert len(read) == 4  # the newest log row, the log since, the replica, its placement
    assert changed.fleet.replicas["r0"].spec.state == "failed"


@pytest.mark.django_db(transaction=True)
def test_a_kept_answer_is_given_again_until_something_changes() -> None:
    from decimal import Decimal

    from sizing.domain.catalog import Question

    llama = builders.model()
    builders.measurement(builders.variant(llama), builders.profile())
    ServedModel.objects.update(default_profile=BenchProfile.objects.get())
    question = Question("llama", Decimal(5000))
    first = snapshot.current().answer(question)
    assert snapshot.current().answer(question) is first
    assert first.count.free_room == 0
    builders.node()
    assert snapshot.current().answer(question).count.free_room == 2


@pytest.mark.django_db(transaction=True)
def test_gpus_that_swap_their_indexes_take_their_holders_along() -> None:
    node = builders.node(gpus=2)
    builders.replica("r0", builders.variant(builders.model(), "tp1", gpus=1), node, (0,))
    snapshot.current()
    held, other = node.gpus.order_by("index")
    Gpu.objects.filter(pk=held.pk).update(index=9)
    Gpu.objects.filter(pk=other.pk).update(index=0)
    Gpu.objects.filter(pk=held.pk).update(index=1)
    assert_same(snapshot.current(), read_anew())
    assert snapshot.current().fleet.replicas["r0"].spec.placement == (("gpu-a1", (1,)),)


@pytest.fixture
def set_aside_from_two_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(set_aside, "ROWS_WORTH_IT", 2)
    yield
    gc.unfreeze()


def walked() -> set[int]:
    """What a collection looks at."""
    return {id(found) for found in gc.get_objects()}


@pytest.mark.django_db(transaction=True)
def test_a_large_inventory_is_not_walked_by_collections_and_a_small_one_is(
    set_aside_from_two_rows: None,
) -> None:
    builders.node("n1", gpus=1)
    assert id(snapshot.current().fleet.hardware.nodes[0]) in walked()
    builders.node("n2", gpus=1)
    kept = snapshot.current().fleet.hardware.nodes
    assert not {id(node) for node in kept} & walked()
    builders.node("n3", gpus=1)
    assert not {id(node) for node in snapshot.current().fleet.hardware.nodes} & walked()
    tp1 = builders.variant(builders.model(), "tp1", gpus=1)
    builders.replica("r1", tp1, Node.objects.get(name="n3"), (0,))
    assert id(snapshot.current().fleet.replicas["r1"]) in walked()
