"""HAMi: cards that are offered many times over, with shares of memory and cores.

The scheduler keeps its books in annotations: the node's tells the cards, the pod's which cards it was given
with how much memory. Without `gpumem` a pod takes a card whole.
https://github.com/Project-HAMi/HAMi/blob/master/docs/develop/protocol.md
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sizing.inventory.kubernetes.counted import Device, Need
from sizing.inventory.kubernetes.facts import ContainerFacts, PodFacts
from sizing.inventory.kubernetes.labels import plausible
from sizing.inventory.kubernetes.vendors import NVIDIA_GPU

VOLCANO_GPU = "volcano.sh/vgpu-number"
_NODE = (
    ("hami.io/node-nvidia-register", NVIDIA_GPU),
    ("4pd.io/node-nvidia-register", NVIDIA_GPU),
    ("volcano.sh/node-vgpu-register", VOLCANO_GPU),
)
_POD = (
    "hami.io/vgpu-devices-allocated",
    "hami.io/vgpu-devices-to-allocate",
    "4pd.io/vgpu-ids-new",
    "4pd.io/devices-allocated",
    "volcano.sh/vgpu-ids-new",
)
_MEMORY = {NVIDIA_GPU: "nvidia.com/gpumem", VOLCANO_GPU: "volcano.sh/vgpu-memory"}
_PERCENT = {NVIDIA_GPU: "nvidia.com/gpumem-percentage", VOLCANO_GPU: "volcano.sh/vgpu-memory-percentage"}
_CORES = {NVIDIA_GPU: "nvidia.com/gpucores", VOLCANO_GPU: "volcano.sh/vgpu-cores"}
_ALL_CORES = 100


@dataclass(frozen=True, slots=True)
class Card:
    """A card as its node's annotation tells it; memory in MiB and cores in percent, as they are handed out.

    It takes as many containers as it has slots, and none once all of its cores are given.
    """

    uuid: str
    slots: int
    memory_mib: int
    type: str
    healthy: bool
    cores: int = _ALL_CORES


@dataclass(frozen=True, slots=True)
class Cards:
    """The cards of a node and the resource by which they are asked for."""

    resource: str
    cards: tuple[Card, ...]

    def devices(self, full: Collection[str] = ()) -> list[Device]:
        """The cards as the inventory stores them: cards, not slots. `full` are uuids of those that are."""
        return [
            Device(
                card.type or self.resource,
                plausible(card.memory_mib),
                card.healthy,
                uuid=card.uuid,
                name=card.uuid,
                closed=card.uuid in full,
            )
            for card in self.cards
        ]

    def full(self, slots: Mapping[str, int], cores: Mapping[str, int]) -> frozenset[str]:
        """The cards that take no more, by the slots and cores that are taken of each."""
        return frozenset(
            card.uuid
            for card in self.cards
            if slots.get(card.uuid, 0) >= card.slots > 0 or cores.get(card.uuid, 0) >= card.cores
        )


def cards_of(annotations: Mapping[str, str]) -> Cards | None:
    """The cards that HAMi (or Volcano's vGPU) registered on a node; None where it registered none."""
    for key, resource in _NODE:
        text = annotations.get(key, "").strip()
        if text:
            found = tuple(_json_cards(text) if text.startswith("[") else _text_cards(text))
            if found:
                return Cards(resource, found)
    return None


def _text_cards(text: str) -> Iterator[Card]:
    """`uuid,slots,MiB,cores,type,numa,healthy[,index,mode]:`, Volcano `uuid,slots,MiB,type,healthy,mode:`."""
    for part in text.split(":"):
        words = part.split(",")
        if len(words) >= 7:
            cores, type_, healthy = words[3], words[4], words[6]
        elif len(words) >= 5:
            cores, type_, healthy = "", words[3], words[4]
        else:
            continue
        yield Card(
            words[0].strip(),
            _int(words[1]),
            _int(words[2]),
            _type(type_),
            _true(healthy),
            _int(cores) or _ALL_CORES,
        )


def _json_cards(text: str) -> Iterator[Card]:
    """Newer releases write a JSON list; what is false or 0 is left out."""
    try:
        listed = json.loads(text)
    except ValueError:
        return
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict) and one.get("id"):
            yield Card(
                str(one["id"]),
                _int(one.get("count")),
                _int(one.get("devmem")),
                _type(str(one.get("type") or "")),
                one.get("health") is True,
                _int(one.get("devcore")) or _ALL_CORES,
            )


def _type(told: str) -> str:
    """The card's name; older releases write the vendor before names that begin with it."""
    name = told.strip()
    rest = name.removeprefix("NVIDIA-")
    return rest if rest.startswith("NVIDIA") else name


def needs_of(pod: PodFacts, cards: Cards) -> list[Need]:
    """What a pod holds of a node's cards: by name where its annotation tells them, else as it asked."""
    given = list(_given(pod, cards))
    return given if given else asked_of(pod, cards.resource)


@dataclass(slots=True)
class Taken:
    """What a pod was given of a card: a slot for each of its containers there, memory (MiB) and cores."""

    slots: int = 0
    memory_mib: int = 0
    cores: int = 0


def taken_of(pod: PodFacts, cards: Cards) -> dict[str, Taken]:
    """What a pod was given of each card, by uuid.

    Its annotation has `uuid,vendor,MiB,cores:` for each card and `;` between containers.
    """
    known = {card.uuid for card in cards.cards}
    text = next((pod.annotations[key] for key in _POD if pod.annotations.get(key)), "")
    found: dict[str, Taken] = {}
    for part in text.replace(";", ":").split(":"):
        words = part.split(",")
        if len(words) >= 3 and words[0] in known:
            memory, cores = words[2:4] if len(words) >= 4 else words[1:3]
            taken = found.setdefault(words[0], Taken())
            taken.slots += 1
            taken.memory_mib += _int(memory)
            taken.cores += _int(cores)
    return found


def _given(pod: PodFacts, cards: Cards) -> Iterator[Need]:
    known = {card.uuid: card for card in cards.cards}
    by_memory: dict[int | None, list[str]] = {}
    for uuid, taken in taken_of(pod, cards).items():
        card, memory = known[uuid], taken.memory_mib
        # Who has all cores has the card for itself.
        whole = not memory or memory >= card.memory_mib or taken.cores >= card.cores
        by_memory.setdefault(None if whole else memory, []).append(uuid)
    for claim, uuids in by_memory.items():
        yield Need(cards.resource, len(uuids), memory_mib=claim, names=tuple(uuids))


def asks_for_shares(pod: PodFacts) -> bool:
    """Whether a pod asks for a part of a card's memory, as only HAMi's scheduler understands it."""
    keys = (*_MEMORY.values(), *_PERCENT.values())
    return any(key in container.requests for container in pod.containers for key in keys)


def asked_of(pod: PodFacts, resource: str) -> list[Need]:
    """What a pod asks for by its containers; what its init containers ask for beyond that is asked whole."""
    needs: dict[tuple[int | None, Decimal | None], int] = {}
    for container in pod.containers:
        count = container.requests.get(resource, 0)
        if count:
            claim = _claim(container, resource)
            needs[claim] = needs.get(claim, 0) + count
    whole = pod.requests.get(resource, 0)
    missing = whole - sum(needs.values())
    if missing > 0:
        needs[(None, None)] = needs.get((None, None), 0) + missing
    elif missing < 0:
        # Init containers run before the others: the pod holds no more than it booked.
        needs = {next(iter(needs)): whole} if whole else {}
    return [Need(resource, count, memory_mib=mib, fraction=part) for (mib, part), count in needs.items()]


def _claim(container: ContainerFacts, resource: str) -> tuple[int | None, Decimal | None]:
    memory = container.requests.get(_MEMORY.get(resource, ""), 0)
    percent = container.requests.get(_PERCENT.get(resource, ""), 0)
    if container.requests.get(_CORES.get(resource, ""), 0) >= _ALL_CORES:
        return None, None
    if memory:
        return memory, None
    if 0 < percent < 100:
        return None, Decimal(percent) / 100
    return None, None


def _int(value: Any) -> int:
    try:
        return max(0, int(value))
    except (TypeError, ValueError):
        return 0


def _true(value: str) -> bool:
    return value.strip().lower() == "true"
