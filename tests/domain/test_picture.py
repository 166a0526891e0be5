"""A node as people look at it."""

from __future__ import annotations

from decimal import Decimal

from sizing.domain.fleet import Fleet
from sizing.domain.picture import NodePicture, node_picture
from sizing.domain.specs import GpuSpec, ModelSpec, NodeSpec, ReplicaSpec, VariantSpec

H100, L40S = "NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S"
MODEL = ModelSpec(
    "llama",
    variants=(
        VariantSpec("tp2", gpus=2),
        VariantSpec("third", gpu_memory_fraction=Decimal("0.33")),
        VariantSpec("wide", gpus=1, nodes=2),
    ),
)


def replica(
    name: str, variant: str, *placement: tuple[str, tuple[int, ...]], state: str = "ready"
) -> ReplicaSpec:
    return ReplicaSpec(name, "llama", variant, state, placement=placement)


def picture(nodes: list[NodeSpec], replicas: list[ReplicaSpec], name: str) -> NodePicture:
    fleet = Fleet.build(nodes, [MODEL], replicas)
    return node_picture(fleet, fleet.hardware.node_number[name])


def gpus(count: int) -> tuple[GpuSpec, ...]:
    return tuple(GpuSpec(index, H100, 80000) for index in range(count))


def test_each_gpu_has_its_holders_with_their_claims() -> None:
    node = NodeSpec("a1", gpus(4), labels={"topology.kubernetes.io/zone": "eu-1a"})
    shown = picture(
        [node, NodeSpec("b1", gpus(1))],
        [
            replica("pair", "tp2", ("a1", (0, 1))),
            replica("one", "third", ("a1", (2,)), state="draining"),
            replica("two", "third", ("a1", (2,))),
            replica("over-both", "wide", ("a1", (3,)), ("b1", (0,))),
        ],
        "a1",
    )
    held = [[(h.replica.name, h.claim_mib) for h in gpu.holders] for gpu in shown.gpus]
    assert held == [
        [("pair", 80000)],
        [("pair", 80000)],
        [("one", 26400), ("two", 26400)],
        [("over-both", 80000)],
    ]
    assert [gpu.free_mib for gpu in shown.gpus] == [0, 0, 27200, 0]
    assert (shown.name, shown.zone, shown.closed) == ("a1", "eu-1a", ())


def test_gpus_stand_by_index_though_the_fleet_orders_them_by_type() -> None:
    node = NodeSpec(
        "a1",
        (GpuSpec(0, L40S, 46068), GpuSpec(1, H100, 80000), GpuSpec(2, L40S, 46068, used_outside_mib=2000)),
    )
    shown = picture([node], [replica("one", "third", ("a1", (1,)))], "a1")
    assert [(gpu.index, gpu.type, gpu.free_mib, gpu.whole, len(gpu.holders)) for gpu in shown.gpus] == [
        (0, L40S, 46068, True, 0),
        (1, H100, 53600, False, 1),
        (2, L40S, 44068, False, 0),
    ]


def test_a_pending_replica_holds_nothing_and_unknown_memory_has_no_claim() -> None:
    node = NodeSpec("a1", (GpuSpec(0, H100, None), GpuSpec(1, H100, None), GpuSpec(2, H100, 80000)))
    shown = picture(
        [node],
        [replica("pair", "tp2", ("a1", (0, 1))), replica("later", "third", ("a1", (2,)), state="pending")],
        "a1",
    )
    assert [[h.claim_mib for h in gpu.holders] for gpu in shown.gpus] == [[None], [None], []]
    assert [gpu.free_is_known for gpu in shown.gpus] == [True, True, True]
    assert [gpu.free_is_known for gpu in picture([node], [], "a1").gpus] == [False, False, True]
    assert [(gpu.free_mib, gpu.whole) for gpu in shown.gpus] == [(0, False), (0, False), (80000, True)]


def test_what_keeps_a_node_closed_is_said_in_words() -> None:
    node = NodeSpec("a1", gpus(1), ready=False, schedulable=False, stale=True)
    assert picture([node], [], "a1").closed == ("not ready", "cordoned", "stale")
