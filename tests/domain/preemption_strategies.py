"""Small random clusters where others have to give way, on top of the complications of `strategies`.

Up to four nodes of up to four GPUs each, filled with replicas of up to three models beside the one that asks;
at most eight replicas could be stopped, so that every set of them can be tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from hypothesis import strategies as st

from sizing.domain.specs import GpuSpec, ModelSpec, NodeSpec, ReplicaSpec, VariantSpec
from tests.domain.brute_force import free_room
from tests.domain.plain_rules import claim_on, is_whole
from tests.domain.preemption_brute_force import possible_victims
from tests.domain.strategies import (
    NODE_NAMES,
    Claims,
    Flavor,
    flavor,
    node_spec,
    once_in,
    pick,
    place,
    torn,
    variant_spec,
)

LOWEST, HIGHEST = -(2**31), 2**31 - 1
LADDERS = (
    (0, 0, 0),
    (0, 1, 2),
    (0, 0, 1, 100),
    (-1, 0, 1),
    (-7, -5, -5, -4),
    (LOWEST, LOWEST + 1, HIGHEST - 1),
    (2**30, 2**30 + 1, HIGHEST),
)
"""Priorities of the models that may have to give way."""

TIMES = (
    None,
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 2, tzinfo=UTC),
    datetime(2026, 1, 2, 0, 0, 0, 1, tzinfo=UTC),
)
MOST_VICTIMS = 8
STATES = (*["ready"] * 8, *["starting"] * 3, *["failed"] * 3, "draining", "pending")


class Ask(NamedTuple):
    """A fleet, and how many more replicas of a variant are wanted than fit in it as it is."""

    nodes: tuple[NodeSpec, ...]
    models: tuple[ModelSpec, ...]
    replicas: tuple[ReplicaSpec, ...]
    model: ModelSpec
    variant: VariantSpec
    wanted: int


def asking_model(
    draw: st.DrawFn, ladder: Sequence[int], variants: Sequence[VariantSpec], may_be_low: bool = True
) -> ModelSpec:
    above = min(max(ladder) + 1, HIGHEST)
    return ModelSpec(
        "ask",
        priority=pick(draw, *[above] * 6, *ladder) if may_be_low else above,
        preemption_policy="Never" if once_in(draw, 40) else "PreemptLowerPriority",
        min_replicas=pick(draw, 0, 0, 3),
        variants=tuple(variants),
    )


def giving_model(
    draw: st.DrawFn, of: Flavor, name: str, ladder: Sequence[int], spanning: Sequence[bool]
) -> ModelSpec:
    """A model whose replicas may have to go; `spanning` has the chances that a variant spans nodes."""
    over_nodes = of._replace(has=of.has | {"many nodes"})
    one_node = of._replace(has=of.has - {"many nodes"})
    names = pick(draw, ("v",), ("v", "w"))  # variants of different models have the same names
    return ModelSpec(
        name,
        priority=pick(draw, *ladder),
        min_replicas=pick(draw, 0, 0, 0, 1, 1, 2, 3),
        variants=tuple(
            variant_spec(draw, over_nodes if pick(draw, *spanning) else one_node, variant)
            for variant in names
        ),
    )


def own_priority(draw: st.DrawFn, ladder: Sequence[int]) -> int | None:
    """Mostly its model's; else that of another, or one that nobody who asks is above."""
    return pick(draw, *[None] * (3 * len(ladder)), *ladder, HIGHEST)


def running(
    draw: st.DrawFn,
    nodes: Sequence[NodeSpec],
    models: Sequence[ModelSpec],
    most: int,
    ladder: Sequence[int],
) -> list[ReplicaSpec]:
    """Replicas of the models, placed validly one by one until there are enough or no room was found."""
    claims: Claims = {}
    memory = {(node.name, gpu.index): gpu.memory_mib for node in nodes for gpu in node.gpus}
    replicas = []
    for number in range(pick(draw, *range(most // 2, most + 1))):
        model = pick(draw, *models)
        variant = pick(draw, *model.variants)
        state = pick(draw, *STATES)
        placement = torn(draw, place(draw, nodes, claims, variant))
        if placement:
            name = pick(draw, "r", "r", "R", "é") + str(number)
            started = pick(draw, *TIMES)
            places, own = tuple(placement), own_priority(draw, ladder)
            replicas.append(ReplicaSpec(name, model.name, variant.name, state, started, places, own))
        for key in [(name, index) for name, indexes in placement for index in indexes]:
            claims.setdefault(key, []).append(None if is_whole(variant) else claim_on(memory[key], variant))
    return replicas


@st.composite
def asks(
    draw: st.DrawFn,
    always: Sequence[str] = (),
    never: Sequence[str] = (),
    spanning_victims: bool = False,
    most_replicas: int = 12,
) -> Ask:
    """An ask on a cluster that always, or never, has some complications.

    With `spanning_victims` most other replicas span nodes, also where asks do not.
    """
    of = flavor(draw, always, never)
    ladder = pick(draw, *LADDERS)
    names = NODE_NAMES[: pick(draw, 2, 3, 4, 4) if "many nodes" in of.has else pick(draw, 1, 2, 3, 4)]
    nodes = tuple(node_spec(draw, of, name) for name in names)
    model = asking_model(draw, ladder, [variant_spec(draw, of, name) for name in ("v", "w", "x")])
    spanning: tuple[bool, ...] = (False, False, True) if "many nodes" in of.has else (False,)
    if spanning_victims:
        spanning = (True, True, False)
    others = [
        giving_model(draw, of, name, ladder, spanning) for name in ("a", "b", "c")[: pick(draw, 1, 2, 3)]
    ]
    replicas = running(draw, nodes, [*others * 3, model], most_replicas, ladder)
    models = (*others, model)
    fitting = [variant for variant in model.variants if free_room(nodes, models, (), variant)]
    variant = pick(draw, *(fitting or model.variants))
    too_many = possible_victims(nodes, models, replicas, model, variant)[MOST_VICTIMS:]
    left = tuple(replica for replica in replicas if replica not in too_many)
    return Ask(nodes, models, left, model, variant, pick(draw, 1, 1, 2, 2, 3, 5))


@st.composite
def crowded_asks(draw: st.DrawFn) -> Ask:
    """An ask on a cluster full of equal GPUs, where many victims look alike and minima decide."""
    gpus = pick(draw, 2, 4)
    share = pick(draw, None, 4000, 5000)
    nodes = [
        NodeSpec(name, tuple(GpuSpec(index, "L4", 10000) for index in range(gpus)))
        for name in NODE_NAMES[: pick(draw, 2, 3, 4)]
    ]
    ladder = pick(draw, *LADDERS)
    variant = VariantSpec("v", gpus=pick(draw, 1, 1, 2, gpus), gpu_memory_mib=pick(draw, None, share))
    model = asking_model(draw, ladder, [variant], may_be_low=False)
    others = [
        ModelSpec(
            name,
            priority=pick(draw, *ladder),
            min_replicas=pick(draw, 0, 1, 2, 3),
            variants=tuple(
                VariantSpec(variant, gpus=pick(draw, 1, 1, 2), gpu_memory_mib=pick(draw, None, share))
                for variant in ("v", "w")
            ),
        )
        for name in ("a", "b", "c")[: pick(draw, 1, 2, 3)]
    ]
    replicas = running(draw, nodes, others, 14, ladder)
    models = (*others, model)
    too_many = possible_victims(nodes, models, replicas, model, variant)[MOST_VICTIMS + 3 :]
    left = tuple(replica for replica in replicas if replica not in too_many)
    return Ask(tuple(nodes), models, left, model, variant, pick(draw, 1, 2, 3, 4))


@st.composite
def wide_asks(draw: st.DrawFn) -> Ask:
    """An ask on up to sixteen nodes of few kinds, each full of replicas of one node: many equal choices,
    and minima that leave few of them."""
    gpus = pick(draw, 2, 4, 4)
    ladder = pick(draw, *LADDERS)
    names = ("a", "b", "c", "d")[: pick(draw, 2, 3, 4)]
    whole = [VariantSpec(f"v{size}", gpus=size) for size in range(1, gpus + 1)]
    half = VariantSpec("half", gpu_memory_mib=5000)
    plans = [node_plan(draw, names, gpus) for _ in range(pick(draw, 1, 2, 3))]
    nodes: list[NodeSpec] = []
    replicas: list[ReplicaSpec] = []
    for number in range(pick(draw, 2, 6, 9, 12, 16)):
        node = NodeSpec(f"n{number}", tuple(GpuSpec(index, "L4", 10000) for index in range(gpus)))
        nodes.append(node)
        for way, name, indexes in pick(draw, *plans):
            state = pick(draw, "ready", "ready", "ready", "ready", "starting", "failed", "draining")
            own = f"r{len(replicas)}"
            started = pick(draw, *TIMES)
            places, priority = ((node.name, indexes),), own_priority(draw, ladder)
            replicas.append(ReplicaSpec(own, name, way, state, started, places, priority))
    others = []
    for name in names:
        serving = [one for one in replicas if one.model == name and one.state in ("starting", "ready")]
        minimum = max(len(serving) - pick(draw, 0, 1, 2, 2, 3, 5, 99), 0)
        others.append(ModelSpec(name, pick(draw, *ladder), min_replicas=minimum, variants=(*whole, half)))
    variant = pick(draw, *whole, half)
    model = asking_model(draw, ladder, [variant], may_be_low=False)
    wanted = pick(draw, 1, 2, 4, 7, 10, 15)
    return Ask(tuple(nodes), (*others, model), tuple(replicas), model, variant, wanted)


def node_plan(draw: st.DrawFn, names: Sequence[str], gpus: int) -> list[tuple[str, str, tuple[int, ...]]]:
    """What runs on nodes of a kind: variant, model and GPU indexes. At most one GPU is shared or free."""
    plan: list[tuple[str, str, tuple[int, ...]]] = []
    first = pick(draw, 0, 0, 1)
    if first and once_in(draw, 2):
        plan += [("half", pick(draw, *names), (0,)) for _ in range(2)]
    while first < gpus:
        size = pick(draw, *range(1, gpus - first + 1))
        plan.append((f"v{size}", pick(draw, *names), tuple(range(first, first + size))))
        first += size
    return plan
