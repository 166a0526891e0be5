"""Result files that people already have: looked at, and stored as a measurement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO

from django.contrib.auth.models import User
from django.db import transaction

from sizing import tasks
from sizing.measuring.files.texts import shown_name
from sizing.measuring.importing import (
    Considered,
    NotStorable,
    Packed,
    ReadFile,
    TooLargeFile,
    asked_of,
    consider,
    life,
    packed,
    read_file,
    refused,
    stored_before,
    storing,
    weight,
    with_labels,
)
from sizing.models import BenchFile, BenchImport, Measurement, history
from sizing.models.history import By
from sizing.models.locking import inventory_lock
from sizing.services.errors import DeskError
from sizing.services.import_wish import Wish as Wish
from sizing.services.import_wish import time_of as time_of
from sizing.services.import_wish import wish as wish

MIB = 1024 * 1024
MOST_FILES = 100
MOST_FILE_BYTES = 50 * MIB
MOST_BYTES = 200 * MIB
LARGE_BYTES = 5 * MIB
"""Unpacked; more than this in all is read by a worker, not by who asks."""

State = BenchImport.State


class TooLarge(DeskError):  # noqa: N818  it reads as what it says
    """More or larger files than are taken."""

    def __init__(self, message: str, fields: dict[str, list[str]] | None = None) -> None:
        super().__init__(message, code="too_large", status=413, fields=fields)


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that somebody gives: its name is a label, never a path that is opened."""

    name: str
    size: int
    open: Callable[[], AbstractContextManager[BinaryIO]]


# Looking at files ------------------------------------------------------------------------------------


def check_sizes(uploads: Sequence[Upload]) -> None:
    """DeskError where there are none, too many, or too large ones."""
    if not uploads:
        raise DeskError("no file was given", fields={"file": ["is missing"]})
    check_number(len(uploads))
    large = {shown_name(u.name): [_too_large(u.name)] for u in uploads if u.size > MOST_FILE_BYTES}
    if large:
        raise TooLarge(next(iter(large.values()))[0], fields=large)
    if sum(upload.size for upload in uploads) > MOST_BYTES:
        raise TooLarge(f"the files have more than {MOST_BYTES // MIB} MiB in all")


def check_number(files: int) -> None:
    """DeskError where there are more files than are taken."""
    if files > MOST_FILES:
        raise TooLarge(f"{files} files were given; at most {MOST_FILES} are taken at once")


def _too_large(name: str) -> str:
    return f"{shown_name(name)}: at most {MOST_FILE_BYTES // MIB} MiB were expected"


def is_large(uploads: Sequence[Upload]) -> bool:
    """Whether a worker has to read the files, for it takes long."""
    left = LARGE_BYTES
    for upload in uploads:
        if upload.size > left:
            return True
        with upload.open() as opened:
            left -= weight(opened, left)
        if left < 0:
            return True
    return False


def read_all(uploads: Sequence[Upload], told: Callable[[int], None] = lambda size: None) -> list[ReadFile]:
    """Read files, whatever their number; `told` hears of the bytes of each that is done."""
    found = []
    for upload, label in zip(uploads, with_labels(shown_name(u.name) for u in uploads), strict=True):
        if upload.size > MOST_FILE_BYTES:
            found.append(refused(label, _too_large(label)))
        else:
            with upload.open() as opened:
                found.append(read_file(label, opened.read(MOST_FILE_BYTES + 1)))
        told(upload.size)
    return found


def look_at(files: Sequence[ReadFile], wanted: Wish) -> Considered:
    """What files say together, for what they are given."""
    asked = asked_of(wanted.profile) if wanted.profile else None
    considered = consider(
        files,
        asked,
        force=wanted.force,
        leave_out=wanted.leave_out_broken,
        declared=wanted.measured_at,
        noted=stored_before(files, wanted.variant, wanted.profile),
    )
    if considered.too_many:
        raise TooLarge(considered.too_many)
    return considered


def refusal(considered: Considered) -> DeskError:
    """Why what was looked at may not be stored, by file."""
    lines = considered.refused_lines
    if len(lines) == 1:
        message = f"{lines[0]}; nothing was stored"
    else:
        message = f"{len(lines)} things are not right; nothing was stored"
    return DeskError(message, fields={name: found for name, found in considered.refused.items() if name})


# Keeping and storing ---------------------------------------------------------------------------------


def take(
    uploads: Sequence[Upload],
    wanted: Wish,
    *,
    trigger: str,
    user: User | None = None,
    to_store: bool = False,
    files: Sequence[ReadFile] | None = None,
) -> BenchImport:
    """Keep files as an import, read them, and store the measurement where `to_store` and all is right.

    Small ones are read here, and large ones by a worker, unless they are given as read in `files`; a worker
    tells in the import's row what is refused. DeskError 413 and 400 for what is refused here, and then
    nothing is kept where it was `to_store`.
    """
    check_sizes(uploads)
    fields = {
        "variant": wanted.variant,
        "profile": wanted.profile,
        "force": wanted.force,
        "leave_out_broken": wanted.leave_out_broken,
        "store_when_right": to_store,
        "trigger": trigger,
        "requested_by": user,
    }
    with ExitStack() as stack:
        packs = _packs(uploads, stack)
        if files is None and is_large(uploads):
            declared = {"declared_at": wanted.measured_at.isoformat()} if wanted.measured_at else {}
            with transaction.atomic():
                row = BenchImport.objects.create(**fields, preview=declared)
                storing.keep_files(row, packs)
                transaction.on_commit(lambda: tasks.wake_for_import(row.pk))
            return row
        considered = look_at(read_all(uploads) if files is None else files, wanted)
        if to_store and considered.refused:
            raise refusal(considered)
        with inventory_lock():
            row = BenchImport.objects.create(**fields, state=State.RUNNING, attempts=1)
            storing.keep_files(row, packs)
            life.keep(row, considered)
            if to_store:
                stored = _store(row.pk)
                history.write(history.by_trigger(trigger, user), [history.added(stored)])
    row.refresh_from_db()
    return row


def _packs(uploads: Sequence[Upload], stack: ExitStack) -> list[Packed]:
    packs = []
    for upload, label in zip(uploads, with_labels(shown_name(u.name) for u in uploads), strict=True):
        opened = stack.enter_context(upload.open())
        try:
            packs.append(stack.enter_context(packed(label, opened, MOST_FILE_BYTES)))
        except TooLargeFile as reason:
            line = f"{label}: {reason}"
            raise TooLarge(line, fields={label: [line]}) from None
    return packs


def store(pk: int, by: By | None = None) -> Measurement:
    """Store the measurement of an import that was read. DeskError 409 where there is none to store.

    by: who is told to the history; None where the caller tells it.
    """
    if not BenchImport.objects.filter(pk=pk).exists():
        raise DeskError(f'no import "{pk}"', code="not_found", status=404)
    with inventory_lock():
        stored = _store(pk)
        if by is not None:
            history.write(by, [history.added(stored)])
    return stored


def _store(pk: int) -> Measurement:
    try:
        return storing.store(pk)
    except NotStorable as reason:
        raise DeskError(str(reason), code="conflict", status=409) from None


def newer_than(measurement: Measurement) -> Measurement | None:
    """The measurement that counts in place of this one, for it was taken later; None where there is none."""
    same = Measurement.objects.filter(
        variant=measurement.variant_id, profile=measurement.profile_id, slo_met=True, tok_per_sec__gt=0
    )
    return same.filter(measured_at__gt=measurement.measured_at).first()


def read_again(pk: int, *, force: bool, leave_out_broken: bool, to_store: bool = False) -> BenchImport:
    """Look at the files of an import once more, on other terms; store it where `to_store` and all is right.

    Small ones are read here, and large ones by a worker. DeskError 409 unless it is done, and where a small
    one cannot be stored.
    """
    large = is_large([_kept(file) for file in BenchFile.objects.filter(bench_import=pk)])
    with transaction.atomic():
        changed = BenchImport.objects.filter(pk=pk, state=State.DONE).update(
            state=State.QUEUED,
            force=force,
            leave_out_broken=leave_out_broken,
            store_when_right=to_store and large,
            attempts=0,
            finding=None,
        )
        if not changed:
            raise DeskError(f"import {pk} is not there to be read again", code="conflict", status=409)
        if large:
            transaction.on_commit(lambda: tasks.wake_for_import(pk))
    if not large:
        life.run(pk)
        if to_store:
            _store(pk)
    return BenchImport.objects.get(pk=pk)


def _kept(file: BenchFile) -> Upload:
    return Upload(file.name, file.size, lambda: BytesIO(file.read()))


def discard(pk: int) -> None:
    """Delete an import that is not stored, with its files. DeskError 409 where it is stored or being read."""
    deleted, _ = BenchImport.objects.filter(
        pk=pk, state__in=(State.QUEUED, State.DONE, State.FAILED)
    ).delete()
    if not deleted:
        raise DeskError(f"import {pk} is stored, being read, or gone", code="conflict", status=409)
