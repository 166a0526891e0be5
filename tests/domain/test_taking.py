"""What one node takes, and what keeps it from taking more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sizing.domain.fleet import Fleet
from sizing.domain.reasons import survey
from sizing.domain.specs import GpuSpec, ModelSpec, NodeSpec, ReplicaSpec, Taint, VariantSpec
from sizing.domain.taking import OneNode, Taking

H100 = "NVIDIA-H100-80GB-HBM3"
TP2 = VariantSpec("tp2", gpus=2)
WIDE = VariantSpec("wide", gpus=2, nodes=2)
LOW = ModelSpec("batch", priority=0, min_replicas=1, variants=(TP2,))
HIGH = ModelSpec("chat", priority=100, variants=(TP2, WIDE))


def gpus(healthy: int = 4, outside: int = 0) -> tuple[GpuSpec, ...]:
    return tuple(GpuSpec(i, H100, 80000, i < healthy, outside) for i in range(4))


def held(name: str, node: str, *indexes: int) -> ReplicaSpec:
    return ReplicaSpec(name, "batch", "tp2", placement=((node, indexes),))


def ask(node: NodeSpec, variant: VariantSpec = TP2, *others: NodeSpec) -> Taking:
    fleet = Fleet.build([node, *others], [LOW, HIGH], [])
    return OneNode(fleet, fleet.hardware.node_number[node.name]).taking(HIGH, variant)


@pytest.mark.parametrize(
    ("node", "code", "say", "fits", "mended"),
    [
        (NodeSpec("a1", gpus()), "open", "takes 2 more", 2, 0),
        (NodeSpec("a1", gpus(), schedulable=False), "node_cordoned", "cordoned", 0, 2),
        (NodeSpec("a1", gpus(), ready=False, stale=True), "node_not_ready", "not ready", 0, 2),
        (NodeSpec("a1", gpus(1)), "gpu_unhealthy", "1 of 4 GPUs is healthy, 2 are needed on one node", 0, 2),
        (
            NodeSpec("a1", gpus(outside=5000)),
            "used_outside",
            "0 of 4 GPUs have room beside what runs outside replicas, 2 are needed on one node",
            0,
            2,
        ),
        (
            NodeSpec("a1", gpus(), taints=(Taint("dedicated", "rag"),)),
            "taint_not_tolerated",
            "taints are not tolerated (dedicated=rag:NoSchedule)",
            0,
            0,
        ),
        (NodeSpec("a1"), "no_gpus", "no GPUs", 0, 0),
    ],
)
def test_a_node_says_what_it_takes_and_what_it_would_if_that_were_mended(
    node: NodeSpec, code: str, say: str, fits: int, mended: int
) -> None:
    found = ask(node)
    assert (found.code, found.say, found.fits, found.mended) == (code, say, fits, mended)


def test_a_variant_over_several_nodes_is_asked_of_the_whole_fleet() -> None:
    node = NodeSpec("b1", gpus())
    assert (ask(node, WIDE).code, ask(node, WIDE).numbers) == ("too_few_nodes", {"nodes": 1, "need": 2})
    with_another = ask(node, WIDE, NodeSpec("a1", gpus()))
    assert (with_another.code, with_another.fits) == ("open", 2)
    cordoned = ask(replace(node, schedulable=False), WIDE, NodeSpec("a1", gpus()))
    assert (cordoned.code, cordoned.mended) == ("node_cordoned", 2)


def test_a_node_asked_alone_says_what_it_says_within_the_fleet() -> None:
    nodes = [
        NodeSpec("a1", gpus(), cpu_millis=4000),
        NodeSpec("a2", gpus(3), labels={"disk": "fast"}),
        NodeSpec("a3", gpus(), pods=1),
    ]
    replicas = [
        held("one", "a1", 0, 1),
        held("two", "a2", 1, 2),
        ReplicaSpec("both", "chat", "wide", placement=(("a1", (2, 3)), ("a3", (0, 1)))),
    ]
    chat = replace(HIGH, variants=(TP2, WIDE, replace(TP2, name="cpu", cpu_millis=3000)))
    chat = replace(chat, variants=(*chat.variants, VariantSpec("fast", node_selector=(("disk", "fast"),))))
    fleet = Fleet.build(nodes, [LOW, chat], replicas)
    for number in range(3):
        for variant in chat.variants:
            within, found = survey(fleet, variant), OneNode(fleet, number).taking(chat, variant)
            assert found.code == within.codes[number]
            assert found.fits == within.fits[number]
            assert found.numbers == within.numbers(number)


def test_minima_that_protect_are_those_of_the_whole_fleet() -> None:
    nodes = [NodeSpec("a1", gpus()), NodeSpec("a2", gpus())]
    here = [held("one", "a1", 0, 1), held("two", "a1", 2, 3)]
    gives = OneNode(Fleet.build(nodes, [LOW, HIGH], here), 0).preemption(HIGH, TP2)
    assert gives == {"gives": 1}
    elsewhere = Fleet.build(nodes, [LOW, HIGH], [*here, held("three", "a2", 0, 1)])
    assert OneNode(elsewhere, 0).preemption(HIGH, TP2) == {"gives": 2}
    assert OneNode(elsewhere, 1).preemption(HIGH, TP2) == {"gives": 1}
    assert OneNode(elsewhere, 0).preemption(LOW, TP2) == "no_lower_priority"
