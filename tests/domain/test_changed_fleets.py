"""A fleet of which some nodes or models changed says what one says that is built anew."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sizing.domain.fleet import Fleet
from sizing.domain.hardware import Hardware
from sizing.domain.once import once
from sizing.domain.placement import room
from sizing.domain.preemption.ledger import ledger, ledger_of
from sizing.domain.reasons import survey
from sizing.domain.specs import GpuSpec, ModelSpec, NodeSpec, ReplicaSpec, Taint, VariantSpec
from tests.domain.strategies import Cluster, clusters, labels, pick, taint

TRIALS = 1000 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 60
ANY = settings(max_examples=TRIALS, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def other(draw: st.DrawFn, node: NodeSpec) -> NodeSpec:
    """The node with anything else that leaves its GPUs in their places."""
    gpus = tuple(
        replace(gpu, healthy=draw(st.booleans()), used_outside_mib=pick(draw, 0, 1000, 30000))
        for gpu in node.gpus
    )
    return replace(
        node,
        gpus=gpus,
        ready=draw(st.booleans()),
        schedulable=draw(st.booleans()),
        stale=draw(st.booleans()),
        labels=pick(draw, node.labels, labels(draw)),
        taints=pick(draw, node.taints, (), (taint(draw),)),
        cpu_millis=pick(draw, node.cpu_millis, None, 3000),
        memory_mib=pick(draw, node.memory_mib, None, 3000),
        pods=pick(draw, node.pods, None, 2),
    )


def assert_same(changed: Fleet, built: Fleet, variants: Iterable[VariantSpec]) -> None:
    assert changed.hardware.nodes == built.hardware.nodes
    for name in (
        "ready",
        "schedulable",
        "stale",
        "running",
        "cpu",
        "host_memory",
        "pods",
        "healthy",
        "outside",
    ):
        np.testing.assert_array_equal(getattr(changed.hardware, name), getattr(built.hardware, name), name)
    for name in ("free", "free_healthy", "unheld", "whole_free", "cpu_left", "host_memory_left", "pods_left"):
        np.testing.assert_array_equal(getattr(changed, name), getattr(built, name), name)
    assert changed.troubled() == built.troubled()
    for variant in variants:
        assert room(changed, variant) == room(built, variant)
        assert survey(changed, variant).codes == survey(built, variant).codes
    book, fresh = ledger(changed), ledger_of(built, built.replicas)
    assert (book.names, book.models, book.held) == (fresh.names, fresh.models, fresh.held)
    for name in ("priority", "stoppable", "gpu", "gpu_mib", "node", "order"):
        np.testing.assert_array_equal(getattr(book, name), getattr(fresh, name), name)


def used(cluster: Cluster) -> Fleet:
    """The cluster's fleet of which much was asked already."""
    fleet = Fleet.build(cluster.nodes, cluster.models, cluster.replicas)
    for variant in cluster.model.variants:
        survey(fleet, variant)
    ledger(fleet)
    fleet.troubled()
    return fleet


@ANY
@given(cluster=clusters(), data=st.data())
def test_changed_nodes_are_as_if_built_so(cluster: Cluster, data: st.DataObject) -> None:
    fleet, nodes = used(cluster), list(cluster.nodes)
    for _ in range(3):
        place = data.draw(st.integers(0, len(nodes) - 1))
        nodes[place] = data.draw(other(nodes[place]))
        changed = fleet.with_nodes([nodes[place]])
        assert changed is not None
        fleet = changed
        assert_same(fleet, Fleet.build(nodes, cluster.models, cluster.replicas), cluster.model.variants)


@ANY
@given(cluster=clusters(), data=st.data())
def test_changed_models_are_as_if_built_so(cluster: Cluster, data: st.DataObject) -> None:
    models = {
        model.name: replace(
            model,
            priority=data.draw(st.sampled_from([model.priority, 3])),
            min_replicas=data.draw(st.integers(0, 2)),
            max_replicas=data.draw(st.sampled_from([model.max_replicas, None, 2])),
        )
        for model in cluster.models
    }
    fleet = used(cluster).on_catalog(models)
    assert_same(fleet, Fleet.build(cluster.nodes, models.values(), cluster.replicas), cluster.model.variants)


GPU = GpuSpec(0, "L4", 24000)
NODE = NodeSpec("n", (GPU,))


@pytest.mark.parametrize(
    "node",
    [
        replace(NODE, name="m"),
        replace(NODE, gpus=()),
        replace(NODE, gpus=(replace(GPU, index=1),)),
        replace(NODE, gpus=(replace(GPU, type="T4"),)),
        replace(NODE, gpus=(replace(GPU, memory_mib=16000),)),
        replace(NODE, gpus=(replace(GPU, partition=True),)),
    ],
)
def test_what_moves_gpus_is_to_be_built_anew(node: NodeSpec) -> None:
    assert Hardware([NODE]).with_changed([node]) is None


def test_taints_that_come_and_go_are_not_kept_for_ever() -> None:
    hardware: Hardware | None = Hardware([NODE])
    for number in range(1000):
        assert hardware is not None
        changed = hardware.with_changed([replace(NODE, taints=(Taint("k", str(number), "NoSchedule"),))])
        if changed is None:
            return
        hardware = changed
    pytest.fail("a thousand sets of taints for one node")


def test_a_variant_that_became_larger_is_counted_anew_for_what_runs() -> None:
    node = replace(NODE, cpu_millis=9000)
    small = ModelSpec("m", variants=(VariantSpec("one", cpu_millis=1000),))
    fleet = Fleet.build([node], [small], [ReplicaSpec("r", "m", "one", "ready", None, (("n", (0,)),))])
    assert fleet.cpu_left.tolist() == [8000]
    large = replace(small, variants=(replace(small.variants[0], cpu_millis=2000),))
    assert fleet.on_catalog({"m": large}).cpu_left.tolist() == [7000]


class Slow:
    """What takes a while to find."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.found = seconds, 0

    @once
    def value(self) -> int:
        time.sleep(self.seconds)
        self.found += 1
        return 7


def test_who_asks_at_the_same_time_waits_for_one_search_and_nobody_for_that_of_another() -> None:
    slow, quick = Slow(0.5), Slow(0)
    seen: list[Any] = []
    threads = [threading.Thread(target=lambda: seen.append(slow.value)) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert quick.value == 7
    assert seen == []
    for thread in threads:
        thread.join()
    assert (seen, slow.found) == ([7, 7, 7, 7], 1)
