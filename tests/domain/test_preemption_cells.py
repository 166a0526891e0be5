"""Clusters too large to try every set of victims: the program of classes against one with a column for each
victim, and what is said where the work that it may cost is too little for a proof."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

import pytest

from sizing.domain.fleet import Fleet
from sizing.domain.placement import room
from sizing.domain.preemption import preempt
from sizing.domain.preemption.field import field_of
from sizing.domain.preemption.search import Proof, Search
from sizing.domain.specs import GpuSpec, ModelSpec, NodeSpec, ReplicaSpec, VariantSpec

MEMORY_MIB = 80_000
VARIANTS = (
    VariantSpec("whole", cpu_millis=1000),
    VariantSpec("whole two", gpus=2, cpu_millis=1000),
    VariantSpec("whole four", gpus=4, cpu_millis=2000),
    VariantSpec("pair", nodes=2),
    VariantSpec("quarter", gpu_memory_mib=20_000, cpu_millis=1000),
    VariantSpec("half", gpu_memory_mib=40_000),
    VariantSpec("half two", gpus=2, gpu_memory_fraction=Decimal("0.5")),
)
WHOLE_ONLY = 3
PRIORITIES = ((0, 1, 2, 7), (-5, 0, 3, 10**9, 2 * 10**9, -2 * 10**9))
START = datetime(2026, 1, 1, tzinfo=UTC)


class Crowd(NamedTuple):
    """A cluster of up to twenty nodes, and what is asked of it."""

    nodes: list[NodeSpec]
    models: list[ModelSpec]
    replicas: list[ReplicaSpec]
    asking: ModelSpec
    wanted: int

    @property
    def fleet(self) -> Fleet:
        return Fleet.build(self.nodes, self.models, self.replicas)

    @property
    def variant(self) -> VariantSpec:
        return self.asking.variants[0]

    def gain(self, stopped: Iterable[str]) -> int:
        left = room(self.fleet.with_replicas(removed=stopped), self.variant)
        return min(left - room(self.fleet, self.variant), self.wanted)

    def key(self, victims: Iterable[ReplicaSpec]) -> tuple[int | None, int, int]:
        priority = {m.name: m.priority for m in self.models}
        found = [priority[victim.model] for victim in victims]
        return max(found, default=None), len(found), sum(found)

    def search(self, work: int, apart: bool = False) -> tuple[list[ReplicaSpec], Proof]:
        search = Search(field_of(self.fleet, self.asking, self.variant), self.wanted, work, apart)
        chosen, proof = search.run()
        assert not search.broken(chosen).any()
        return [search.field.ledger.held[victim].spec for victim in chosen], proof


def crowd(seed: int) -> Crowd:
    chance = random.Random(seed)
    gpus = chance.choice((2, 4, 8, 8))
    shared, hosts, types = (chance.random() < likely for likely in (0.5, 0.25, 0.2))
    nodes = [
        NodeSpec(
            f"node-{number:02}",
            tuple(
                GpuSpec(
                    index,
                    chance.choice("AB") if types and index >= gpus // 2 else "A",
                    MEMORY_MIB,
                    healthy=chance.random() > 0.03,
                    used_outside_mib=chance.choice((1000, 2000, 30_000)) if chance.random() < 0.05 else 0,
                )
                for index in range(gpus)
            ),
            schedulable=chance.random() > 0.05,
            labels={"rack": f"rack-{number % 3}"},
            cpu_millis=chance.choice((8000, 16_000)) if hosts else None,
            pods=chance.choice((None, 3, 6)) if hosts else None,
        )
        for number in range(chance.choice((3, 8, 20)))
    ]
    names = [f"model-{number}" for number in range(chance.choice((2, 5, 9)))]
    replicas = running(chance, nodes, names, VARIANTS if shared else VARIANTS[: WHOLE_ONLY + 1])
    serving = Counter(r.model for r in replicas if r.state in ("starting", "ready"))
    priorities = chance.choice(PRIORITIES)
    loses = chance.choice((1, 3, 8, 100))
    models = [
        ModelSpec(
            name,
            chance.choice(priorities),
            min_replicas=max(serving[name] - chance.randint(0, loses), 0),
            variants=VARIANTS,
        )
        for name in names
    ]
    spans = chance.choice((1, 1, 1, 2, 3))
    asked = VariantSpec(
        "asked",
        gpus=chance.choice((1, 2, 3, 4, gpus)),
        nodes=spans,
        topology_key=chance.choice((None, "rack")) if spans > 1 else None,
        gpu_memory_mib=chance.choice((None, None, 30_000, 41_000) if shared else (None, None, 41_000)),
        gpu_types=chance.choice(((), ("A",))),
        cpu_millis=chance.choice((0, 2000)),
    )
    asking = ModelSpec("asking", chance.choice((5, 2**31 - 1)), variants=(asked,))
    return Crowd(nodes, [*models, asking], replicas, asking, chance.choice((1, 2, 5, 30)))


def running(
    chance: random.Random, nodes: list[NodeSpec], names: list[str], variants: tuple[VariantSpec, ...]
) -> list[ReplicaSpec]:
    """Replicas whose claims fit, with GPUs next to each other or not."""
    held: Counter[tuple[str, int]] = Counter()
    replicas: list[ReplicaSpec] = []
    for number, node in enumerate(nodes):
        for _ in range(chance.choice((1, 4, 12, 20))):
            variant = chance.choice(variants)
            fraction = variant.gpu_memory_fraction
            size = MEMORY_MIB // 2 if fraction else variant.gpu_memory_mib or MEMORY_MIB
            placement = []
            for where in (node, nodes[number - 1])[: variant.nodes]:
                able = [g.index for g in where.gpus if held[where.name, g.index] + size <= MEMORY_MIB]
                if len(able) >= variant.gpus:
                    together = chance.random() < 0.7
                    on = able[: variant.gpus] if together else chance.sample(able, variant.gpus)
                    placement.append((where.name, tuple(sorted(on))))
            if len(placement) < variant.nodes:
                continue
            held.update({(where, index): size for where, on in placement for index in on})
            started = START + timedelta(seconds=chance.randrange(50)) if chance.random() < 0.9 else None
            state = chance.choice(("ready",) * 8 + ("starting", "failed", "draining"))
            replicas.append(
                ReplicaSpec(
                    f"replica-{len(replicas):03}",
                    chance.choice(names),
                    variant.name,
                    state,
                    started,
                    tuple(placement),
                )
            )
    return replicas


@pytest.mark.parametrize("block", range(8))
def test_classes_of_cells_find_what_a_column_for_each_victim_finds(block: int) -> None:
    for seed in range(block * 15, block * 15 + 15):
        asked = crowd(seed)
        found = preempt(asked.fleet, asked.asking, asked.variant, asked.wanted)
        others, proof = asked.search(10**9, apart=True)
        assert found.optimal, seed
        assert proof.complete, seed
        assert found.gives == proof.gives == asked.gain(v.name for v in others), seed
        assert asked.key(found.victims) == asked.key(others), seed


@pytest.mark.parametrize("block", range(4))
def test_nobody_is_named_who_could_be_spared_and_rows_may_come_in_any_order(block: int) -> None:
    for seed in range(1000 + block * 10, 1000 + block * 10 + 10):
        asked = crowd(seed)
        found = preempt(asked.fleet, asked.asking, asked.variant, asked.wanted)
        names = [victim.name for victim in found.victims]
        assert names == sorted(names)
        for name in names:
            assert asked.gain(set(names) - {name}) < found.gives, (seed, name)
        for rows in (asked.nodes, asked.models, asked.replicas):
            random.Random(seed).shuffle(rows)
        assert preempt(asked.fleet, asked.asking, asked.variant, asked.wanted) == found, seed


@pytest.mark.parametrize("work", [0, 2_000, 50_000, 400_000])
def test_with_too_little_work_the_answer_is_valid_and_says_what_is_proven(work: int) -> None:
    for seed in range(2000, 2025):
        asked = crowd(seed)
        best = preempt(asked.fleet, asked.asking, asked.variant, asked.wanted)
        highest, fewest, _ = asked.key(best.victims)
        victims, proof = asked.search(work)
        names = {victim.name for victim in victims}
        gives = asked.gain(names) if names else 0
        if proof.complete:
            assert (gives, asked.key(victims)) == (best.gives, asked.key(best.victims)), seed
        assert proof.gives >= best.gives >= gives, seed
        if gives == best.gives and highest is not None:
            assert proof.priority is None or proof.priority <= highest, seed
            same = asked.key(victims)[0] == highest
            assert proof.victims is None or not same or proof.victims <= fewest, seed
        for name in names:
            assert asked.gain(names - {name}) < gives, (seed, name)
        again, proof_again = asked.search(work)
        assert (again, proof_again) == (victims, proof), seed


def test_priorities_far_apart_are_summed_exactly() -> None:
    priorities = (-(2**31), -(2**31) + 1, 2**31 - 3)
    models = [ModelSpec(f"model-{p}", p, variants=VARIANTS) for p in priorities]
    pairs = [(2, 0), (2, 1)] * 12
    nodes = [NodeSpec(f"node-{n:02}", (GpuSpec(0, "A", 1), GpuSpec(1, "A", 1))) for n in range(len(pairs))]
    replicas = [
        ReplicaSpec(f"r-{n}-{gpu}", models[which].name, "whole", placement=((nodes[n].name, (gpu,)),))
        for n, pair in enumerate(pairs)
        for gpu, which in enumerate(pair)
    ]
    asking = ModelSpec("asking", 2**31 - 1, variants=(VariantSpec("two", gpus=2),))
    fleet = Fleet.build(nodes, [*models, asking], replicas)
    found = preempt(fleet, asking, asking.variants[0], 14)
    assert found.optimal
    assert Counter(victim.model for victim in found.victims) == {
        models[2].name: 14,
        models[0].name: 12,
        models[1].name: 2,
    }


def test_a_victim_is_stopped_once_though_a_minimum_was_written_down_late() -> None:
    """Models alike in all but their minimum share a class first; the tight one must still be kept."""
    tight = ModelSpec("tight", min_replicas=3, variants=VARIANTS)
    loose = replace(tight, name="loose", min_replicas=0)
    nodes = [NodeSpec(f"node-{n}", (GpuSpec(0, "A", 1), GpuSpec(1, "A", 1))) for n in range(4)]
    replicas = [
        ReplicaSpec(f"{m.name}-{n}", m.name, "whole", placement=((nodes[n].name, (gpu,)),))
        for n in range(4)
        for gpu, m in enumerate((tight, loose))
    ]
    asking = ModelSpec("asking", 1, variants=(VariantSpec("two", gpus=2),))
    found = preempt(Fleet.build(nodes, [tight, loose, asking], replicas), asking, asking.variants[0], 2)
    assert (found.gives, found.optimal, found.reasons) == (1, True, ("protected_by_minimum",))
    assert [victim.name for victim in found.victims] == ["loose-0", "tight-0"]
