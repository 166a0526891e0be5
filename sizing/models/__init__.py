"""The tables. State is written by `sizing.services` and the refresh life only."""

from sizing.models.answer import Answer, KeptInventory
from sizing.models.catalog import BenchProfile, ServedModel, Variant
from sizing.models.cluster import ClusterImport, ClusterSync, MappingRule
from sizing.models.fields import Source
from sizing.models.fleet import Gpu, Node, Placement, Replica
from sizing.models.imports import BenchFile, BenchFilePart, BenchImport
from sizing.models.level import BenchLevel
from sizing.models.load import InventoryLoad
from sizing.models.measurement import Measurement, Target
from sizing.models.refresh import MeasuredNode, Refresh, RefreshPlan, WorkerBeat
from sizing.models.revision import InventoryChange
from sizing.models.sign_in import SignInFailures
from sizing.models.token import ApiToken

__all__ = [
    "Answer",
    "ApiToken",
    "BenchFile",
    "BenchFilePart",
    "BenchImport",
    "BenchLevel",
    "BenchProfile",
    "ClusterImport",
    "ClusterSync",
    "Gpu",
    "InventoryChange",
    "InventoryLoad",
    "KeptInventory",
    "MappingRule",
    "MeasuredNode",
    "Measurement",
    "Node",
    "Placement",
    "Refresh",
    "RefreshPlan",
    "Replica",
    "ServedModel",
    "SignInFailures",
    "Source",
    "Target",
    "Variant",
    "WorkerBeat",
]
