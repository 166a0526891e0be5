"""From result files to a measurement: what they say together, and what of it may be stored."""

from sizing.measuring.importing import life, storing
from sizing.measuring.importing.considering import Considered, Sweep, consider
from sizing.measuring.importing.given import Asked, ReadFile, declared_time, read_file, refused, with_labels
from sizing.measuring.importing.packing import Packed, TooLargeFile, packed
from sizing.measuring.importing.storing import NotStorable, asked_of, stored_before
from sizing.measuring.importing.weighing import weight

__all__ = [
    "Asked",
    "Considered",
    "NotStorable",
    "Packed",
    "ReadFile",
    "Sweep",
    "TooLargeFile",
    "asked_of",
    "consider",
    "declared_time",
    "life",
    "packed",
    "read_file",
    "refused",
    "stored_before",
    "storing",
    "weight",
    "with_labels",
]
