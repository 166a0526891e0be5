"""What was found in files becomes a measurement; the files themselves are kept beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.utils import timezone

from sizing.measuring.importing.given import Asked, ReadFile
from sizing.measuring.importing.packing import Packed
from sizing.models import (
    BenchFile,
    BenchFilePart,
    BenchImport,
    BenchLevel,
    BenchProfile,
    Measurement,
    Variant,
)
from sizing.models.fields import LARGEST_RATE
from sizing.models.locking import inventory_lock

State = BenchImport.State


class NotStorable(Exception):  # noqa: N818  it reads as what it says
    """An import that cannot be stored, with the reason in one line."""


def asked_of(profile: BenchProfile) -> Asked:
    """The profile's row as what files are considered for."""
    return Asked(profile.name, profile.input_tokens, profile.output_tokens, profile.slo, profile.arrival)


def stored_before(
    files: Iterable[ReadFile], variant: Variant | None, profile: BenchProfile | None
) -> list[str]:
    """In words, which files a measurement of the same variant and profile has already: the latest of each."""
    if variant is None or profile is None:
        return []
    names = {file.sha256: file.result.file for file in files if not file.result.error}
    same = BenchFile.objects.filter(measurement__variant=variant, measurement__profile=profile)
    kept = same.filter(sha256__in=names).select_related("measurement").order_by("measurement_id")
    latest = {file.sha256: file.measurement for file in kept if file.measurement}
    by_measurement: dict[Measurement, list[str]] = {}
    for sha256, measurement in latest.items():
        by_measurement.setdefault(measurement, []).append(names[sha256])
    return [
        f"{found[0]}{f' and {len(found) - 1} more' if len(found) > 1 else ''}: stored before, in measurement"
        f" {measurement.pk} of {measurement.measured_at:%Y-%m-%d %H:%M} UTC"
        for measurement, found in by_measurement.items()
    ]


def keep_files(row: BenchImport, files: Iterable[Packed]) -> None:
    """Keep the files of an import, with no more than a piece of one in memory."""
    for position, file in enumerate(files, 1):
        kept = BenchFile.objects.create(
            bench_import=row,
            position=position,
            name=file.name[:255],
            size=file.size,
            sha256=file.sha256,
        )
        for number, piece in enumerate(file.parts(), 1):
            BenchFilePart.objects.create(file=kept, position=number, content=piece)


def store(pk: int) -> Measurement:
    """Make the measurement of an import that was read, once; NotStorable where there is none to make.

    The levels are those of the sweep that counts, and the files move from the import to the measurement.
    """
    with inventory_lock():
        taken = BenchImport.objects.filter(pk=pk, state=State.DONE, finding__isnull=False)
        if not taken.update(state=State.STORED, finished_at=timezone.now()):
            raise NotStorable(_why_not(pk))
        row = BenchImport.objects.select_related("variant", "profile").get(pk=pk)
        found: Mapping[str, Any] = row.finding or {}
        if row.variant is None or row.profile is None:
            raise NotStorable(f"import {pk} was given no model and profile to be stored for")
        if found["asked"] != asked_of(row.profile).as_dict():
            raise NotStorable(
                f"the profile {row.profile.name} changed since the files were read; give them again"
            )
        measurement = _measurement(row.variant, row.profile, found)
        row.files.update(bench_import=None, measurement=measurement)
        # The levels are rows now.
        BenchImport.objects.filter(pk=pk).update(measurement=measurement, finding=None)
    return measurement


def _measurement(variant: Variant, profile: BenchProfile, found: Mapping[str, Any]) -> Measurement:
    rate = found["tok_per_sec"]
    if rate is not None and rate > LARGEST_RATE:
        raise NotStorable(f"{rate:,.6g} tok/s are more than can be")
    measurement = Measurement.objects.create(
        variant=variant,
        profile=profile,
        tok_per_sec=round(Decimal(rate or 0), 6),
        measured_at=datetime.fromisoformat(found["measured_at"]),
        source=found["source"][:255],
        bound=found["bound"],
        warnings=found["warnings"],
        slo_met=rate is not None,
        bracket=found["bracket"][:255],
        generator=found["generator"][:255],
        workload=found["workload"],
    )
    BenchLevel.objects.bulk_create(
        BenchLevel(
            measurement=measurement,
            position=position,
            verdict=level["verdict"],
            why=level["why"][:255],
            observed=level["observed"],
        )
        for position, level in enumerate(found["levels"], 1)
    )
    return measurement


def _why_not(pk: int) -> str:
    row = BenchImport.objects.filter(pk=pk).first()
    if row is None:
        return f"there is no import {pk} any more"
    if row.state == State.STORED:
        return f"import {pk} is stored already"
    if row.state == State.DONE:
        refused = row.preview.get("refused") or ["it was given no model and profile to be stored for"]
        return f"import {pk} cannot be stored: {refused[0]}"
    return f"import {pk} cannot be stored: it is {row.state}" + (f" ({row.error})" if row.error else "")
