"""What a load writes: upserts by name, nothing where nothing differs, and removal with --replace."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection

from sizing.models import (
    BenchProfile,
    Gpu,
    Measurement,
    Node,
    Placement,
    Replica,
    ServedModel,
    Target,
    Variant,
)
from sizing.services.inventory import KINDS, LoadResult, dump, load_document
from tests.inventory.documents import H100, load, replica, revision, sound

pytestmark = pytest.mark.django_db

GPU = {"type": H100, "memory_mib": 80000}
WHEN = "2026-11-02T09:00:00Z"


def counts(result: LoadResult) -> dict[str, dict[str, int]]:
    """What is not 0."""
    report = result.as_json()
    return {
        what: {kind: number for kind, number in report[what].items() if number}
        for what in ("created", "updated", "removed", "unchanged")
        if any(report[what].values())
    }


ALL = {
    "nodes": 2,
    "gpus": 6,
    "profiles": 1,
    "models": 1,
    "variants": 4,
    "measurements": 1,
    "replicas": 2,
    "targets": 1,
}


def test_a_first_load_creates_everything() -> None:
    result = load(sound())
    assert counts(result) == {"created": ALL}
    assert result.changed == sum(ALL.values())
    assert list(result.as_json()["created"]) == list(KINDS)
    tables = (Node, Gpu, BenchProfile, ServedModel, Variant, Measurement, Replica, Target)
    assert [table.objects.count() for table in tables] == list(ALL.values())
    assert Placement.objects.count() == 3


@pytest.mark.parametrize("replace", [False, True])
def test_a_second_load_writes_nothing(replace: bool) -> None:
    load(sound())
    before = revision()
    result = load(sound(), replace)
    assert counts(result) == {"unchanged": ALL}
    assert (result.changed, revision()) == (0, before)


def test_absent_sections_and_objects_are_left_alone() -> None:
    load(sound())
    result = load({"version": 1, "nodes": [{"name": "gpu-a3"}]})
    assert counts(result) == {"created": {"nodes": 1}}
    assert Node.objects.count() == 3


def test_replace_removes_what_the_file_leaves_out() -> None:
    load(sound())
    result = load({"version": 1, "nodes": [{"name": "gpu-a2"}]}, replace=True)
    assert counts(result) == {
        "updated": {"nodes": 1},
        "removed": {**ALL, "nodes": 1},
    }
    assert list(Node.objects.values_list("name", flat=True)) == ["gpu-a2"]
    assert not Placement.objects.exists()


def test_a_listed_object_is_described_whole() -> None:
    load(sound(("nodes.0.cpu_millis", 500), ("nodes.0.ready", False)))
    load({"version": 1, "nodes": [{"name": "gpu-a1", "pods": 9}]})
    node = Node.objects.get(name="gpu-a1")
    assert (node.ready, node.labels, node.cpu_millis, node.pods) == (True, {}, None, 9)


def test_gpus_and_variants_that_are_not_said_stay() -> None:
    load(sound())
    result = load({"version": 1, "nodes": [{"name": "gpu-a1"}], "models": [{"name": "llama", "priority": 5}]})
    assert counts(result) == {
        "updated": {"nodes": 1, "models": 1},
        "unchanged": {"gpus": 4, "variants": 4},
    }


def test_listed_gpus_and_variants_are_the_whole_list() -> None:
    load(sound())
    variants = [v for v in sound()["models"][0]["variants"] if v["name"] in ("tp2", "half")]
    result = load(
        {
            "version": 1,
            "nodes": [{"name": "gpu-a2", "labels": {"zone": "b"}, "gpus": [{**GPU, "index": 1}]}],
            "models": [{"name": "llama", "default_profile": "chat", "variants": variants[::-1]}],
        }
    )
    assert counts(result) == {
        "updated": {"variants": 2},
        "removed": {"gpus": 1, "variants": 2},
        "unchanged": {"nodes": 1, "gpus": 1, "models": 1},
    }
    assert list(Variant.objects.order_by("position").values_list("name", "position")) == [
        ("half", 0),
        ("tp2", 1),
    ]


def test_only_what_differs_is_written() -> None:
    load(sound())
    ids = dict(Replica.objects.values_list("name", "pk"))
    document = sound(
        ("nodes.1.schedulable", False),
        ("nodes.1.gpus.0.healthy", False),
        ("replicas.0.placement.0", {"node": "gpu-a2", "gpus": [0, 1]}),
        ("replicas.1.state", "draining"),
        ("targets.0.tokens_per_sec", 6000),
        ("profiles.0.refresh_every_h", 24),
    )
    assert counts(load(document)) == {
        "updated": {"nodes": 1, "gpus": 2, "profiles": 1, "replicas": 2, "targets": 1},
        "unchanged": {"nodes": 1, "gpus": 4, "models": 1, "variants": 4, "measurements": 1},
    }
    assert dict(Replica.objects.values_list("name", "pk")) == ids
    moved = Placement.objects.filter(replica__name="llama-0").values_list("gpu__node__name", "gpu__index")
    assert sorted(moved) == [("gpu-a2", 0), ("gpu-a2", 1)]


def test_a_load_keeps_when_a_node_was_last_seen() -> None:
    load(sound())
    Node.objects.update(seen_at=WHEN)
    load(sound(("nodes.0.ready", False)))
    assert Node.objects.filter(seen_at__isnull=True).count() == 0


def test_which_engine_a_variant_was_seen_to_run_is_kept() -> None:
    load(sound())
    Variant.objects.update(engine_seen="vllm 0.11.0")
    load(sound(("models.0.variants.0.cpu_millis", 1000)))
    assert set(Variant.objects.values_list("engine_seen", flat=True)) == {"vllm 0.11.0"}


def test_runs_of_gpus_take_the_next_indexes() -> None:
    gpus = [
        {**GPU, "count": 2},
        {**GPU, "index": 5, "healthy": False},
        {**GPU, "count": 2},
        {**GPU, "index": 3},
        GPU,
    ]
    load({"version": 1, "nodes": [{"name": "n", "gpus": gpus}]})
    assert list(Gpu.objects.order_by("index").values_list("index", flat=True)) == [0, 1, 3, 5, 6, 7, 8]
    assert Gpu.objects.get(healthy=False).index == 5


def test_uuids_may_change_places() -> None:
    def document(first: str, second: str) -> dict[str, Any]:
        return {
            "version": 1,
            "nodes": [
                {"name": "a", "gpus": [{**GPU, "uuid": first}]},
                {"name": "b", "gpus": [{**GPU, "uuid": second}]},
            ],
        }

    load(document("GPU-1", "GPU-2"))
    assert counts(load(document("GPU-2", "GPU-1"))) == {"updated": {"gpus": 2}, "unchanged": {"nodes": 2}}
    assert list(Gpu.objects.order_by("node__name").values_list("uuid", flat=True)) == ["GPU-2", "GPU-1"]
    only = {"version": 1, "nodes": [{"name": "c", "gpus": [{**GPU, "uuid": "GPU-1"}]}]}
    assert counts(load(only, replace=True)) == {
        "created": {"nodes": 1, "gpus": 1},
        "removed": {"nodes": 2, "gpus": 2},
    }


def test_a_profile_can_be_left_out_together_with_what_uses_it() -> None:
    load(sound())
    document = sound(
        ("profiles", []), ("measurements", []), ("targets", []), ("models.0.default_profile", None)
    )
    assert counts(load(document, replace=True))["removed"] == {"profiles": 1, "measurements": 1, "targets": 1}


def test_a_replica_can_change_its_model_and_variant() -> None:
    load(sound())
    document = sound(
        ("models.+", {"name": "other", "variants": [{"name": "v", "gpus": 2}]}),
        ("replicas.0.model", "other"),
        ("replicas.0.variant", "v"),
    )
    load(document)
    assert Replica.objects.get(name="llama-0").variant.model.name == "other"


def test_names_are_told_apart_by_case() -> None:
    load({"version": 1, "nodes": [{"name": "A"}, {"name": "a"}]})
    assert Node.objects.count() == 2


def test_times_without_an_offset_are_utc() -> None:
    load(
        sound(
            ("replicas.0.started_at", "2026-11-01T08:00:00"),
            ("replicas.1.started_at", "2026-11-01 10:00:00+02:00"),
        )
    )
    assert {r["started_at"] for r in dump()["replicas"]} == {"2026-11-01T08:00:00Z"}


# Measurements ------------------------------------------------------------------------------------


def measured(rate: float, at: str = WHEN, **more: Any) -> dict[str, Any]:
    return {
        "model": "llama",
        "variant": "tp2",
        "profile": "chat",
        "tok_per_sec": rate,
        "measured_at": at,
        **more,
    }


def rates() -> list[float]:
    return [float(m.tok_per_sec) for m in Measurement.objects.order_by("measured_at", "pk")]


def test_measurements_of_equal_time_both_stay_in_the_order_of_the_file() -> None:
    document = sound(("measurements", [measured(2), measured(1), measured(2, engine="vLLM")]))
    load(document)
    assert rates() == [2, 1, 2]
    assert load(document).changed == 0


def test_without_replace_other_measurements_stay() -> None:
    load(sound(("measurements", [measured(1)])))
    assert counts(load({"version": 1, "measurements": [measured(2)]})) == {"created": {"measurements": 1}}
    assert rates() == [1, 2]


def test_of_equal_times_the_files_order_is_restored() -> None:
    load(sound(("measurements", [measured(2)])))
    result = load({"version": 1, "measurements": [measured(1), measured(2)]})
    assert counts(result) == {"created": {"measurements": 1}, "updated": {"measurements": 1}}
    assert rates() == [1, 2]


def test_a_stored_measurement_is_known_again_whatever_the_desk_noted_on_it() -> None:
    load(sound())
    Measurement.objects.update(stale_reason="older than 168 h")
    assert load(sound()).changed == 0
    assert Measurement.objects.get().stale_reason == "older than 168 h"


def test_a_measurement_that_missed_its_slo_stays_one() -> None:
    load(sound(("measurements.0.slo_met", False)))
    assert Measurement.objects.get().slo_met is False
    assert dump()["measurements"][0]["slo_met"] is False


# Two at once -------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_two_loads_at_once_come_one_after_the_other() -> None:
    """Each alone is sound; together they would hold a GPU twice, so one of the two is refused."""
    load(sound())
    outcomes: list[str] = []
    start = threading.Barrier(2)

    def run(name: str) -> None:
        start.wait()
        try:
            load_document({"version": 1, "replicas": [replica(name, "tp2", ("gpu-a2", [0, 1]))]})
            outcomes.append("loaded")
        except Exception as error:  # noqa: BLE001
            outcomes.append(type(error).__name__)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(name,)) for name in ("x", "y")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["InventoryError", "loaded"]
    assert Placement.objects.filter(gpu__node__name="gpu-a2").count() == 2
