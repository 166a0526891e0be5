"""The pods of a cluster as replicas of models."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from sizing.inventory.kubernetes.counted import Need
from sizing.inventory.kubernetes.facts import PodFacts


class Ignored(NamedTuple):
    """Objects of a kind that become nothing, with the reason in words."""

    kind: str
    reason: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """A pod of a replica and the devices that it holds or waits for; a head on CPU needs none."""

    pod: PodFacts
    needs: tuple[Need, ...] = ()


@dataclass(slots=True)
class MappedReplica:
    """A replica: one pod, or a group of them with its leader first.

    `missing` are the pods that the group lacks to be whole. `by` says what decided on the model; `variant`
    is empty where nothing names it. `endpoint` and `benchable` are empty and None where nothing tells.
    """

    name: str
    model: str
    variant: str
    by: str
    members: tuple[Member, ...]
    state: str
    missing: int = 0
    priority: int = 0
    started_at: datetime | None = None
    endpoint: str = ""
    benchable: bool | None = None

    @property
    def leader(self) -> PodFacts:
        """The pod that speaks for the replica."""
        return self.members[0].pod

    @property
    def bound(self) -> list[Member]:
        """The pods that hold devices on a node."""
        return [m for m in self.members if m.needs and m.pod.bound]

    @property
    def nominated(self) -> list[Member]:
        """The waiting pods that the scheduler keeps devices of a node for."""
        return [m for m in self.members if m.needs and m.pod.nominated and not (m.pod.node or m.pod.deleting)]


@dataclass(slots=True)
class MappedModel:
    """A model, or with `workload` other something that is no LLM and holds devices all the same."""

    name: str
    workload: str
    owner: str = ""
    priority: int = 0
    preemption_policy: str = "PreemptLowerPriority"
    min_replicas: int = 0
    replicas: list[MappedReplica] = field(default_factory=list)


@dataclass(slots=True)
class Mapped:
    """All pods that hold devices or wait for them, by model, and what was left out."""

    models: dict[str, MappedModel] = field(default_factory=dict)
    ignored: list[Ignored] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def replicas(self) -> list[MappedReplica]:
        """All replicas, by model."""
        return [replica for model in self.models.values() for replica in model.replicas]
