"""Write measurements, which have no name: what is there stays, and of equal times the order counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sizing.inventory.applying.rows import Work, delete, insert
from sizing.inventory.document import MeasurementEntry, MeasurementKey
from sizing.models import Measurement

Moment = tuple[str, str, str, object]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be stored in this order, `again` which of it is there already, and what goes; both by id."""

    store: list[MeasurementEntry]
    new: list[MeasurementEntry]
    again: list[int]
    gone: list[int]


def planned(
    file: Sequence[MeasurementEntry], there_are: Sequence[MeasurementEntry], ids: Sequence[int], replace: bool
) -> Plan:
    """The file's measurements that are not there, and with `replace` those that it leaves out.

    `ids` grow in the order in which measurements of one moment were stored. Of equal times the one stored
    later counts, so the file's order is kept: a stored row that the file has after a newer one is stored
    again.
    """
    there: dict[MeasurementKey, list[int]] = {}
    for entry, pk in zip(there_are, ids, strict=True):
        there.setdefault(entry.key, []).append(pk)
    store: list[MeasurementEntry] = []
    new: list[MeasurementEntry] = []
    again: list[int] = []
    last: dict[Moment, float] = {}
    for entry in file:
        moment = (entry.model, entry.variant, entry.profile, entry.measured_at)
        found = there.get(entry.key)
        known = found.pop(0) if found else None
        if known is not None and known > last.get(moment, -1):
            last[moment] = known
            continue
        last[moment] = float("inf")
        store.append(entry)
        if known is None:
            new.append(entry)
        else:
            again.append(known)
    gone = [pk for left in there.values() for pk in left] if replace else []
    return Plan(store, new, again, gone)


def write_measurements(work: Work) -> None:
    """Insert what is new, remove what goes."""
    plan = planned(work.file.measurements, work.old.measurements, work.stored.measurement_ids, work.replace)
    delete(Measurement.objects.all(), "pk", [*plan.again, *plan.gone])
    rows = [_row(work, entry) for entry in plan.store]
    insert(Measurement, rows)
    work.stored.new_measurement_ids = {e.key: row.pk for e, row in zip(plan.store, rows, strict=True)}
    work.changes.note(
        "measurements",
        created=len(plan.new),
        updated=len(plan.again),
        removed=len(plan.gone),
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
