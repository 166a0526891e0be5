"""From a cluster's list to the target view: the room, and each node's code, against a count by hand."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from sizing.models import InventoryChange, Replica
from sizing.services import kubernetes, targets
from sizing.services.targets import Question
from sizing.syncing.bringing import Outcome
from tests import builders
from tests.kubernetes import plain_counting
from tests.kubernetes.built import AMD, GPU, Object, listing, node, pod
from tests.kubernetes.clusters import Cluster, clusters
from tests.kubernetes.plain_counting import PlainNode, Row, tolerates

EXAMPLES = 1000 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 40
trials = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))

MIB = 2**20
TOLERATIONS: tuple[list[Object], ...] = (
    [],
    [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}],
    [{"key": GPU, "operator": "Exists"}, {"key": "dedicated", "operator": "Equal", "value": "rag"}],
    [{"operator": "Exists"}],
)


class Ask(NamedTuple):
    """What one replica of the asking variant needs."""

    gpus: int
    cpu_millis: int
    memory_mib: int
    tolerations: list[Object]


asks = st.builds(
    Ask,
    st.sampled_from((1, 1, 2, 4)),
    st.sampled_from((0, 1000, 3500)),
    st.sampled_from((0, 1024, 3000)),
    st.sampled_from((*TOLERATIONS, TOLERATIONS[-1])),
)


def bring(objects: Sequence[Object]) -> Outcome:
    return kubernetes.bring(kubernetes.read(json.dumps(listing(objects)).encode()))


def asking(asks: Sequence[Ask]) -> None:
    """A model of an operator's own, a measured variant for each ask."""
    model, profile = builders.model("asking"), builders.profile()
    for number, ask in enumerate(asks):
        builders.measurement(builders.variant(model, f"v{number}", **ask._asdict()), profile, 1)


def answer(number: int = 0) -> dict[str, Any]:
    return targets.ask(Question("asking", Decimal(1), variant=f"v{number}", explain_nodes=True))


# ---------------------------------------------------------------- by hand


def whole_devices(found: PlainNode) -> Row | None:
    """The row of the devices that are whole cards; None where all are parts of cards."""
    if found.labels.get("nvidia.com/gpu.sharing-strategy") == "time-slicing":
        return None
    if found.labels.get("amd.com/compute-memory-partition", "").startswith("cpx"):
        return None
    return found.rows.get(GPU) or found.rows.get(AMD)


def expected(found: PlainNode, ask: Ask) -> tuple[int, str]:
    """How many replicas go on a node, and its code."""
    row = whole_devices(found)
    if found.codes() & {"no_gpu", "no_device_plugin", "allocatable_zero"}:
        return 0, "no_gpus"
    if any(not any(tolerates(t, taint) for t in ask.tolerations) for taint in found.closing()):
        return 0, "taint_not_tolerated"
    if row is None or row.allocatable == 0:
        # Other devices are allocatable, or this would be a node without any: its cards are cut.
        return 0, "partition_not_usable"
    if row.capacity < ask.gpus:
        return 0, "too_few_gpus"
    if found.ready != "True" or found.deleting:
        return 0, "node_not_ready"
    if found.cordoned:
        return 0, "node_cordoned"
    if row.allocatable < ask.gpus:
        return 0, "gpu_unhealthy"
    if row.free < ask.gpus:
        return 0, "too_few_free_gpus"
    fits = row.free // ask.gpus
    needs = (("cpu", ask.cpu_millis), ("memory", ask.memory_mib * MIB), ("pods", 1))
    for resource, need in needs:
        if need and resource in found.host:
            if found.host[resource].free < need:
                return 0, "pods_short" if resource == "pods" else f"host_{resource}_short"
            fits = min(fits, found.host[resource].free // need)
    return fits, "open"


def more_held_than_there(found: PlainNode) -> bool:
    """Whether pods hold devices that the node does not have: the desk may tell such devices as held ones
    that are there, or as broken ones."""
    return any(row.overcommitted for row in found.rows.values())


class TestRoom(TestCase):
    @settings(trials, max_examples=EXAMPLES * 2)
    @given(clusters(whole_mib=True), st.lists(asks, min_size=4, max_size=4))
    def test_the_room_and_the_code_of_each_node_are_those_counted_by_hand(
        self, cluster: Cluster, asks: list[Ask]
    ) -> None:
        asking(asks)
        for one in cluster.pods:  # what is kept for those has tests of its own
            one.get("status", {}).pop("nominatedNodeName", None)
        bring(cluster.objects)
        plain = plain_counting.count(cluster.objects)
        for number, ask in enumerate(asks):
            found = answer(number)
            by_hand = {name: expected(machine, ask) for name, machine in plain.items()}
            told = {entry["node"]: entry for entry in found["nodes"]}
            assert {name: entry["fits"] for name, entry in told.items()} == {
                name: fits for name, (fits, _) in by_hand.items()
            }
            for name, (_, code) in by_hand.items():
                assert told[name]["code"] == code or more_held_than_there(plain[name]), name
            assert found["free_room"] == sum(fits for fits, _ in by_hand.values())

    @trials
    @given(clusters())
    def test_the_same_list_again_changes_nothing(self, cluster: Cluster) -> None:
        bring(cluster.objects)
        before = newest_change()
        again = bring(list(reversed(cluster.objects)))
        assert newest_change() == before
        assert [number for kinds in (again.rows or {}).values() for number in kinds.values() if number] == []

    @trials
    @given(clusters(), clusters())
    def test_what_came_before_leaves_no_trace(self, first: Cluster, then: Cluster) -> None:
        """A list over another says what it says on an empty desk; nodes that it leaves out are gone."""
        asking([Ask(1, 0, 0, [{"operator": "Exists"}])])
        bring(first.objects)
        bring(then.objects)
        after_both = answer()
        held = sorted(Replica.objects.values_list("name", "state", "priority", "variant__model__name"))
        kubernetes.bring(kubernetes.read(json.dumps(listing([node("other", {}), EMPTY])).encode()))
        bring(then.objects)
        alone = answer()
        assert after_both["free_room"] == alone["free_room"]
        assert {e["node"]: (e["code"], e["fits"]) for e in after_both["nodes"]} == {
            e["node"]: (e["code"], e["fits"]) for e in alone["nodes"]
        }
        assert held == sorted(
            Replica.objects.values_list("name", "state", "priority", "variant__model__name")
        )


EMPTY = pod("empty", "other", [])


def newest_change() -> int:
    return InventoryChange.objects.order_by("-id").values_list("id", flat=True).first() or 0


def large_cluster(size: int) -> list[Object]:
    machines = [node(f"gpu-{number:03}") for number in range(size)]
    return machines + [
        pod(f"pod-{number:03}-{place}", f"gpu-{number:03}") for number in range(size) for place in range(5)
    ]


def rows_touched(objects: Sequence[Object]) -> tuple[int, int]:
    """Rows of the change log, and statements that write, of bringing in a list."""
    before = newest_change()
    with CaptureQueriesContext(connection) as queries:
        bring(objects)
    writes = [q for q in queries if q["sql"].lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE"))]
    return newest_change() - before, len(writes)


@pytest.mark.django_db
def test_one_pod_more_or_less_touches_as_many_rows_however_large_the_cluster() -> None:
    touched = {}
    for size in (2, 60):
        whole = large_cluster(size)
        bring(whole)
        touched[size] = [
            rows_touched([*whole, pod("one-more", "gpu-001")]),
            rows_touched(whole),
            rows_touched(whole[:-1]),
            rows_touched(whole),
        ]
    assert touched[2] == touched[60]
    assert all(0 < rows <= 12 for rows, _ in touched[60])
