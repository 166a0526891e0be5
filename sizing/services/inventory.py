"""Loading and dumping the inventory, and the rule for what replicas may hold."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from django.db import IntegrityError

from sizing.inventory.applying import Changes, apply
from sizing.inventory.checking import check_shape
from sizing.inventory.differing import Difference, differ
from sizing.inventory.document import Document, Findings, Problem, by_path, merged
from sizing.inventory.happened import events
from sizing.inventory.holding import check_holdings
from sizing.inventory.places import FilePlaces, StoredPlaces
from sizing.inventory.reading import LARGEST_DOCUMENT, read
from sizing.inventory.references import check_left_out, check_references, check_uuids
from sizing.inventory.stored import read_around, read_stored
from sizing.inventory.unusual import check_unusual
from sizing.inventory.words import counted, quoted
from sizing.inventory.writing import form, plain, to_json
from sizing.inventory.yaml_reading import UnreadableError
from sizing.inventory.yaml_writing import to_yaml
from sizing.models import Placement, Replica
from sizing.models.history import Event
from sizing.models.locking import inventory_lock
from sizing.models.reads import consistent_reads
from sizing.services.errors import DeskError

KINDS = ("nodes", "gpus", "profiles", "models", "variants", "measurements", "replicas", "targets")
"""Kinds of objects, in the order of a report."""


class InventoryError(DeskError):
    """A document that is refused; nothing was changed. `fields` has the errors by path."""

    def __init__(self, problems: list[Problem], more: int = 0) -> None:
        self.problems = problems
        self.total = len(problems) + more
        if self.total == 1:
            message = f"{problems[0]}; nothing was changed"
        else:
            message = f"the inventory has {counted(self.total, 'error')}; nothing was changed"
        fields = by_path(problems)
        if more:
            fields.setdefault("document", []).append(f"and {counted(more, 'more error')}")
        super().__init__(message, fields=fields)


@dataclass(frozen=True)
class LoadResult:
    """What a load did, or would do: numbers by kind of object, each by name, and what looks odd.

    `events` is what it did, for the history; empty where that is too much to be told object by object.
    """

    changes: Changes
    difference: Difference
    warnings: list[Problem]
    more_warnings: int = 0
    events: list[Event] = field(default_factory=list)

    @property
    def changed(self) -> int:
        """Objects created, updated or removed."""
        changes = self.changes
        return changes.created.total() + changes.updated.total() + changes.removed.total()

    def warning_lines(self, most: int | None = None) -> list[str]:
        """The warnings in one line each, at most so many, and then how many more."""
        lines = [str(warning) for warning in self.warnings[:most]]
        more = len(self.warnings) - len(lines) + self.more_warnings
        return [*lines, f"and {counted(more, 'more warning')}"] if more else lines

    def as_json(self) -> dict[str, Any]:
        """Counts by kind, and warnings in one line each."""
        changes = self.changes
        return {
            "created": {kind: changes.created[kind] for kind in KINDS},
            "updated": {kind: changes.updated[kind] for kind in KINDS},
            "removed": {kind: changes.removed[kind] for kind in KINDS},
            "unchanged": {kind: changes.unchanged[kind] for kind in KINDS},
            "warnings": self.warning_lines(),
        }


class ChangedMeanwhileError(DeskError):
    """A load would do something else than was looked at; `result` says what."""

    def __init__(self, result: LoadResult) -> None:
        self.result = result
        super().__init__(
            "the inventory changed meanwhile, and the load would do something else now; nothing was changed",
            code="conflict",
            status=409,
        )


def load(document_bytes: bytes, replace: bool = False) -> LoadResult:
    """Load a document as it stands in a file: JSON or YAML. Raises `InventoryError`."""
    return load_document(read_document(document_bytes), replace)


def read_document(document_bytes: bytes) -> object:
    """The plain document (mappings, lists, texts, numbers) of a file. Raises `InventoryError`."""
    try:
        return read(document_bytes)
    except UnreadableError as error:
        raise InventoryError([Problem("", str(error))]) from None


def preview(document: object, replace: bool = False) -> LoadResult:
    """What `load_document` would do, with nothing written. Raises `InventoryError`."""
    findings = Findings()
    file = check_shape(document, findings)
    with consistent_reads():
        stored = read_stored()
    _check(file, stored.document, findings, replace)
    difference = differ(file, stored.document, replace=replace)
    return LoadResult(difference.counts(), difference, findings.warnings, findings.more_warnings)


def load_document(document: object, replace: bool = False, *, expected: str | None = None) -> LoadResult:
    """Load a plain document, all of it or nothing. Raises `InventoryError`.

    Objects are matched by name and described whole: keys left out take their defaults. Only a node's `gpus`
    and a model's `variants` stay as they are where the key is left out. With `replace` all objects that the
    document leaves out are removed. `expected`, the digest of a difference that somebody looked at:
    `ChangedMeanwhileError` where it would be another one now.
    """
    findings = Findings()
    file = check_shape(document, findings)
    try:
        with inventory_lock():
            stored = read_stored()
            _check(file, stored.document, findings, replace)
            difference = differ(file, stored.document, replace=replace)
            if expected not in (None, difference.digest()):
                raise ChangedMeanwhileError(
                    LoadResult(difference.counts(), difference, findings.warnings, findings.more_warnings)
                )
            changes = apply(file, stored, replace=replace)
    except IntegrityError:
        # The checks have the tables' rules; so another writer was there who does not take the lock.
        raise DeskError(
            "somebody else changed the inventory meanwhile; nothing was changed, load it again",
            code="conflict",
            status=409,
        ) from None
    happened = events(difference, stored)
    return LoadResult(changes, difference, findings.warnings, findings.more_warnings, happened)


def _check(file: Document, stored: Document, findings: Findings, replace: bool) -> None:
    """Check the state that the load would leave. Raises `InventoryError`."""
    state = merged(Document() if replace else stored, file)
    check_references(file, state, findings)
    check_uuids(file, state, findings)
    if not replace:
        check_left_out(file, stored, state, findings)
    check_holdings(state, FilePlaces(), findings)
    if findings.errors:
        raise InventoryError(findings.errors, findings.more_errors)
    check_unusual(state, FilePlaces(), findings)


def read_file(path: str | Path) -> bytes:
    """The content of a file. Raises `InventoryError` where it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return read_at_most(file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        name = str(path) if str(path).isprintable() else quoted(str(path))
        raise InventoryError([Problem("", f"cannot read {name}: {reason}")]) from None


def read_at_most(file: BinaryIO) -> bytes:
    """The content of a file, no more of it than shows that it is too large."""
    return file.read(LARGEST_DOCUMENT + 1)


def dump() -> dict[str, Any]:
    """The whole inventory in the file's form, with plain numbers."""
    document: dict[str, Any] = plain(_form())
    return document


def dump_text(kind: str = "yaml") -> str:
    """The whole inventory as YAML or JSON, every number exact."""
    return to_json(_form()) if kind == "json" else to_yaml(_form())


def _form() -> dict[str, Any]:
    # Several queries, as of one moment.
    with consistent_reads():
        return form(read_stored().document)


# One rule for REST and admin ---------------------------------------------------------------------


def check_nodes(node_ids: Collection[int], replica_ids: Collection[int] = ()) -> Findings:
    """What is wrong (`errors`) or odd (`warnings`) about what is held on these nodes and by these replicas.

    To be called after a write, inside its transaction, which is to be undone where there are errors.
    """
    findings = Findings()
    state = read_around(node_ids, replica_ids)
    check_holdings(state, StoredPlaces(), findings)
    return findings


def check_variant(variant_id: int) -> Findings:
    """`check_nodes` for everything that runs this variant."""
    nodes = Placement.objects.filter(replica__variant_id=variant_id).values_list("gpu__node_id", flat=True)
    replicas = Replica.objects.filter(variant_id=variant_id).values_list("pk", flat=True)
    return check_nodes(set(nodes), set(replicas))
