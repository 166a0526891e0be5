"""What is refused: each with its path, all at once, with nothing changed."""

from __future__ import annotations

from typing import Any

import pytest

from sizing.models import Node, ServedModel
from sizing.services.inventory import InventoryError
from sizing.services.inventory import load as load_bytes
from tests.inventory.documents import H100, errors, load, replica, revision, sound

pytestmark = pytest.mark.django_db

GPU = {"type": H100, "memory_mib": 80000}
DECIMAL_RANGE = "must be above 0 and below 1000000000"
FORM = "such as 2026-11-02T09:00:00Z"


def test_the_sound_inventory_is_accepted() -> None:
    assert errors(sound()) == []


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        # The document
        ("version", 2, "version: must be 1, not 2"),
        ("version", True, "version: must be 1, not true"),
        ("foo", 1, "foo: unknown key"),
        ("nodes", {}, "nodes: must be a list, not a mapping"),
        ("nodes.+", 5, "nodes[2]: must be a mapping, not 5"),
        # Nodes
        ("nodes.+", {}, "nodes[2].name: is required"),
        ("nodes.+", {"name": "gpu-a1"}, 'nodes[2].name: "gpu-a1" is also nodes[0]'),
        ("nodes.+", {"name": " x"}, "nodes[2].name: must not begin or end with white space"),
        ("nodes.+", {"name": "a\nb"}, "nodes[2].name: must not have control characters"),
        ("nodes.+", {"name": "\ud800"}, "nodes[2].name: must not have control characters"),
        ("nodes.+", {"name": "x" * 256}, "nodes[2].name: must have at most 255 characters"),
        ("nodes.+", {"name": 12}, "nodes[2].name: must be a text, not 12; put it in quotes"),
        ("nodes.1.redy", True, "nodes[1].redy: unknown key"),
        ("nodes.1.ready", "yes", 'nodes[1].ready: must be true or false, not the text "yes"'),
        ("nodes.1.schedulable", None, "nodes[1].schedulable: must be true or false, not null"),
        ("nodes.1.cpu_millis", -1, "nodes[1].cpu_millis: must be from 0 to 1000000000, not -1"),
        ("nodes.1.cpu_millis", 1.5, "nodes[1].cpu_millis: must be a whole number, not 1.5"),
        ("nodes.1.memory_mib", True, "nodes[1].memory_mib: must be a whole number, not true"),
        ("nodes.1.pods", "110", 'nodes[1].pods: must be a whole number, not the text "110"'),
        (
            "nodes.1.pods",
            10**30,
            "nodes[1].pods: must be from 0 to 1000000000, not 10000000000000000000000000000…",
        ),
        (
            "nodes.1.cost_per_hour",
            -0.1,
            "nodes[1].cost_per_hour: must be from 0 and below 1000000000, not -0.1",
        ),
        ("nodes.1.labels", [], "nodes[1].labels: must be a mapping, not a list"),
        ("nodes.1.labels", {"a": 1}, 'nodes[1].labels["a"]: must be a text, not 1; put it in quotes'),
        ("nodes.1.labels", {"": "x"}, 'nodes[1].labels[""]: the key must not be empty'),
        (
            "nodes.1.labels",
            {"a/b/c": "x"},
            'nodes[1].labels["a/b/c"]: the key must be a label key such as topology.kubernetes.io/zone',
        ),
        ("nodes.1.taints", [{"effect": "NoSchedule"}], "nodes[1].taints[0].key: is required"),
        ("nodes.1.taints", [{"key": "a"}], "nodes[1].taints[0].effect: is required"),
        (
            "nodes.1.taints",
            [{"key": "a", "effect": "Never"}],
            "nodes[1].taints[0].effect: must be one of NoSchedule, PreferNoSchedule, NoExecute,"
            ' not the text "Never"',
        ),
        (
            "nodes.1.taints",
            [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "value": "b", "effect": "NoSchedule"}],
            "nodes[1].taints[1]: has the same key and effect as nodes[1].taints[0]",
        ),
        # GPUs
        ("nodes.1.gpus.0.type", "", "nodes[1].gpus[0].type: must not be empty"),
        ("nodes.1.gpus.0.memory_mib", 0, "nodes[1].gpus[0].memory_mib: must be from 1 to 1000000000, not 0"),
        ("nodes.1.gpus.0.count", 0, "nodes[1].gpus[0].count: must be from 1 to 10000, not 0"),
        ("nodes.1.gpus.0.count", 10**9, "nodes[1].gpus[0].count: must be from 1 to 10000, not 1000000000"),
        ("nodes.1.gpus.0.index", 0, "nodes[1].gpus[0].count: cannot be more than 1 where there is an index"),
        ("nodes.1.gpus.0.uuid", "GPU-1", "nodes[1].gpus[0].uuid: names one GPU, but count is more than 1"),
        ("nodes.1.gpus.+", {**GPU, "index": 1}, "nodes[1].gpus[1].index: 1 is also gpus[0]"),
        ("nodes.1.gpus.+", {**GPU, "model": "x"}, "nodes[1].gpus[1].model: unknown key"),
        # Profiles
        ("profiles.0.input_tokens", 0, "profiles[0].input_tokens: must be from 1 to 1000000000, not 0"),
        ("profiles.0.slo", {}, "profiles[0].slo: must have at least one limit: ttft_ms, itl_ms or e2e_ms"),
        ("profiles.0.slo.ttft_ms", 0, f"profiles[0].slo.ttft_ms: {DECIMAL_RANGE}, not 0"),
        ("profiles.0.slo.ttft_ms", 1e-9, "profiles[0].slo.ttft_ms: must be at least 0.000001, not 1e-09"),
        ("profiles.0.slo.ttft_ms", float("nan"), "profiles[0].slo.ttft_ms: must be a number, not nan"),
        ("profiles.0.slo.p99", 1, "profiles[0].slo.p99: unknown key"),
        (
            "profiles.0.slo.percentile",
            101,
            "profiles[0].slo.percentile: must be above 0 and at most 100, not 101",
        ),
        (
            "profiles.0.arrival",
            "burst",
            'profiles[0].arrival: must be one of poisson, concurrency, not the text "burst"',
        ),
        ("profiles.0.refresh_every_h", 0, f"profiles[0].refresh_every_h: {DECIMAL_RANGE}, not 0"),
        # Models
        ("models.+", {"name": "a/target"}, "models[1].name: must not end in /target"),
        ("models.+", {"name": "a/refresh"}, "models[1].name: must not end in /refresh"),
        (
            "models.+",
            {"name": "a//b"},
            "models[1].name: must not have an empty or dot segment between slashes",
        ),
        (
            "models.+",
            {"name": "a/../b"},
            "models[1].name: must not have an empty or dot segment between slashes",
        ),
        (
            "models.0.priority",
            2**31,
            "models[0].priority: must be from -2147483648 to 2147483647, not 2147483648",
        ),
        ("models.0.max_replicas", -1, "models[0].max_replicas: must be from 0 to 1000000000, not -1"),
        ("models.0.default_profile", "x", 'models[0].default_profile: no profile "x"'),
        ("models.0.owner", "a\tb", "models[0].owner: must not have control characters"),
        ("models.0.owner", "a\nb", "models[0].owner: must be one line, without line breaks"),
        ("models.0.owner", "a\n", "models[0].owner: must be one line, without line breaks"),
        (
            "models.0.variants.+",
            {"name": "tp2"},
            'models[0].variants[4].name: "tp2" is also models[0].variants[0]',
        ),
        ("models.0.variants.3.gpus", 0, "models[0].variants[3].gpus: must be from 1 to 1000000000, not 0"),
        (
            "models.0.variants.3.gpu_memory_fraction",
            1.0000001,
            "models[0].variants[3].gpu_memory_fraction: must be above 0 and at most 1, not 1.0000001",
        ),
        (
            "models.0.variants.3.gpu_types",
            ["A", "A"],
            "models[0].variants[3].gpu_types[1]: stands here twice",
        ),
        (
            "models.0.variants.3.gpu_types",
            "A",
            'models[0].variants[3].gpu_types: must be a list, not the text "A"',
        ),
        (
            "models.0.variants.3.tolerations",
            [{"key": "a", "operator": "Exists", "value": "x"}],
            "models[0].variants[3].tolerations[0].value: must be empty with the operator Exists",
        ),
        (
            "models.0.variants.3.tolerations",
            [{"value": "x"}],
            "models[0].variants[3].tolerations[0].operator: must be Exists where there is no key",
        ),
        (
            "models.0.variants.3.topology_key",
            "a b",
            "models[0].variants[3].topology_key: must be a label key such as topology.kubernetes.io/zone",
        ),
        # Measurements
        ("measurements.0.model", "x", 'measurements[0].model: no model "x"'),
        ("measurements.0.variant", "x", 'measurements[0].variant: model "llama" has no variant "x"'),
        ("measurements.0.profile", "x", 'measurements[0].profile: no profile "x"'),
        (
            "measurements.0.tok_per_sec",
            10**13,
            "measurements[0].tok_per_sec: must be from 0 and at most 1000000000000, not 10000000000000",
        ),
        ("measurements.0.measured_at", None, f"measurements[0].measured_at: must be a time {FORM}, not null"),
        (
            "measurements.0.measured_at",
            "2026-02-30",
            f'measurements[0].measured_at: must be a time {FORM}, not the text "2026-02-30"',
        ),
        ("measurements.+", sound()["measurements"][0], "measurements[1]: is the same as measurements[0]"),
        (
            "measurements.0.bound",
            "up",
            'measurements[0].bound: must be one of edge, floor or null, not the text "up"',
        ),
        (
            "measurements.0.warnings",
            [1],
            "measurements[0].warnings[0]: must be a text, not 1; put it in quotes",
        ),
        # Targets
        ("targets.0.model", "x", 'targets[0].model: no model "x"'),
        ("targets.0.profile", "x", 'targets[0].profile: no profile "x"'),
        ("targets.0.variant", "x", 'targets[0].variant: model "llama" has no variant "x"'),
        (
            "targets.0.tokens_per_sec",
            0,
            "targets[0].tokens_per_sec: must be above 0 and at most 1000000000000, not 0",
        ),
        ("targets.0.utilization", 1.1, "targets[0].utilization: must be above 0 and at most 1, not 1.1"),
        ("targets.+", sound()["targets"][0], "targets[1]: asks the same as targets[0]"),
        # Replicas
        ("replicas.0.model", "x", 'replicas[0].model: no model "x"'),
        ("replicas.0.variant", "x", 'replicas[0].variant: model "llama" has no variant "x"'),
        (
            "replicas.+",
            replica("llama-0", "tp2", state="pending"),
            'replicas[2].name: "llama-0" is also replicas[0]',
        ),
        (
            "replicas.0.state",
            "gone",
            "replicas[0].state: must be one of pending, starting, ready, draining, failed,"
            ' not the text "gone"',
        ),
        ("replicas.0.endpoint", "x" * 501, "replicas[0].endpoint: must have at most 500 characters"),
        (
            "replicas.0.endpoint",
            "http://u:secret@10.0.0.7:8000/v1",
            "replicas[0].endpoint: must not have a user or a password",
        ),
        ("replicas.0.placement.0.node", "gpu-z", 'replicas[0].placement[0].node: no node "gpu-z"'),
        (
            "replicas.0.placement.0.gpus",
            [0, 9],
            'replicas[0].placement[0].gpus[1]: node "gpu-a1" has no GPU 9',
        ),
        ("replicas.0.placement.0.gpus", [0, 0], "replicas[0].placement[0].gpus[1]: GPU 0 stands here twice"),
        ("replicas.0.placement.0.gpus", [], "replicas[0].placement[0].gpus: must name at least one GPU"),
        (
            "replicas.0.placement.+",
            {"node": "gpu-a1", "gpus": [3]},
            'replicas[0].placement[1].node: "gpu-a1" stands here twice',
        ),
        (
            "replicas.0.placement",
            [],
            'replicas[0].placement: replica "llama-0" is ready, so it must name the GPUs that it holds',
        ),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(path: str, value: Any, expected: str) -> None:
    assert errors(sound((path, value))) == [expected]


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (
            replica("x", "tp2", ("gpu-a2", [0])),
            'replicas[2].placement[0].gpus: replica "x" holds 1 GPU of node "gpu-a2",'
            ' but variant "tp2" takes 2 on each node',
        ),
        (
            replica("x", "pair", ("gpu-a2", [0])),
            'replicas[2].placement: replica "x" is on 1 node, but variant "pair" spans 2',
        ),
        (
            replica("x", "half", ("gpu-a1", [3]), ("gpu-a2", [0])),
            'replicas[2].placement: replica "x" is on 2 nodes, but variant "half" spans 1',
        ),
        (
            replica("x", "big", ("gpu-a1", [2])),
            'replicas[2].placement[0].gpus[0]: GPU 2 of node "gpu-a1": the claims add up to 90000 MiB'
            ' of 80000 MiB ("x" 50000, "llama-1" 40000)',
        ),
        (
            replica("x", "half", ("gpu-a1", [1])),
            'replicas[2].placement[0].gpus[0]: GPU 1 of node "gpu-a1": replica "llama-0" claims'
            ' the whole GPU, but "x" holds it too',
        ),
        (
            replica("x", "tp2", ("gpu-a1", [1, 0]), state="failed"),
            'replicas[2].placement[0].gpus[1]: GPUs 0, 1 of node "gpu-a1": replica "llama-0" claims'
            ' the whole GPU, but "x" holds it too',
        ),
    ],
)
def test_a_replica_that_no_cluster_can_run_is_refused(new: dict[str, Any], expected: str) -> None:
    assert errors(sound(("replicas.+", new))) == [expected]


@pytest.mark.parametrize("names", [("x", "y"), ("y", "x")])
def test_of_two_replicas_that_clash_the_later_one_of_the_file_is_at_fault(names: tuple[str, str]) -> None:
    first, second = (replica(name, "tp2", ("gpu-a2", [0, 1])) for name in names)
    assert errors(sound(("replicas.+", first), ("replicas.+", second))) == [
        f'replicas[3].placement[0].gpus[0]: GPUs 0, 1 of node "gpu-a2": replica "{names[0]}" claims'
        f' the whole GPU, but "{names[1]}" holds it too'
    ]


def test_claims_may_fill_a_gpu_to_the_last_mib() -> None:
    assert errors(sound(("replicas.+", replica("x", "half", ("gpu-a1", [2]))))) == []


def test_a_part_of_a_gpu_of_unknown_memory_cannot_be_claimed() -> None:
    document = sound(("nodes.0.gpus.0.memory_mib", None))
    assert errors(document) == [
        'replicas[1].placement[0].gpus[0]: GPU 2 of node "gpu-a1": the memory is unknown,'
        ' so "llama-1" cannot claim a part of it'
    ]


def test_a_pending_replica_holds_nothing() -> None:
    document = sound(
        ("replicas.+", replica("x", "tp2", state="pending")),
        ("replicas.+", replica("y", "tp2", ("gpu-a1", [0]), state="pending")),
    )
    assert errors(document) == []


def test_a_uuid_names_one_gpu() -> None:
    document = sound(
        ("nodes.0.gpus.+", {**GPU, "uuid": "GPU-1"}),
        ("nodes.1.gpus.+", {**GPU, "uuid": "GPU-1"}),
    )
    assert errors(document) == ['nodes[1].gpus[1].uuid: "GPU-1" is also that of nodes[0].gpus[1]']


def test_a_uuid_of_a_stored_gpu_is_refused_elsewhere() -> None:
    load(sound(("nodes.0.gpus.+", {**GPU, "uuid": "GPU-1"})))
    other = {"version": 1, "nodes": [{"name": "n", "gpus": [{**GPU, "uuid": "GPU-1"}]}]}
    assert errors(other) == ['nodes[0].gpus[0].uuid: "GPU-1" is also that of GPU 4 of node "gpu-a1"']


def test_all_errors_come_at_once() -> None:
    document = sound(
        ("nodes.1.ready", "no"),
        ("models.0.variants.0.cpu_millis", -1),
        ("replicas.+", replica("x", "big", ("gpu-a1", [2]))),
        ("replicas.0.placement.0.node", "gpu-z"),
        ("replicas.1.color", "red"),
    )
    assert errors(document) == [
        'nodes[1].ready: must be true or false, not the text "no"',
        "models[0].variants[0].cpu_millis: must be from 0 to 1000000000, not -1",
        "replicas[1].color: unknown key",
        'replicas[0].placement[0].node: no node "gpu-z"',
        'replicas[2].placement[0].gpus[0]: GPU 2 of node "gpu-a1": the claims add up to 90000 MiB'
        ' of 80000 MiB ("x" 50000, "llama-1" 40000)',
    ]


def test_a_refused_document_changes_nothing() -> None:
    load(sound())
    before = revision()
    document = sound(("nodes.0.ready", False), ("models.+", {"name": "new"}), ("targets.0.model", "x"))
    assert errors(document, replace=True) == ['targets[0].model: no model "x"']
    assert revision() == before
    assert Node.objects.filter(ready=False).count() == 0
    assert not ServedModel.objects.filter(name="new").exists()


def test_the_error_counts_and_groups_by_path() -> None:
    with pytest.raises(InventoryError) as caught:
        load(sound(("version", 2), ("foo", 1)))
    assert caught.value.message == "the inventory has 2 errors; nothing was changed"
    assert caught.value.fields == {"version": ["must be 1, not 2"], "foo": ["unknown key"]}
    assert (caught.value.code, caught.value.status) == ("invalid", 400)


def test_what_cannot_be_read_is_an_error_of_the_document() -> None:
    with pytest.raises(InventoryError) as caught:
        load_bytes(b"a: ]")
    (message,) = caught.value.fields["document"]
    assert message.startswith("line 1, column 4: ")


def test_thousands_of_errors_are_counted_but_not_all_told() -> None:
    with pytest.raises(InventoryError) as caught:
        load({"version": 1, "nodes": [{}] * 7_000})
    assert caught.value.message == "the inventory has 7,000 errors; nothing was changed"
    assert len(caught.value.problems) == 5_000
    assert len(caught.value.fields) == 5_001
    assert caught.value.fields["document"] == ["and 2,000 more errors"]


# What stays must not lose what it uses -----------------------------------------------------------


def test_a_variant_that_stays_in_use_cannot_be_left_out() -> None:
    load(sound())
    model = {"name": "llama", "variants": [{"name": "big", "gpu_memory_mib": 50000}]}
    assert errors({"version": 1, "models": [model]}) == [
        'models[0].variants: leaves out "tp2", which replica "llama-0" and 1 more still use',
        'models[0].variants: leaves out "half", which replica "llama-1" still uses',
    ]


def test_a_gpu_that_stays_in_use_cannot_be_left_out() -> None:
    load(sound())
    node = {"name": "gpu-a1", "gpus": [{**GPU, "count": 2}]}
    assert errors({"version": 1, "nodes": [node]}) == [
        'nodes[0].gpus: leaves out GPU 2, which replica "llama-1" still uses'
    ]


def test_a_smaller_gpu_is_refused_where_stored_replicas_claim_more() -> None:
    load(sound(("replicas.+", replica("x", "big", ("gpu-a2", [0])))))
    node = {"name": "gpu-a2", "gpus": [{"type": H100, "memory_mib": 40000, "count": 2}]}
    assert errors({"version": 1, "nodes": [node]}) == [
        'nodes[0].gpus[0]: GPU 0 of node "gpu-a2": the claims add up to 50000 MiB of 40000 MiB ("x" 50000)'
    ]


def test_a_larger_claim_is_refused_where_stored_replicas_share() -> None:
    load(sound(("replicas.+", replica("x", "half", ("gpu-a1", [2])))))
    variants = [
        v if v["name"] != "half" else {"name": "half", "gpu_memory_fraction": 0.6} for v in variants_of()
    ]
    assert errors({"version": 1, "models": [{"name": "llama", "variants": variants}]}) == [
        'models[0].variants[1]: GPU 2 of node "gpu-a1": the claims add up to 96000 MiB of 80000 MiB'
        ' ("llama-1" 48000, "x" 48000)'
    ]


def test_other_gpus_a_replica_are_refused_where_stored_replicas_have_them() -> None:
    load(sound())
    variants = [v if v["name"] != "tp2" else {"name": "tp2", "gpus": 4} for v in variants_of()]
    assert errors({"version": 1, "models": [{"name": "llama", "variants": variants}]}) == [
        'models[0].variants[0]: replica "llama-0" holds 2 GPUs of node "gpu-a1",'
        ' but variant "tp2" takes 4 on each node'
    ]


def test_with_replace_only_the_file_counts() -> None:
    load(sound())
    rest = {k: v for k, v in sound().items() if k != "profiles"}
    assert errors(rest, replace=True) == [
        'models[0].default_profile: no profile "chat"',
        'measurements[0].profile: no profile "chat"',
        'targets[0].profile: no profile "chat"',
    ]


def variants_of() -> list[dict[str, Any]]:
    variants: list[dict[str, Any]] = sound()["models"][0]["variants"]
    return variants
