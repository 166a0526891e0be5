"""Inventory files that people bring: looked at, then loaded, or loaded at once. Each leaves a row."""

from __future__ import annotations

import zlib
from datetime import timedelta
from io import BytesIO
from typing import Any, BinaryIO

from django.contrib.auth.models import User
from django.utils import timezone

from sizing.inventory.differing import HAPPENED, Difference
from sizing.inventory.reading import LARGEST_DOCUMENT
from sizing.inventory.words import counted
from sizing.models import (
    BenchProfile,
    Gpu,
    InventoryLoad,
    Measurement,
    Node,
    Replica,
    ServedModel,
    Target,
    Variant,
    history,
)
from sizing.models.fields import NAME_LENGTH
from sizing.models.history import By
from sizing.models.locking import inventory_lock
from sizing.services import inventory
from sizing.services.errors import DeskError
from sizing.services.inventory import KINDS, LoadResult

TABLES = (Node, Gpu, BenchProfile, ServedModel, Variant, Measurement, Replica, Target)
"""What a load writes."""

MIB = 1024 * 1024
PIECE = 256 * 1024
NAMES_KEPT = 200
"""Objects of a kind that a row names; it counts them all."""

LINES_KEPT = 500
"""Warnings, and paths with errors."""

BODY_KEPT = timedelta(days=1)
"""How long a file waits to be loaded."""

State = InventoryLoad.State


def take(name: str, source: BinaryIO, *, replace: bool, user: User | None) -> InventoryLoad:
    """Keep a file and look at what its load would do. What cannot be loaded is kept as refused, without the
    file. DeskError 413 where it has more than 100 MiB; then nothing is kept.
    """
    _clear_away()
    pack, size, body, content = zlib.compressobj(), 0, BytesIO(), BytesIO()
    while piece := source.read(PIECE):
        size += len(piece)
        if size > LARGEST_DOCUMENT:
            raise DeskError(
                f"the file is larger than {LARGEST_DOCUMENT // MIB} MiB", code="too_large", status=413
            )
        content.write(piece)
        body.write(pack.compress(piece))
    body.write(pack.flush())
    row = _row(name, size, replace, InventoryLoad.Trigger.ADMIN, user)
    _look(row, content.getvalue(), body.getvalue())
    row.save()
    return row


def bring(pk: int, user: User | None) -> InventoryLoad:
    """Load a file that was looked at, by the inventory as it is now. `user` is who wants it.

    DeskError 409 where it is not there to be loaded, or where the load would do something else than was
    looked at: then the row tells the new difference, and nothing else is changed. What is refused by now
    stays as a refused row.
    """
    row = InventoryLoad.objects.filter(pk=pk, state=State.PREVIEW).first()
    if row is None or row.body is None:
        raise _not_there(pk)
    document = inventory.read_document(zlib.decompress(bytes(row.body)))
    try:
        with inventory_lock():
            # Two people may press the button at once: the second finds it loaded.
            if not InventoryLoad.objects.filter(pk=pk, state=State.PREVIEW).exists():
                raise _not_there(pk)
            result = inventory.load_document(document, row.replace, expected=row.changes["digest"])
            _tell(row, result)
            _end(row, State.LOADED)
            history.write(By(f"load {row.pk}", user), result.events)
    except inventory.ChangedMeanwhileError as changed:
        _tell(row, changed.result)
        row.save()
        raise
    except inventory.InventoryError as refusal:
        _refuse(row, refusal)
        row.save()
    return row


def look_again(pk: int) -> InventoryLoad:
    """Look once more at what a file's load would do now. DeskError 409 unless it waits to be loaded."""
    row = InventoryLoad.objects.filter(pk=pk, state=State.PREVIEW).first()
    if row is None or row.body is None:
        raise _not_there(pk)
    _look(row, zlib.decompress(bytes(row.body)), bytes(row.body))
    row.save()
    return row


def discard(pk: int) -> None:
    """Delete a file that was not loaded. DeskError 409 where it was."""
    deleted, _ = InventoryLoad.objects.filter(pk=pk, state=State.PREVIEW).delete()
    if not deleted:
        raise _not_there(pk)


def load(content: bytes, replace: bool = False, *, name: str, trigger: str, user: User | None) -> LoadResult:
    """Load a file at once, as API and command do. Raises `InventoryError`; a row tells that too."""
    row = _row(name, len(content), replace, trigger, user)
    try:
        document = inventory.read_document(content)
        with inventory_lock():
            result = inventory.load_document(document, replace)
            _tell(row, result)
            _end(row, State.LOADED)
            _note(row)
            history.write(By(f"load {row.pk}", user), result.events)
    except DeskError as refusal:
        # The history tells changes, and nothing was changed; that it was tried is told by the row.
        _refuse(row, refusal)
        row.save()
        raise
    return result


def _note(row: InventoryLoad) -> None:
    """Tell the history of a load that no page tells it of."""
    history.write(history.by_trigger(row.trigger, row.requested_by), [history.added(row)])


def summary(row: InventoryLoad) -> str:
    """What a load does in one line: `3 nodes created, 1 replica removed`."""
    found = []
    for word in HAPPENED:
        for kind in KINDS:
            number = (row.counts.get(word) or {}).get(kind, 0)
            if number:
                found.append(f"{counted(number, one_of(kind))} {word}")
    return ", ".join(found) or "nothing differs"


def number_of_changes(row: InventoryLoad) -> int:
    """How many objects a load creates, updates and removes."""
    return sum(sum((row.counts.get(word) or {}).values()) for word in HAPPENED)


def one_of(kind: str) -> str:
    """`nodes` as `node`, `gpus` as `GPU`."""
    return "GPU" if kind == "gpus" else kind.removesuffix("s")


def _row(name: str, size: int, replace: bool, trigger: str, user: User | None) -> InventoryLoad:
    return InventoryLoad(
        name=_shown_name(name), size=size, replace=replace, trigger=trigger, requested_by=user
    )


def _look(row: InventoryLoad, content: bytes, body: bytes) -> None:
    try:
        result = inventory.preview(inventory.read_document(content), row.replace)
    except inventory.InventoryError as refusal:
        _refuse(row, refusal)
        return
    _tell(row, result)
    row.body = body


def _tell(row: InventoryLoad, result: LoadResult) -> None:
    told = result.as_json()
    row.counts = {what: told[what] for what in (*HAPPENED, "unchanged")}
    row.changes = changes_told(result.difference)
    row.warnings = result.warning_lines(LINES_KEPT)


def _end(row: InventoryLoad, state: InventoryLoad.State) -> None:
    row.state = state
    row.body = None
    row.finished_at = timezone.now()
    row.save()


def _refuse(row: InventoryLoad, refusal: DeskError) -> None:
    errors = refusal.fields or {"document": [refusal.message]}
    row.errors = dict(list(errors.items())[:LINES_KEPT])
    if len(errors) > LINES_KEPT:
        more = sum(len(messages) for messages in list(errors.values())[LINES_KEPT:])
        row.errors.setdefault("document", []).append(f"and {counted(more, 'more error')}")
    row.counts, row.changes, row.warnings = {}, {}, []
    row.state = State.REFUSED
    row.body = None
    row.finished_at = timezone.now()


def changes_told(difference: Difference) -> dict[str, Any]:
    """The difference as a row keeps it: numbers of all, the first of each by name, and its digest."""
    told: dict[str, Any] = {"digest": difference.digest()}
    for word in HAPPENED:
        told[word] = {}
        for kind in KINDS:
            if names := difference.names(word, kind):
                first = [{"name": one.name, "what": one.what} for one in names[:NAMES_KEPT]]
                told[word][kind] = {"count": len(names), "first": first}
    return told


def _shown_name(name: str) -> str:
    """A file's name as a label: on one line, without control characters, not endless."""
    clean = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in name.strip())
    clean = clean or "a document"
    return clean if len(clean) <= NAME_LENGTH else f"{clean[: NAME_LENGTH - 1]}…"


def _clear_away() -> None:
    """Delete files that nobody loaded within a day."""
    InventoryLoad.objects.filter(state=State.PREVIEW, created_at__lt=timezone.now() - BODY_KEPT).delete()


def _not_there(pk: int) -> DeskError:
    return DeskError(f"load {pk} is not there to be loaded any more", code="conflict", status=409)
