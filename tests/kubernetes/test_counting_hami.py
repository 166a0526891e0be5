"""HAMi: cards offered many times over, with the scheduler's books in annotations."""

from __future__ import annotations

import json
from decimal import Decimal

from sizing.inventory.kubernetes.counted import Need
from sizing.inventory.kubernetes.facts import ContainerFacts, NodeFacts, PodFacts
from tests.kubernetes.parts import GPU, counted, counted_node, node, pod

TEXT = "".join(
    f"GPU-{n},10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,{'false' if n == 3 else 'true'}:" for n in range(4)
)


def hami(register: str = TEXT, allocatable: int = 30) -> NodeFacts:
    return node({GPU: 40}, {}, {GPU: allocatable}, annotations={"hami.io/node-nvidia-register": register})


def given(devices: str, count: int = 1, name: str = "p1") -> PodFacts:
    return pod({GPU: count}, name=name, annotations={"hami.io/vgpu-devices-allocated": devices})


def test_the_devices_are_the_cards_and_not_the_slots() -> None:
    found = counted_node(hami())
    assert (found.type, found.memory_mib, found.physical) == ("Tesla-V100-PCIE-32GB", 32768, 4)
    assert (found.resources[GPU].capacity, found.resources[GPU].allocatable) == (40, 30)
    assert found.details["sharing"] == {"strategy": "hami", "splits_per_gpu": 10}
    assert (found.details["unhealthy"], found.details["whole_devices_free"]) == (1, 3)
    pool = found.pools[0]
    assert [(d.name, d.memory_mib, d.healthy, d.partition) for d in pool.devices] == [
        ("GPU-0", 32768, True, False),
        ("GPU-1", 32768, True, False),
        ("GPU-2", 32768, True, False),
        ("GPU-3", 32768, False, False),
    ]
    assert pool.withdrawn == 0


def test_a_pod_without_a_memory_share_takes_whole_cards() -> None:
    found = counted(hami(), given("GPU-0,NVIDIA,32768,0:GPU-1,NVIDIA,32768,0:;", 2))
    assert found.needs["llm/p1"] == [Need(GPU, 2, names=("GPU-0", "GPU-1"))]
    assert found.nodes["n1"].resources[GPU].used == 2
    assert found.nodes["n1"].details["whole_devices_free"] == 1


def test_a_pod_holds_the_memory_of_the_cards_that_its_annotation_names() -> None:
    found = counted(
        hami(),
        given("GPU-0,NVIDIA,8000,30:;GPU-1,NVIDIA,8000,30:;", 2),
        given("GPU-0,NVIDIA,20000,30:;", name="p2"),
    )
    assert found.needs["llm/p1"] == [Need(GPU, 2, memory_mib=8000, names=("GPU-0", "GPU-1"))]
    cards = found.nodes["n1"].details["cards"]
    assert [(card["uuid"], card["used_mib"], card["free_mib"]) for card in cards] == [
        ("GPU-0", 28000, 4768),
        ("GPU-1", 8000, 24768),
        ("GPU-2", 0, 32768),
        ("GPU-3", 0, 0),
    ]
    assert found.nodes["n1"].details["whole_devices_free"] == 1


def test_cards_of_which_a_pod_has_different_shares_are_different_needs() -> None:
    found = counted(hami(), given("GPU-0,NVIDIA,8000,30:GPU-1,NVIDIA,32768,30:;", 2))
    assert found.needs["llm/p1"] == [
        Need(GPU, 1, memory_mib=8000, names=("GPU-0",)),
        Need(GPU, 1, names=("GPU-1",)),
    ]


def test_without_the_annotation_the_shares_are_as_the_containers_ask() -> None:
    mib = ContainerFacts("a", requests={GPU: 2, "nvidia.com/gpumem": 10000})
    percent = ContainerFacts("b", requests={GPU: 1, "nvidia.com/gpumem-percentage": 25})
    whole = ContainerFacts("c", requests={GPU: 1})
    found = counted(hami(), pod({GPU: 4}, containers=(mib, percent, whole)))
    assert found.needs["llm/p1"] == [
        Need(GPU, 2, memory_mib=10000),
        Need(GPU, 1, fraction=Decimal("0.25")),
        Need(GPU, 1),
    ]


def test_a_pod_that_waits_tells_its_shares_too() -> None:
    one = ContainerFacts("a", requests={GPU: 1, "nvidia.com/gpumem": 10000})
    found = counted(hami(), pod({GPU: 1}, on="", containers=(one,)))
    assert found.needs["llm/p1"] == [Need(GPU, 1, memory_mib=10000)]


def test_what_an_init_container_books_beyond_the_containers_is_held_whole() -> None:
    one = ContainerFacts("a", requests={GPU: 1, "nvidia.com/gpumem": 10000})
    found = counted(hami(), pod({GPU: 3}, containers=(one,)))
    assert found.needs["llm/p1"] == [Need(GPU, 1, memory_mib=10000), Need(GPU, 2)]


def test_the_json_of_newer_releases_is_read_and_what_it_leaves_out_is_false() -> None:
    cards = [
        {"id": "GPU-a", "count": 5, "devmem": 81559, "devcore": 100, "type": "NVIDIA H100", "health": True},
        {"id": "GPU-b", "count": 5, "devmem": 81559, "devcore": 100, "type": "NVIDIA H100", "index": 1},
    ]
    found = counted_node(hami(json.dumps(cards)))
    assert (found.type, found.physical, found.memory_mib) == ("H100", 2, 81559)
    assert (found.details["unhealthy"], found.details["whole_devices_free"]) == (1, 1)


def test_a_register_of_nine_words_and_one_of_volcano_are_read() -> None:
    assert counted_node(hami("GPU-a,10,40960,100,NVIDIA-A100,0,true,3,hami-core:")).type == "A100"
    annotations = {"volcano.sh/node-vgpu-register": "GPU-a,10,40960,NVIDIA-A100,true,hami-core:"}
    found = counted_node(node({"volcano.sh/vgpu-number": 10}, {}, annotations=annotations))
    assert (found.type, found.physical, found.memory_mib) == ("A100", 1, 40960)


def test_two_models_behind_one_resource_are_told() -> None:
    found = counted_node(hami("GPU-a,10,24576,100,NVIDIA-P40,0,true:GPU-b,10,40960,100,NVIDIA-A100,0,true:"))
    assert found.details["models"] == {"P40": 1, "A100": 1}
    assert (found.type, found.memory_mib) == (None, None)
    assert [device.type for device in found.pools[0].devices] == ["NVIDIA-P40", "NVIDIA-A100"]


def test_a_register_that_cannot_be_read_is_none() -> None:
    for register in ("", "[", "[1, {}]", "GPU-a", "a,b:c"):
        assert "cards" not in counted_node(hami(register)).details


def test_one_card_offered_a_hundred_times_has_no_two_cards_for_a_pod() -> None:
    facts = node({GPU: 100}, annotations={"hami.io/node-nvidia-register": "GPU-0,100,32768,100,V100,0,true:"})
    found = counted_node(facts)
    assert found.resources[GPU].free == 100
    assert found.details["whole_devices_free"] == 1
    assert len(found.pools[0].devices) == 1


def test_cards_of_a_plugin_that_offers_nothing_are_out_of_order_while_pods_hold_them() -> None:
    assert counted_node(hami(allocatable=0)).pools == []
    found = counted_node(hami(allocatable=0), given("GPU-0,NVIDIA,32768,0:;"))
    assert [device.healthy for device in found.pools[0].devices] == [False] * 4


def small(slots: int = 10, cards: int = 1, cores: int = 100) -> NodeFacts:
    return hami("".join(f"GPU-{n},{slots},24564,{cores},NVIDIA-A10,0,true:" for n in range(cards)))


def test_the_vendor_that_older_releases_write_before_a_name_that_has_it_is_written_once() -> None:
    found = counted_node(hami("GPU-a,10,24564,100,NVIDIA-NVIDIA GeForce RTX 4090,0,true:"))
    assert found.type == "GeForce-RTX-4090"
    assert found.pools[0].devices[0].type == "NVIDIA GeForce RTX 4090"
    assert counted_node(hami()).pools[0].devices[0].type == "NVIDIA-Tesla V100-PCIE-32GB"


def test_a_card_whose_slots_are_used_up_takes_nothing_more() -> None:
    found = counted_node(
        small(slots=2, cards=2),
        given("GPU-0,NVIDIA,4000,0:;"),
        given("GPU-0,NVIDIA,4000,0:;", name="p2"),
    )
    assert [device.closed for device in found.pools[0].devices] == [True, False]
    assert [(card["used_mib"], card["free_mib"]) for card in found.details["cards"]] == [
        (8000, 0),
        (0, 24564),
    ]
    assert found.details["whole_devices_free"] == 1


def test_two_containers_of_a_pod_on_one_card_take_two_of_its_slots() -> None:
    found = counted_node(small(slots=2), given("GPU-0,NVIDIA,4000,0:;GPU-0,NVIDIA,4000,0:;", 2))
    assert found.pools[0].devices[0].closed


def test_a_card_with_a_slot_and_cores_left_stays_open() -> None:
    found = counted_node(small(slots=2), given("GPU-0,NVIDIA,4000,99:;"))
    assert not found.pools[0].devices[0].closed
    assert found.details["cards"][0]["free_mib"] == 20564


def test_a_card_whose_cores_are_given_away_takes_nothing_more() -> None:
    pods = [given("GPU-0,NVIDIA,4000,50:;", name=name) for name in ("p1", "p2")]
    found = counted(small(), *pods)
    assert found.nodes["n1"].pools[0].devices[0].closed
    assert found.nodes["n1"].details["cards"][0]["free_mib"] == 0
    assert found.needs["llm/p1"] == [Need(GPU, 1, memory_mib=4000, names=("GPU-0",))]
    scaled = counted_node(small(cores=200), *pods)
    assert not scaled.pools[0].devices[0].closed


def test_a_pod_with_all_cores_of_a_card_has_it_for_itself() -> None:
    found = counted(small(), given("GPU-0,NVIDIA,4000,100:;"))
    assert found.needs["llm/p1"] == [Need(GPU, 1, names=("GPU-0",))]
    assert found.nodes["n1"].details["cards"][0]["free_mib"] == 0


def test_a_pod_that_waits_for_all_cores_waits_for_a_whole_card() -> None:
    asks = {GPU: 1, "nvidia.com/gpumem": 4000, "nvidia.com/gpucores": 100}
    found = counted(small(), pod({GPU: 1}, on="", containers=(ContainerFacts("a", requests=asks),)))
    assert found.needs["llm/p1"] == [Need(GPU, 1)]
