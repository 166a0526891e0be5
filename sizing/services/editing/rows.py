"""What every write shares: the lock, refusals with a path, objects by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.db.models import Model, QuerySet

from sizing.inventory.words import quoted
from sizing.models import BenchProfile, Placement, ServedModel, Source, Variant
from sizing.models.locking import inventory_lock
from sizing.services import inventory
from sizing.services.editing.holders import holders_of
from sizing.services.errors import DeskError

Row = TypeVar("Row", bound=Model)
Given = Mapping[str, Any]

NODES_AT_ONCE = 500  # a query takes only so many parameters


@contextmanager
def writing() -> Iterator[None]:
    """The lock of all writers. What only the database itself noticed is a conflict."""
    try:
        with inventory_lock():
            yield
    except IntegrityError as error:
        raise conflict("somebody else changed this meanwhile; read it again and retry") from error


def row_of(table: type[Row], pk: int | None) -> Row:
    """A new row, or the stored one as it is under the lock."""
    if pk is None:
        return table()
    row = table._default_manager.filter(pk=pk).first()
    if row is None:
        raise DeskError(f"this {table._meta.verbose_name} is gone", code="not_found", status=404)
    return row


def assign(row: Model, given: Given) -> None:
    """Set the fields that are given."""
    for field, value in given.items():
        setattr(row, field, value)


def assign_by_hand(row: ServedModel | Variant, given: Given) -> None:
    """Set the fields that are given. What this changes of a row that the cluster's imports and syncs kept,
    they leave alone from then on."""
    columns = [field.attname for field in row._meta.concrete_fields]
    before = [getattr(row, column) for column in columns]
    assign(row, given)
    if before != [getattr(row, column) for column in columns]:
        row.source = Source.HAND


def save(row: Model) -> int:
    """Write one row that its own fields allow."""
    try:
        row.clean_fields(exclude=[f.name for f in row._meta.concrete_fields if f.is_relation])
    except ValidationError as error:
        raise refusal({path: [*map(str, found)] for path, found in error.message_dict.items()}) from None
    row.save()
    return int(row.pk)


def delete(row: Model) -> None:
    """Remove a row that nothing holds."""
    held = holders_of(row)
    if held:
        raise conflict(f"{row._meta.verbose_name} {quoted(str(row))} is in use by {held}")
    row.delete()


def conflict(message: str) -> DeskError:
    """A refusal because of what else there is."""
    return DeskError(message, code="conflict", status=409)


def wrong(path: str, message: str) -> DeskError:
    """One wrong field."""
    return refusal({path: [message]})


def refusal(fields: dict[str, list[str]]) -> DeskError:
    """Wrong fields; the first is in the message."""
    path, messages = next(iter(fields.items()))
    return DeskError(f"{path}: {messages[0]}", fields=fields)


def refuse_taken_name(row: Any) -> None:
    """Names are unique."""
    if type(row).objects.filter(name=row.name).exclude(pk=row.pk).exists():
        raise wrong("name", f"there is a {row._meta.verbose_name} {quoted(row.name)} already")


def model_named(name: str) -> ServedModel:
    """The model of that name."""
    model = ServedModel.objects.filter(name=name).first()
    if model is None:
        raise wrong("model", f"no model {quoted(name)}")
    return model


def profile_named(name: str | None, path: str) -> BenchProfile | None:
    """The profile of that name; none where the name is None."""
    if name is None:
        return None
    profile = BenchProfile.objects.filter(name=name).first()
    if profile is None:
        raise wrong(path, f"no profile {quoted(name)}")
    return profile


def variant_named(model: ServedModel, name: str) -> Variant:
    """The variant of that name of the model."""
    variant = model.variants.filter(name=name).first()
    if variant is None:
        raise wrong("variant", f"model {quoted(model.name)} has no variant {quoted(name)}")
    return variant


def nodes_of(placements: QuerySet[Placement]) -> set[int]:
    """Ids of the nodes that placements lie on."""
    return set(placements.values_list("gpu__node_id", flat=True).distinct())


def check_holdings(nodes: set[int], replica: int | None = None, path: str | None = None) -> None:
    """Refuse, and so undo, what adds up to more than GPUs hold, or is not of the variant's shape.

    `path` is the field that is at fault; without it, fields name the objects.
    """
    replicas = () if replica is None else (replica,)
    ids = sorted(nodes)
    fields: dict[str, list[str]] = {}
    for start in range(0, max(len(ids), 1), NODES_AT_ONCE):
        for problem in inventory.check_nodes(ids[start : start + NODES_AT_ONCE], replicas).errors:
            message = problem.message if path else problem.at_path
            fields.setdefault(path or problem.path, []).append(message)
    if fields:
        raise refusal(fields)
