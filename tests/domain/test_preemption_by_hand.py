"""Who gives way, on cases worked out by hand: the yardstick and the product answer each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from sizing.domain.fleet import Fleet
from sizing.domain.preemption import preempt
from sizing.domain.specs import GpuSpec, ModelSpec, NodeSpec, ReplicaSpec, Taint, VariantSpec
from tests.domain import preemption_brute_force

VARIANTS = (
    VariantSpec("one"),
    VariantSpec("two", gpus=2),
    VariantSpec("four", gpus=4),
    VariantSpec("half", gpu_memory_fraction=Decimal("0.5")),
    VariantSpec("pair", nodes=2),
    VariantSpec("pair in a zone", nodes=2, topology_key="zone"),
    VariantSpec("slice", gpu_types=("SLICE",)),
    VariantSpec("thirsty", gpu_memory_mib=1000, cpu_millis=3000, memory_mib=3000),
)

Search = Callable[..., tuple[int, list[str]]]


def node(name: str, gpus: int = 1, *, outside: int = 0, healthy: bool = True, **more: object) -> NodeSpec:
    cards = tuple(GpuSpec(i, "A100", 80000, healthy=healthy, used_outside_mib=outside) for i in range(gpus))
    return NodeSpec(name, cards, **more)  # type: ignore[arg-type]


def model(name: str, priority: int = 0, minimum: int = 0, policy: str = "PreemptLowerPriority") -> ModelSpec:
    return ModelSpec(name, priority, policy, minimum, variants=VARIANTS)


def replica(
    name: str,
    *places: tuple[str, Sequence[int]],
    of: str = "low",
    variant: str = "one",
    state: str = "ready",
    day: int | None = None,
) -> ReplicaSpec:
    started = None if day is None else datetime(2026, 1, day, tzinfo=UTC)
    return ReplicaSpec(name, of, variant, state, started, tuple((where, tuple(on)) for where, on in places))


ASKING = model("high", 10)
LOW = model("low")


@pytest.fixture(params=["the yardstick", "the product"])
def stops(request: pytest.FixtureRequest) -> Search:
    """How many more replicas there would be, and who gives way, by name."""

    def search(
        variant: str,
        wanted: int,
        nodes: Sequence[NodeSpec],
        replicas: Sequence[ReplicaSpec],
        *models: ModelSpec,
        asking: ModelSpec = ASKING,
    ) -> tuple[int, list[str]]:
        everything = [*(models or [LOW]), asking]
        asked = asking.variant(variant)
        if request.param == "the yardstick":
            found = preemption_brute_force.best(nodes, everything, replicas, asking, asked, wanted)
            return found.gain, sorted(found.preferred)
        result = preempt(Fleet.build(nodes, everything, replicas), asking, asked, wanted)
        return result.gives, sorted(victim.name for victim in result.victims)

    return search


# ---------------------------------------------------------------- who may be stopped


def test_a_replica_of_lower_priority_gives_way(stops: Search) -> None:
    assert stops("one", 1, [node("n")], [replica("r", ("n", [0]))]) == (1, ["r"])


@pytest.mark.parametrize("priority", [10, 11, 2**31 - 1])
def test_equal_and_higher_priority_stay(stops: Search, priority: int) -> None:
    assert stops("one", 1, [node("n")], [replica("r", ("n", [0]))], model("low", priority)) == (0, [])


def test_a_model_never_stops_its_own_replicas(stops: Search) -> None:
    own = replica("r", ("n", [0]), of="high", state="failed")
    assert stops("one", 1, [node("n")], [own]) == (0, [])


def test_a_model_that_never_preempts_stops_nobody(stops: Search) -> None:
    never = model("high", 10, policy="Never")
    assert stops("one", 1, [node("n")], [replica("r", ("n", [0]))], asking=never) == (0, [])


def test_a_victim_that_never_preempts_itself_may_still_be_stopped(stops: Search) -> None:
    modest = model("low", policy="Never")
    assert stops("one", 1, [node("n")], [replica("r", ("n", [0]))], modest) == (1, ["r"])


@pytest.mark.parametrize(("state", "gives"), [("starting", 1), ("ready", 1), ("failed", 1), ("draining", 0)])
def test_the_state_says_who_may_be_stopped(stops: Search, state: str, gives: int) -> None:
    found = stops("one", 1, [node("n")], [replica("r", ("n", [0]), state=state)])
    assert found == (gives, ["r"] * gives)


def test_a_pending_replica_holds_nothing_that_it_could_give(stops: Search) -> None:
    running = [replica("r", ("n", [0])), replica("waits", state="pending")]
    assert stops("one", 2, [node("n")], running) == (1, ["r"])


@pytest.mark.parametrize(
    "closed",
    [{"ready": False}, {"schedulable": False}, {"stale": True}, {"taints": (Taint("maintenance"),)}],
)
def test_nobody_on_a_closed_node_is_stopped(stops: Search, closed: dict[str, object]) -> None:
    assert stops("one", 1, [node("n", **closed)], [replica("r", ("n", [0]))]) == (0, [])  # type: ignore[arg-type]


def test_a_victim_over_several_nodes_must_be_on_open_ones_only(stops: Search) -> None:
    spanning = replica("r", ("n", [0]), ("m", [0]), variant="pair")
    assert stops("one", 1, [node("n"), node("m", schedulable=False)], [spanning]) == (0, [])
    assert stops("one", 1, [node("n"), node("m")], [spanning]) == (1, ["r"])


def test_a_node_without_the_label_of_the_topology_key_is_closed(stops: Search) -> None:
    running = [replica("r", ("n", [0])), replica("s", ("m", [0]))]
    assert stops("pair in a zone", 1, [node("n"), node("m", labels={"zone": "x"})], running) == (0, [])


# ---------------------------------------------------------------- minima


def test_a_model_keeps_its_minimum_over_all_nodes(stops: Search) -> None:
    nodes = [node("n"), node("m"), node("o")]
    running = [replica(f"r{i}", (where.name, [0])) for i, where in enumerate(nodes)]
    assert stops("one", 3, nodes, running, model("low", minimum=1)) == (2, ["r0", "r1"])
    assert stops("one", 3, nodes, running, model("low", minimum=3)) == (0, [])


def test_a_failed_victim_does_not_count_against_the_minimum(stops: Search) -> None:
    running = [replica("f", ("n", [0]), state="failed"), replica("r", ("n", [1]))]
    assert stops("one", 2, [node("n", 2)], running, model("low", minimum=1)) == (1, ["f"])


def test_a_draining_replica_does_not_keep_up_a_minimum(stops: Search) -> None:
    running = [replica("d", ("n", [0]), state="draining"), replica("r", ("n", [1]))]
    assert stops("one", 1, [node("n", 2)], running, model("low", minimum=1)) == (0, [])


def test_replicas_on_closed_nodes_keep_up_a_minimum(stops: Search) -> None:
    running = [replica("far", ("m", [0])), replica("r", ("n", [0]), state="starting")]
    nodes = [node("n"), node("m", ready=False)]
    assert stops("one", 1, nodes, running, model("low", minimum=1)) == (1, ["r"])


def test_a_model_below_its_minimum_loses_only_failed_replicas(stops: Search) -> None:
    running = [replica("f", ("n", [0]), state="failed"), replica("r", ("n", [1]))]
    assert stops("one", 2, [node("n", 2)], running, model("low", minimum=5)) == (1, ["f"])


def test_the_minimum_of_the_asking_model_protects_nobody(stops: Search) -> None:
    asking = model("high", 10, minimum=5)
    assert stops("one", 1, [node("n")], [replica("r", ("n", [0]))], asking=asking) == (1, ["r"])


# ---------------------------------------------------------------- which of them


def test_first_as_many_as_can_be_had(stops: Search) -> None:
    models = model("low"), model("mid", 5)
    running = [replica("l", ("n", [0])), replica("m", ("n", [1]), of="mid")]
    assert stops("one", 1, [node("n", 2)], running, *models) == (1, ["l"])
    assert stops("one", 2, [node("n", 2)], running, *models) == (2, ["l", "m"])
    assert stops("one", 3, [node("n", 2)], running, *models) == (2, ["l", "m"])


def test_many_of_low_priority_before_one_of_higher(stops: Search) -> None:
    running = [replica(f"l{i}", ("n", [i])) for i in range(4)]
    running.append(replica("m", ("o", range(4)), of="mid", variant="four"))
    found = stops("four", 1, [node("n", 4), node("o", 4)], running, LOW, model("mid", 1))
    assert found == (1, ["l0", "l1", "l2", "l3"])


def test_the_fewest_of_equal_priority_even_where_it_is_negative(stops: Search) -> None:
    running = [replica(f"l{i}", ("n", [i])) for i in range(4)]
    running.append(replica("big", ("o", range(4)), variant="four"))
    found = stops("four", 1, [node("n", 4), node("o", 4)], running, model("low", -1000))
    assert found == (1, ["big"])


def test_the_fewest_before_the_lowest_sum(stops: Search) -> None:
    models = model("low", -1000), model("mid", 5)
    running = [
        replica("m0", ("n", [0]), of="mid"),
        replica("l", ("n", [1])),
        replica("m1", ("o", [0, 1]), of="mid", variant="two"),
    ]
    assert stops("two", 1, [node("n", 2), node("o", 2)], running, *models) == (1, ["m1"])


def test_last_the_lowest_sum(stops: Search) -> None:
    models = LOW, model("some", 2**31 - 4), model("mid", 2**31 - 3)
    running = [
        replica("m0", ("n", [0]), of="mid"),
        replica("s", ("n", [1]), of="some"),
        replica("m1", ("o", [0]), of="mid"),
        replica("l", ("o", [1])),
    ]
    asking = model("high", 2**31 - 1)
    found = stops("two", 1, [node("n", 2), node("o", 2)], running, *models, asking=asking)
    assert found == (1, ["l", "m1"])


def test_one_victim_that_frees_two_places_before_two_that_free_one_each(stops: Search) -> None:
    running = [replica("big", ("n", range(4)), variant="four")]
    running += [replica(f"t{i}", (f"o{i}", [0, 1]), variant="two", day=9) for i in range(2)]
    nodes = [node("n", 4), node("o0", 2), node("o1", 2)]
    assert stops("two", 2, nodes, running) == (2, ["big"])


def test_a_half_freed_node_gives_nothing_so_nobody_there_is_stopped(stops: Search) -> None:
    running = [replica("l", ("n", [0])), replica("kept", ("n", [1]), of="top")]
    assert stops("two", 1, [node("n", 2)], running, LOW, model("top", 10)) == (0, [])


def test_what_is_free_already_counts(stops: Search) -> None:
    running = [replica("l0", ("n", [0])), replica("l1", ("o", [0])), replica("l2", ("o", [1]))]
    nodes = [node("n", 2), node("o", 2)]
    assert stops("two", 1, nodes, running) == (1, ["l0"])


def test_the_later_started_goes_and_one_without_a_time_is_the_oldest(stops: Search) -> None:
    running = [replica("a", ("n", [0]), day=1), replica("b", ("n", [1]), day=2), replica("c", ("n", [2]))]
    assert stops("one", 1, [node("n", 3)], running) == (1, ["b"])
    assert stops("one", 2, [node("n", 3)], running) == (2, ["a", "b"])


@pytest.mark.parametrize("day", [None, 3])
def test_of_equal_times_the_name_that_is_less_by_code_point_goes(stops: Search, day: int | None) -> None:
    names = ["é", "r9", "r10", "R"]
    running = [replica(name, ("n", [i]), day=day) for i, name in enumerate(names)]
    assert stops("one", 1, [node("n", 4)], running) == (1, ["R"])
    assert stops("one", 2, [node("n", 4)], running) == (2, ["R", "r10"])


def test_age_never_outweighs_priority(stops: Search) -> None:
    running = [replica("l", ("n", [0])), replica("m", ("n", [1]), of="mid", day=9)]
    assert stops("one", 1, [node("n", 2)], running, LOW, model("mid", 1)) == (1, ["l"])


# ---------------------------------------------------------------- what victims give back


def test_a_shared_gpu_is_whole_again_when_all_on_it_are_gone(stops: Search) -> None:
    running = [replica("a", ("n", [0]), variant="half"), replica("b", ("n", [0]), variant="half")]
    assert stops("one", 1, [node("n")], running) == (1, ["a", "b"])
    assert stops("half", 1, [node("n")], running) == (1, ["a"])
    assert stops("half", 2, [node("n")], running) == (2, ["a", "b"])


def test_memory_of_different_gpus_is_never_added_up(stops: Search) -> None:
    running = [
        replica(f"{where}{i}", (where, [0]), variant="half", of=of)
        for where in "nm"
        for i, of in enumerate(["low", "top"])
    ]
    found = stops("one", 1, [node("n"), node("m")], running, LOW, model("top", 10))
    assert found == (0, [])


def test_an_unhealthy_gpu_and_one_used_outside_give_nothing(stops: Search) -> None:
    held = [replica("r", ("n", [0]))]
    assert stops("one", 1, [node("n", healthy=False)], held) == (0, [])
    assert stops("one", 1, [node("n", outside=1025)], held) == (0, [])
    assert stops("one", 1, [node("n", outside=1024)], held) == (1, ["r"])


def test_a_slice_is_given_only_to_who_names_its_type(stops: Search) -> None:
    slices = NodeSpec("n", (GpuSpec(0, "NVIDIA-Slice", 10000, partition=True),))
    running = [replica("r", ("n", [0]), variant="slice")]
    assert stops("slice", 1, [slices], running) == (1, ["r"])
    assert stops("one", 1, [slices], running) == (0, [])


def test_a_victim_over_two_nodes_counts_once_and_frees_both(stops: Search) -> None:
    nodes = [node("n"), node("m"), node("o")]
    running = [replica("s", ("n", [0]), ("m", [0]), variant="pair"), replica("r", ("o", [0]), day=9)]
    assert stops("one", 2, nodes, running) == (2, ["s"])
    assert stops("one", 3, nodes, running) == (3, ["r", "s"])


def test_an_ask_over_two_nodes_needs_both_in_one_zone(stops: Search) -> None:
    zones = {"n": "x", "m": "y", "o": "y"}
    nodes = [node(name, labels={"zone": zone}) for name, zone in zones.items()]
    running = [replica(name, (name, [0]), day=9 if name == "n" else 1) for name in zones]
    assert stops("pair", 1, nodes, running) == (1, ["m", "n"])
    assert stops("pair in a zone", 1, nodes, running) == (1, ["m", "o"])
    assert stops("pair in a zone", 2, nodes, running) == (1, ["m", "o"])


def test_host_cpu_memory_and_pods_are_given_back(stops: Search) -> None:
    running = [replica("t", ("n", [0]), variant="thirsty"), replica("r", ("n", [1]), day=9)]
    for limit in ({"cpu_millis": 4000}, {"memory_mib": 3000}):
        assert stops("thirsty", 1, [node("n", 3, **limit)], running) == (1, ["t"])  # type: ignore[arg-type]
    assert stops("thirsty", 1, [node("n", 3, pods=2)], running) == (1, ["r"])
