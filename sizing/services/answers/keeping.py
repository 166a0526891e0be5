"""Inventories that answers rest on, kept once for each revision: mostly as the difference to a base."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from sizing.models import KeptInventory
from sizing.services.answers.document import (
    Document,
    Inventory,
    difference,
    inventory_of,
    merged,
    packed,
    sharing,
    unpacked,
    whole,
)
from sizing.snapshot import Revision


@dataclass
class _Base:
    """The inventory that this process tells differences to, and the bytes of these so far."""

    pk: int
    nonce: int
    inventory: Inventory
    size: int
    spent: int = 0


_base: _Base | None = None


def keep(revision: Revision, inventory: Inventory) -> int:
    """The id of the kept inventory of a revision, which is stored where it is not yet.

    The differences to one base take no more room than it does: then there is a new one.
    """
    global _base
    known = KeptInventory.objects.filter(revision=revision[0], nonce=revision[1])
    if pk := known.values_list("pk", flat=True).first():
        return pk
    # In a restored backup the id may be that of another inventory.
    stands = _base and KeptInventory.objects.filter(pk=_base.pk, nonce=_base.nonce, base=None).exists()
    base = _base if stands else _newest(inventory)
    if base is not None:
        body = packed(difference(base.inventory, inventory))
        if base.spent + len(body) <= base.size:
            base.spent += len(body)
            _base = base
            return _stored(revision, body, base.pk)
    body = packed(whole(inventory))
    pk = _stored(revision, body, None)
    _base = _Base(pk, revision[1], inventory, len(body))
    return pk


def forget() -> None:
    """Tell no more differences to the base that was: somebody may have removed it."""
    global _base
    _base = None


def read(row: KeptInventory) -> Inventory:
    """The inventory of a row; ValueError where a later or an earlier version of the desk wrote it."""
    return inventory_of(_document(row))


def _document(row: KeptInventory) -> Document:
    own = unpacked(bytes(row.body))
    return merged(unpacked(bytes(row.base.body)), own) if row.base else own


def _newest(now: Inventory) -> _Base | None:
    """The last base that any process stored."""
    row = KeptInventory.objects.filter(base=None).order_by("-id").first()
    if row is None:
        return None
    try:
        inventory = read(row)
    except ValueError:
        return None
    return _Base(row.pk, row.nonce, sharing(inventory, now, difference(inventory, now)), len(row.body))


def _stored(revision: Revision, body: bytes, base: int | None) -> int:
    """The id of the row, whoever was first to store this revision."""
    with transaction.atomic():
        row, _ = KeptInventory.objects.get_or_create(
            revision=revision[0], nonce=revision[1], defaults={"body": body, "base_id": base}
        )
    return row.pk
