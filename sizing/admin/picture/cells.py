"""What is drawn: rows, and the cells in them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a cell says of its GPUs; each has a shape or a hatching of its own beside its color."""

    FREE = "free"
    HELD = "held"
    SHARED = "shared"  # several replicas, or a part of the memory is free
    OUTSIDE = "outside"  # held by nobody, but used outside of replicas
    UNHEALTHY = "unhealthy"  # held by nobody
    NEW = "new"  # a replica of this answer would go there
    STOPS = "stops"  # a holder of it would stop


@dataclass(frozen=True, slots=True)
class Part:
    """A share of a GPU's memory, from 0 to 1: who holds it (`hue`), and whether that one would stop."""

    hue: int
    share: float
    stops: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """Adjacent GPUs of one node with one story. `hue`: the holder's color, 0 to 7; `says`: the whole story,
    shown under the pointer; `label`: short, drawn where there is room; `parts`: who holds how much, drawn
    from below, where that is not one holder of everything."""

    kind: Kind
    says: str
    gpus: int = 1
    hue: int = 0
    label: str = ""
    unhealthy: bool = False  # also where somebody holds it
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A node: its name, where it leads, what keeps it closed, its cells, and a few words behind them."""

    name: str
    url: str
    closed: str
    cells: tuple[Cell, ...]
    note: str
