"""Replicas in pools of nodes are measured by the workers of their pool alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import override_settings
from django.utils import timezone

from sizing import tasks
from sizing.measuring import engines, pools, refreshes
from sizing.models import Placement, Refresh, Replica, WorkerBeat
from sizing.services.watching import workers
from tests import builders

pytestmark = pytest.mark.django_db

ZONE = "topology.kubernetes.io/zone"
NOBODY = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def label() -> Iterator[None]:
    with override_settings(POOL_LABEL=ZONE):
        yield


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test makes this process serve ends with it."""
    monkeypatch.setattr(pools, "_served", None)


def replica_in(*zones: str, name: str = "") -> Replica:
    """A replica to measure with a GPU on a node of each zone; an empty zone: the node has no label."""
    name = name or "-".join(zones) or "none"
    nodes = [
        builders.node(f"node-{name}-{at}", gpus=1, labels={ZONE: zone} if zone else {})
        for at, zone in enumerate(zones)
    ]
    variant = builders.variant(builders.model(f"model-{name}"), "one", gpus=1, nodes=len(zones))
    replica = builders.replica(f"replica-{name}", variant, nodes[0], (0,), benchable=True, endpoint=NOBODY)
    for node in nodes[1:]:
        Placement.objects.create(replica=replica, gpu=node.gpus.get())
    return replica


def queued(replica: Replica) -> Refresh:
    profile = builders.profile(f"profile-{replica.name}")
    return Refresh.objects.create(variant=replica.variant, profile=profile, trigger="api")


def beat(*queues: str) -> None:
    WorkerBeat.objects.create(name="-".join(queues), queues=queues, seen_at=timezone.now())


def test_a_pool_is_the_zone_that_all_nodes_of_a_replica_have() -> None:
    replicas = [
        replica_in("eu-1a"),
        replica_in("eu-1a", "eu-1b"),
        replica_in("eu-1b", "eu-1b"),
        replica_in(""),
    ]
    found = pools.pools_of(replicas)
    assert [found[one.pk] for one in replicas] == ["eu-1a", "", "eu-1b", ""]
    with override_settings(POOL_LABEL=""):
        assert set(pools.pools_of(replicas).values()) == {""}


@pytest.mark.parametrize(
    ("pool", "queue"),
    [
        ("", "measuring"),
        ("eu-1a", "measuring.eu-1a"),
        ("a/b", "measuring.~c14cddc033f64b9d"),
        ("ä" * 200, "measuring.~2e9f2db459a49bf4"),
    ],
)
def test_a_pool_has_a_queue_that_every_broker_takes(pool: str, queue: str) -> None:
    assert pools.queue_of(pool) == queue


def test_a_worker_takes_only_what_is_of_its_pools(serve: None) -> None:
    near, far = queued(replica_in("eu-1a")), queued(replica_in("eu-1b"))
    pools.serve(["desk", "measuring.eu-1a"])
    before = Refresh.objects.filter(pk=far.pk).values().get()
    assert refreshes.claim(far.pk) is None
    assert Refresh.objects.filter(pk=far.pk).values().get() == before
    assert refreshes.claim(near.pk) is not None


def test_of_several_replicas_a_worker_takes_one_in_its_pool(serve: None) -> None:
    first = replica_in("eu-1a")
    node = builders.node("other", gpus=1, labels={ZONE: "eu-1b"})
    other = builders.replica("other", first.variant, node, (0,), benchable=True, endpoint=NOBODY)
    row = queued(first)
    pools.serve(["measuring.eu-1b"])
    claim = refreshes.claim(row.pk)
    assert claim is not None
    assert claim.replica == other


def test_what_is_in_no_pool_is_for_the_workers_of_the_queue_of_all(serve: None) -> None:
    across, near = queued(replica_in("eu-1a", "eu-1b")), queued(replica_in("eu-1a"))
    pools.serve(["measuring"])
    assert refreshes.claim(near.pk) is None
    assert refreshes.claim(across.pk) is not None


def test_without_the_label_every_worker_takes_everything(serve: None) -> None:
    row = queued(replica_in("eu-1a"))
    pools.serve(["measuring"])
    with override_settings(POOL_LABEL=""):
        assert refreshes.queues_to_wake(row.pk) == ["measuring"]
        assert refreshes.claim(row.pk) is not None


def test_what_measures_by_command_may_measure_everywhere() -> None:
    assert refreshes.claim(queued(replica_in("eu-1a")).pk) is not None


def test_a_refresh_with_nothing_to_measure_fails_on_whatever_worker(serve: None) -> None:
    replica = replica_in("eu-1a")
    row = queued(replica)
    Replica.objects.update(benchable=False)
    pools.serve(["measuring"])
    assert refreshes.queues_to_wake(row.pk) == ["measuring"]
    assert refreshes.claim(row.pk) is None
    row.refresh_from_db()
    assert (row.state, row.error) == ("failed", "no replica of model-eu-1a (one) is marked benchable")


def test_only_queues_that_somebody_serves_are_woken_and_the_row_says_who_is_missing() -> None:
    row = queued(replica_in("eu-1a"))
    beat("desk", "measuring")
    assert refreshes.queues_to_wake(row.pk) == []
    row.refresh_from_db()
    assert row.message == "waits: no worker of the pool eu-1a (queue measuring.eu-1a) gives a sign of life"
    assert workers.serving(workers.workers()) == {"desk": 1, "measuring": 1, "measuring.eu-1a": 0}
    beat("measuring.eu-1a")
    assert refreshes.queues_to_wake(row.pk) == ["measuring.eu-1a"]
    assert workers.serving(workers.workers()) == {"desk": 1, "measuring": 1, "measuring.eu-1a": 1}


def test_messages_go_to_the_queues_of_all_pools_that_have_a_replica(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = replica_in("eu-1a")
    node = builders.node("other", gpus=1, labels={ZONE: "eu-1b"})
    builders.replica("other", first.variant, node, (0,), benchable=True, endpoint=NOBODY)
    row = queued(first)
    beat("measuring.eu-1a", "measuring.eu-1b", "measuring.eu-1c")
    sent = []
    monkeypatch.setattr(
        tasks.run_refresh, "apply_async", lambda args, **options: sent.append((args, options["queue"]))
    )
    tasks.wake(row.pk)
    assert sent == [((row.pk,), "measuring.eu-1a"), ((row.pk,), "measuring.eu-1b")]


def test_engines_of_a_pool_are_looked_at_by_its_workers(monkeypatch: pytest.MonkeyPatch, serve: None) -> None:
    replica_in("eu-1a")
    replica_in("eu-1b")
    replica_in("")
    beat("measuring.eu-1a")
    asked: list[str] = []

    def label(replica: Replica) -> str:
        asked.append(replica.name)
        return ""

    monkeypatch.setattr(engines, "_label", label)
    monkeypatch.setattr(
        tasks.look_at_engines_of,
        "apply_async",
        lambda args, **options: asked.append(f"{args[0]} in {options['queue']}"),
    )
    tasks.look_at_engines()
    assert asked == ["replica-none", "eu-1a in measuring.eu-1a"]
    asked.clear()
    pools.serve(["measuring.eu-1a"])
    tasks.look_at_engines_of("eu-1b")
    tasks.look_at_engines_of("eu-1a")
    assert asked == ["replica-eu-1a"]
