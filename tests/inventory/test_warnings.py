"""What is accepted with a warning, for it is what real clusters look like."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from sizing.models import Gpu, Measurement, Node, Placement
from tests.inventory.documents import H100, load, replica, sound, warnings

pytestmark = pytest.mark.django_db


def test_the_sound_inventory_has_no_warning() -> None:
    assert warnings(sound()) == []


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (
            "nodes.0.gpus.0.used_outside_mib",
            40001,
            [
                'nodes[0].gpus[0]: GPUs 0, 1 of node "gpu-a1": claims of 80000 MiB and 40001 MiB used outside'
                " are more than 80000 MiB; nothing is free",
                'nodes[0].gpus[0]: GPU 2 of node "gpu-a1": claims of 40000 MiB and 40001 MiB used outside'
                " are more than 80000 MiB; nothing is free",
            ],
        ),
        ("nodes.0.gpus.0.used_outside_mib", 1024, []),
        (
            "nodes.1.gpus.0",
            {"type": H100, "memory_mib": 80000, "used_outside_mib": 80001},
            [
                'nodes[1].gpus[0]: GPU 0 of node "gpu-a2": 80001 MiB used outside are more than 80000 MiB;'
                " nothing is free",
                'models[0].variants[0]: variant "x" fits nowhere, even if the cluster were empty',
            ][:1],
        ),
        (
            "nodes.0.gpus.0.healthy",
            False,
            [
                'replicas[0].placement[0].gpus[0]: replica "llama-0" is on GPUs 0, 1 of node "gpu-a1",'
                " which are unhealthy",
                'replicas[1].placement[0].gpus[0]: replica "llama-1" is on GPU 2 of node "gpu-a1",'
                " which is unhealthy",
            ],
        ),
        (
            "nodes.0.schedulable",
            False,
            [
                'replicas[0].placement[0].node: replica "llama-0" is on node "gpu-a1", which is cordoned',
                'replicas[1].placement[0].node: replica "llama-1" is on node "gpu-a1", which is cordoned',
            ],
        ),
        (
            "nodes.0.ready",
            False,
            [
                'replicas[0].placement[0].node: replica "llama-0" is on node "gpu-a1", which is not ready',
                'replicas[1].placement[0].node: replica "llama-1" is on node "gpu-a1", which is not ready',
            ],
        ),
        (
            "nodes.0.taints",
            [{"key": "a", "value": "b", "effect": "NoExecute"}, {"key": "c", "effect": "PreferNoSchedule"}],
            [
                'replicas[0].placement[0].node: replica "llama-0" is on node "gpu-a1", which has the taint'
                ' a=b:NoExecute that variant "tp2" does not tolerate',
                'replicas[1].placement[0].node: replica "llama-1" is on node "gpu-a1", which has the taint'
                ' a=b:NoExecute that variant "half" does not tolerate',
                'models[0].variants[3]: variant "pair" fits nowhere, even if the cluster were empty',
            ],
        ),
        (
            "models.0.variants.0.node_selector",
            {"zone": "b"},
            [
                'replicas[0].placement[0].node: replica "llama-0" is on node "gpu-a1", which lacks the label'
                ' zone=b that variant "tp2" selects'
            ],
        ),
        (
            "models.0.variants.0.gpu_types",
            ["H200", "a100"],
            [
                f'replicas[0]: replica "llama-0" is on "{H100}", but variant "tp2" takes "H200", "a100"',
                'models[0].variants[0]: variant "tp2" fits nowhere, even if the cluster were empty',
            ],
        ),
        (
            "nodes.0.cpu_millis",
            0,
            [],
        ),
        (
            "nodes.0.pods",
            1,
            ['nodes[0]: replicas on node "gpu-a1" take 2 of 1 pods'],
        ),
        (
            "models.0.max_replicas",
            1,
            ['models[0]: model "llama" runs 2 replicas, more than its max_replicas of 1'],
        ),
        (
            "models.0.min_replicas",
            3,
            ['models[0]: model "llama" runs 2 replicas, fewer than its min_replicas of 3'],
        ),
        (
            "models.0.variants.+",
            {"name": "tp8", "gpus": 8},
            ['models[0].variants[4]: variant "tp8" fits nowhere, even if the cluster were empty'],
        ),
        (
            "models.0.variants.+",
            {"name": "low", "gpu_memory_mib": 50000, "gpu_memory_fraction": 0.5},
            ['models[0].variants[4]: variant "low" fits nowhere, even if the cluster were empty'],
        ),
        (
            "models.0.variants.+",
            {"name": "zones", "nodes": 2, "topology_key": "zone"},
            ['models[0].variants[4]: variant "zones" fits nowhere, even if the cluster were empty'],
        ),
        (
            "models.0.variants.2.tolerations",
            [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
            [
                "models[0].variants[2].tolerations[0].tolerationSeconds: is not kept;"
                " it has no bearing on what fits"
            ],
        ),
    ],
)
def test_the_unusual_is_accepted_with_its_path(path: str, value: Any, expected: list[str]) -> None:
    assert warnings(sound((path, value))) == expected


def test_host_cpu_and_memory_may_be_overcommitted() -> None:
    document = sound(
        ("nodes.0.cpu_millis", 1000),
        ("nodes.0.memory_mib", 1000),
        ("models.0.variants.0.cpu_millis", 800),
        ("models.0.variants.1.cpu_millis", 300),
        ("models.0.variants.1.memory_mib", 1001),
    )
    assert warnings(document) == [
        'nodes[0]: replicas on node "gpu-a1" take 1100 of 1000 millicores of CPU',
        'nodes[0]: replicas on node "gpu-a1" take 1001 of 1000 MiB of host memory',
    ]


def test_a_minimum_above_the_maximum_is_kept() -> None:
    assert warnings(sound(("models.0.min_replicas", 5), ("models.0.max_replicas", 4))) == [
        'models[0]: model "llama": min_replicas 5 is above max_replicas 4',
        'models[0]: model "llama" runs 2 replicas, fewer than its min_replicas of 5',
    ]


def test_pending_draining_and_failed_replicas_do_not_count_as_running() -> None:
    document = sound(
        ("models.0.max_replicas", 2),
        ("replicas.+", replica("a", "tp2", state="pending")),
        ("replicas.+", replica("b", "half", ("gpu-a1", [3]), state="draining")),
        ("replicas.+", replica("c", "half", ("gpu-a1", [3]), state="failed")),
    )
    assert warnings(document) == []


def test_a_replica_over_different_gpu_types_is_kept() -> None:
    document = sound(
        ("nodes.1.gpus.+", {"type": "A100", "memory_mib": 80000}),
        ("replicas.+", replica("x", "tp2", ("gpu-a2", [1, 2]))),
    )
    assert warnings(document) == [f'replicas[2]: replica "x" is on GPUs of different types: "A100", "{H100}"']


def test_a_replica_on_a_partition_that_is_not_for_it_is_kept() -> None:
    document = sound(
        ("nodes.1.gpus.+", {"type": "mig", "memory_mib": 80000, "partition": True}),
        ("replicas.+", replica("x", "half", ("gpu-a2", [2]))),
    )
    assert warnings(document) == [
        'replicas[2].placement[0].node: replica "x" is on a partition, which is for variants with 1 GPU on'
        " 1 node that name its type"
    ]


def test_a_replica_across_topology_domains_is_kept() -> None:
    document = sound(
        ("models.0.variants.3", {"name": "pair", "nodes": 2, "topology_key": "zone"}),
        ("replicas.+", replica("x", "pair", ("gpu-a1", [3]), ("gpu-a2", [0]))),
    )
    assert warnings(document) == [
        'replicas[2]: replica "x" is on nodes with different values of "zone"',
        'models[0].variants[3]: variant "pair" fits nowhere, even if the cluster were empty',
    ]


def test_longer_decimals_are_rounded_half_even_with_a_warning() -> None:
    document = sound(
        ("measurements.0.tok_per_sec", 0.1234565),
        ("nodes.0.cost_per_hour", 1.0000005),
        ("profiles.0.slo.ttft_ms", 1.0000015),
    )
    assert warnings(document) == [
        "nodes[0].cost_per_hour: 1.0000005 is kept with six places, as 1",
        "profiles[0].slo.ttft_ms: 1.0000015 is kept with six places, as 1.000002",
        "measurements[0].tok_per_sec: 0.1234565 is kept with six places, as 0.123456",
    ]
    assert str(Measurement.objects.get().tok_per_sec) == "0.123456"


def test_a_time_is_kept_to_the_microsecond() -> None:
    document = sound(("replicas.0.started_at", "2026-11-01T08:00:00.123456789+02:00"))
    assert warnings(document) == [
        "replicas[0].started_at: 2026-11-01T08:00:00.123456789+02:00 is kept to the microsecond"
    ]


def test_what_the_file_has_no_part_in_is_not_warned_of() -> None:
    load(sound(("nodes.0.schedulable", False), ("models.0.min_replicas", 3)))
    assert warnings({"version": 1, "profiles": sound()["profiles"]}) == []


def test_a_stored_fault_that_the_file_has_no_part_in_warns_but_does_not_refuse() -> None:
    load(sound(("replicas.+", replica("x", "half", ("gpu-a1", [2])))))
    Gpu.objects.update(memory_mib=79999)  # past all checks
    assert warnings({"version": 1, "nodes": [{"name": "new"}]}) == [
        'node "gpu-a1": GPU 2: the claims add up to 80000 MiB of 79999 MiB ("llama-1" 40000, "x" 40000)'
    ]
    assert Node.objects.filter(name="new").exists()


def test_what_the_path_names_is_not_named_again() -> None:
    load(sound())
    Placement.objects.filter(replica__name="llama-0", gpu__index=0).delete()  # past all checks
    assert warnings({"version": 1, "nodes": [{"name": "new"}]}) == [
        'replica "llama-0": holds 1 GPU of node "gpu-a1", but variant "tp2" takes 2 on each node'
    ]


@pytest.mark.parametrize(
    ("ahead", "told"),
    [
        (timedelta(minutes=4), []),
        (timedelta(hours=1), ["measurements[0].measured_at: {} lies in the future"]),
    ],
)
def test_a_measurement_of_the_future_is_odd(ahead: timedelta, told: list[str]) -> None:
    moment = f"{timezone.now() + ahead:%Y-%m-%dT%H:%M:%SZ}"
    expected = [line.format(moment) for line in told]
    assert warnings(sound(("measurements.0.measured_at", moment))) == expected


def test_thousands_of_warnings_are_counted_but_not_all_told() -> None:
    nodes = [
        {"name": f"n{i}", "gpus": [{"type": "X", "memory_mib": 1, "used_outside_mib": 2}]}
        for i in range(6_000)
    ]
    result = load({"version": 1, "nodes": nodes})
    assert (len(result.warnings), result.more_warnings) == (5_000, 1_000)
    assert result.as_json()["warnings"][-1] == "and 1,000 more warnings"
