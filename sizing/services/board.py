"""The board: the snapshot's fleet surveyed, and its nodes one by one where they are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sizing.domain import board as survey_of
from sizing.domain.board import By, Survey
from sizing.domain.hardware import Ints
from sizing.domain.picture import NodePicture, node_picture
from sizing.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Drawn:
    """A node to be drawn, and the key of its row."""

    pk: int
    picture: NodePicture


HOLDER_WEIGHT = 2
"""A GPU weighs 1 on a page, and each replica on it so much more: there are words to say about it."""


class Board:
    """A snapshot's nodes of a zone, with a GPU type, that hold a model; None: whatever it is.

    `weight`: by node, how much of a page its row takes.
    """

    def __init__(
        self, now: Snapshot, by: By, *, zone: str | None, gpu_type: str | None, model: str | None
    ) -> None:
        self._node_ids = now.node_ids
        self._fleet = now.fleet
        hardware = now.fleet.hardware
        self.survey: Survey = survey_of.survey(now.fleet, by, zone=zone, gpu_type=gpu_type, model=model)
        self.nodes = len(hardware.nodes)
        self.nodes_with_gpus = int((hardware.gpu_count > 0).sum())
        self.zones = survey_of.zones(hardware)
        self.gpu_types = survey_of.gpu_types(hardware)
        self.models = sorted(now.fleet.models)
        held = np.bincount(hardware.gpu_node, now.fleet.holders, minlength=len(hardware.nodes))
        self.weight: Ints = (hardware.gpu_count + HOLDER_WEIGHT * held).astype(np.int64)

    def drawn(self, numbers: Sequence[int]) -> list[Drawn]:
        """Nodes, by their numbers in the fleet, with their GPUs and who holds them."""
        pictures = [node_picture(self._fleet, number) for number in numbers]
        return [Drawn(self._node_ids[picture.name], picture) for picture in pictures]
