"""Free room, uncached, beside a plain Python loop over the same cluster.

Run: python -m benchmarks.room
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter

from benchmarks.fleets import shared_fleet
from sizing.domain.fleet import Fleet
from sizing.domain.placement import room
from sizing.domain.specs import ModelSpec, NodeSpec, ReplicaSpec, VariantSpec

RUNS = 20
HALF_GPU_MIB = 40_000


def plain_room(
    nodes: list[NodeSpec], models: list[ModelSpec], replicas: list[ReplicaSpec], variant: VariantSpec
) -> Callable[[], int]:
    """The same question by a loop over nodes and GPUs; what replicas hold is summed beforehand."""
    variants = {v.name: v for v in models[0].variants}
    claimed: dict[tuple[str, int], int] = {}
    for replica in replicas:
        for node_name, indexes in replica.placement:
            for index in indexes:
                size = variants[replica.variant].gpu_memory_mib
                key = (node_name, index)
                claimed[key] = claimed.get(key, 0) + (size if size is not None else 10**9)

    def loop() -> int:
        total = 0
        for node in nodes:
            if not (node.ready and node.schedulable and not node.stale):
                continue
            slots = []
            for gpu in node.gpus:
                if not gpu.healthy or gpu.memory_mib is None:
                    continue
                held = claimed.get((node.name, gpu.index), 0)
                if variant.gpu_memory_mib is None:
                    slots.append(1 if held == 0 else 0)
                else:
                    free = max(gpu.memory_mib - held - gpu.used_outside_mib, 0)
                    slots.append(free // variant.gpu_memory_mib)
            rounds = sum(slots) // variant.gpus
            while sum(min(s, rounds) for s in slots) < variant.gpus * rounds:
                rounds -= 1
            total += rounds
        return total

    return loop


def median_room(fleet: Fleet, replicas: list[ReplicaSpec], ask: VariantSpec) -> tuple[float, int]:
    """Median milliseconds of the room of fleets in which a replica just stopped and started again."""
    times = []
    value = 0
    room(fleet, ask)
    for replica in replicas[:RUNS]:
        changed = fleet.with_replicas(removed=[replica.name]).with_replicas(added=[replica])
        begin = perf_counter()
        value = room(changed, ask)
        times.append((perf_counter() - begin) * 1000)
    return median(times), value


def milliseconds(call: Callable[[], int], runs: int) -> tuple[float, int]:
    """Median milliseconds of a call and its value."""
    times = []
    value = 0
    for _ in range(runs):
        begin = perf_counter()
        value = call()
        times.append((perf_counter() - begin) * 1000)
    return median(times), value


def main() -> None:
    asks = [VariantSpec(f"whole x {g}", gpus=g) for g in (1, 4, 8)]
    asks += [VariantSpec(f"half x {g}", gpus=g, gpu_memory_mib=HALF_GPU_MIB) for g in (1, 4, 8)]
    clusters = {count: shared_fleet(count) for count in (1_000, 10_000)}
    fleets = {count: Fleet.build(*cluster) for count, cluster in clusters.items()}
    heads = f"{'1,000 nodes':>14}{'10,000 nodes':>14}{'growth':>9}{'plain loop':>13}{'ratio':>9}"
    print(f"{'ask':<12}{'room':>9}{heads}")
    for ask in asks:
        took = {}
        value = 0
        for count, fleet in fleets.items():
            took[count], value = median_room(fleet, clusters[count][2], ask)
        plain, expected = milliseconds(plain_room(*clusters[10_000], ask), 3)
        assert value == expected, (ask.name, value, expected)
        print(
            f"{ask.name:<12}{value:>9,}{took[1_000]:>11.3f} ms{took[10_000]:>11.3f} ms"
            f"{took[10_000] / took[1_000]:>8.1f}x{plain:>10.1f} ms{plain / took[10_000]:>8.0f}x"
        )


if __name__ == "__main__":
    main()
