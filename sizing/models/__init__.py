"""The tables. State is written by `sizing.services` and the refresh life only."""

from sizing.models.catalog import BenchProfile, ServedModel, Variant
from sizing.models.fleet import Gpu, Node, Placement, Replica
from sizing.models.measurement import Measurement, Target
from sizing.models.refresh import Refresh, WorkerBeat
from sizing.models.revision import InventoryChange
from sizing.models.token import ApiToken

__all__ = [
    "ApiToken",
    "BenchProfile",
    "Gpu",
    "InventoryChange",
    "Measurement",
    "Node",
    "Placement",
    "Refresh",
    "Replica",
    "ServedModel",
    "Target",
    "Variant",
    "WorkerBeat",
]
