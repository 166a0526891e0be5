"""Write the difference between the tables and a document. Rows that are as they should be are not touched."""

from __future__ import annotations

from sizing.inventory.applying import catalog, fleet, measurements, removing
from sizing.inventory.applying.rows import Changes, Work
from sizing.inventory.document import Document
from sizing.inventory.stored import Stored

__all__ = ["Changes", "apply"]


def apply(file: Document, stored: Stored, *, replace: bool) -> Changes:
    """Make the tables say what the file says, inside the caller's transaction.

    With `replace` what the file leaves out is removed; without it, only the variants and GPUs that are left
    out of the lists of objects that are in the file. `stored` gets the ids of new rows.
    """
    work = Work(file, stored, replace)
    # What holds goes before what is held, and comes after it.
    removing.remove_holders(work)
    catalog.write_profiles(work)
    catalog.write_models(work)
    catalog.write_variants(work)
    fleet.write_nodes(work)
    fleet.write_gpus(work)
    fleet.write_replicas(work)
    fleet.write_placements(work)
    measurements.write_measurements(work)
    catalog.write_targets(work)
    removing.remove_held(work)
    return work.changes
