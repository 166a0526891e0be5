"""Lists of the cluster that people bring on a page: kept, looked at, then imported or discarded."""

from __future__ import annotations

import gzip
import zlib
from io import BytesIO
from typing import BinaryIO

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from sizing import tasks
from sizing.inventory.reading import LARGEST_DOCUMENT
from sizing.models import ClusterImport, history
from sizing.models.fields import NAME_LENGTH
from sizing.models.history import By
from sizing.services import kubernetes
from sizing.services.errors import DeskError
from sizing.syncing import importing
from sizing.syncing.bringing import Outcome

MIB = 1024 * 1024
LARGE_BYTES = 5 * MIB
"""Unpacked; a larger list is read by a worker, not by who brings it."""

LARGE_SLOW_BYTES = 256 * 1024
"""The same for what is not JSON, for YAML takes many times as long."""

PIECE = 256 * 1024

State = ClusterImport.State


def take(name: str, source: BinaryIO, *, partial: bool, user: User | None) -> ClusterImport:
    """Keep a list as an import and look at it: a small one here, a large one by a worker.

    DeskError 413 where it has more than 100 MiB, and 400 where a small one cannot be read; then nothing is
    kept. What a worker cannot read is told by the import.
    """
    pack, size, body = zlib.compressobj(), 0, BytesIO()
    while piece := source.read(PIECE):
        size += len(piece)
        if size > LARGEST_DOCUMENT:
            raise DeskError(
                f"the list is larger than {LARGEST_DOCUMENT // MIB} MiB", code="too_large", status=413
            )
        body.write(pack.compress(piece))
    body.write(pack.flush())
    row = ClusterImport(
        name=shown_name(name),
        size=size,
        body=body.getvalue(),
        partial=partial,
        trigger=ClusterImport.Trigger.ADMIN,
        requested_by=user,
    )
    with transaction.atomic():
        row.save()
        if _is_large(row):
            transaction.on_commit(lambda: tasks.wake_for_list(row.pk))
            return row
    importing.read(row.pk)
    row.refresh_from_db()
    if row.state == State.FAILED:
        row.delete()
        raise DeskError(row.error)
    return row


def bring(pk: int, user: User | None = None) -> ClusterImport:
    """Import a list that was looked at, by the inventory as it is now; a large one by a worker.

    The history tells that `user` did it, else who brought the list.

    DeskError 409 where it is not there to be imported or the desk follows a cluster, and 400 where it is
    refused.
    """
    kubernetes.check_not_followed()
    row = ClusterImport.objects.filter(pk=pk).first()
    large = row is not None and _is_large(row)
    with transaction.atomic():
        begun = ClusterImport.objects.filter(pk=pk, state=State.READ).update(
            state=State.IMPORTING,
            heartbeat_at=None,
            progress=0,
            cancel_requested=False,
            error="",
            finished_at=None,
            **({"requested_by": user} if user else {}),
        )
        if not begun:
            raise _not_there(pk)
        if large:
            transaction.on_commit(lambda: tasks.wake_to_import(pk))
    if not large:
        importing.bring(pk)
    row = ClusterImport.objects.get(pk=pk)
    if row.error:
        raise DeskError(row.error)
    return row


def look_again(pk: int, *, partial: bool) -> ClusterImport:
    """Look at a list once more, as a whole or an incomplete one. DeskError 409 unless it is read."""
    row = ClusterImport.objects.filter(pk=pk).first()
    large = row is not None and _is_large(row)
    with transaction.atomic():
        begun = ClusterImport.objects.filter(pk=pk, state=State.READ).update(
            state=State.QUEUED,
            heartbeat_at=None,
            progress=0,
            partial=partial,
            cancel_requested=False,
            error="",
        )
        if not begun:
            raise _not_there(pk)
        if large:
            transaction.on_commit(lambda: tasks.wake_for_list(pk))
    if not large:
        importing.read(pk)
    return ClusterImport.objects.get(pk=pk)


def cancel(pk: int) -> None:
    """End the reading of a list at its next sign of life; take back an import, which then changes nothing.

    DeskError 409 where neither is under way: what is imported stays.
    """
    if importing.take_back(pk):
        return
    if not ClusterImport.objects.filter(pk=pk, state=State.RUNNING).update(cancel_requested=True):
        raise _not_there(pk)


def discard(pk: int) -> None:
    """Delete a list that was not imported, with its file. DeskError 409 where it was, or is being read."""
    found = ClusterImport.objects.filter(pk=pk, state__in=(State.QUEUED, State.READ))
    deleted, _ = found.delete()
    if not deleted:
        raise _not_there(pk)


def note(outcome: Outcome, *, name: str, size: int, partial: bool, trigger: str, user: User | None) -> None:
    """Write into the history what a command or a script imported."""
    with transaction.atomic():
        row = ClusterImport.objects.create(
            name=shown_name(name),
            size=size,
            partial=partial,
            state=State.DONE,
            trigger=trigger,
            requested_by=user,
            finished_at=timezone.now(),
            progress=100,
            **importing.kept_of(outcome),
        )
        history.write(history.by_trigger(trigger, user), [history.added(row)])
        history.write(By(f"import {row.pk}", user), outcome.events)


def shown_name(name: str) -> str:
    """A file's name as a label: on one line, without control characters, not endless."""
    clean = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in name.strip())
    clean = clean or "a list"
    return clean if len(clean) <= NAME_LENGTH else f"{clean[: NAME_LENGTH - 1]}…"


def _is_large(row: ClusterImport) -> bool:
    """Whether a worker has to read the list, for it takes long: gzip counts by what it unpacks to."""
    if row.size > LARGE_BYTES or row.body is None:
        return row.size > LARGE_BYTES
    content = zlib.decompress(bytes(row.body))
    if content.startswith(b"\x1f\x8b"):
        try:
            with gzip.GzipFile(fileobj=BytesIO(content)) as packed:
                content = packed.read(LARGE_BYTES + 1)
        except (OSError, EOFError, zlib.error):
            return False  # for its reader to refuse
    is_json = content[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
    return len(content) > (LARGE_BYTES if is_json else LARGE_SLOW_BYTES)


def _not_there(pk: int) -> DeskError:
    return DeskError(f"cluster import {pk} is not there for that any more", code="conflict", status=409)
