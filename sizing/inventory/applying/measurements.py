"""Write measurements, which have no name: what is there stays, and of equal times the order counts."""

from __future__ import annotations

from sizing.inventory.applying.rows import Work, delete, insert
from sizing.inventory.document import MeasurementEntry, MeasurementKey
from sizing.models import Measurement

Moment = tuple[str, str, str, object]


def write_measurements(work: Work) -> None:
    """Insert the file's measurements that are not there; with `replace` remove those that it leaves out.

    Of equal times the one stored later counts, so the file's order is kept: a stored row that the file has
    after a newer one is stored again.
    """
    there: dict[MeasurementKey, list[int]] = {}
    for entry, pk in zip(work.old.measurements, work.stored.measurement_ids, strict=True):
        there.setdefault(entry.key, []).append(pk)
    new: list[Measurement] = []
    again: list[int] = []
    last: dict[Moment, float] = {}
    for entry in work.file.measurements:
        moment = (entry.model, entry.variant, entry.profile, entry.measured_at)
        ids = there.get(entry.key)
        known = ids.pop(0) if ids else None
        if known is not None and known > last.get(moment, 0):
            last[moment] = known
            continue
        last[moment] = float("inf")
        new.append(_row(work, entry))
        if known is not None:
            again.append(known)
    gone = [pk for ids in there.values() for pk in ids] if work.replace else []
    delete(Measurement.objects.all(), "pk", [*again, *gone])
    insert(Measurement, new)
    work.changes.note(
        "measurements",
        created=len(new) - len(again),
        updated=len(again),
        removed=len(gone),
        of=len(work.file.measurements),
    )


def _row(work: Work, entry: MeasurementEntry) -> Measurement:
    return Measurement(
        variant_id=work.stored.variant_ids[entry.model, entry.variant],
        profile_id=work.stored.profile_ids[entry.profile],
        tok_per_sec=entry.tok_per_sec,
        measured_at=entry.measured_at,
        source=entry.source,
        bound=entry.bound,
        engine=entry.engine,
        warnings=list(entry.warnings),
        slo_met=entry.slo_met,
    )
