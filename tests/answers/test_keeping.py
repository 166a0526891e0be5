"""Inventories are kept once for each revision, most of them as the difference to a base."""

from __future__ import annotations

import pytest

from sizing import snapshot
from sizing.models import KeptInventory, Node, Replica, ServedModel
from sizing.services.answers import keeping
from sizing.services.answers.document import Inventory, packed, whole
from tests import builders
from tests.answers.test_document import specs


def fleet_of(number: int) -> None:
    for i in range(number):
        builders.node(f"gpu-{i:03}", 1)


def now() -> Inventory:
    current = snapshot.current()
    return Inventory.of(current.catalog, current.fleet)


def kept_now() -> KeptInventory:
    current = snapshot.current()
    assert current.revision is not None
    return KeptInventory.objects.get(pk=keeping.keep(current.revision, now()))


def test_a_changed_fleet_is_kept_as_a_difference_that_reads_as_the_whole(llama: ServedModel) -> None:
    fleet_of(40)
    base = kept_now()
    Node.objects.filter(name="gpu-a2").update(ready=False)
    Replica.objects.get(name="llama-1").delete()
    builders.replica("llama-2", llama.variants.get(), Node.objects.get(name="gpu-a2"), (0, 1, 2, 3))
    llama.priority = 7
    llama.save()
    changed = kept_now()
    assert (base.base, changed.base) == (None, base)
    assert len(changed.body) < len(base.body) / 2
    assert specs(keeping.read(changed)) == specs(now())
    assert kept_now() == changed


def test_another_process_tells_its_differences_to_the_base_that_there_is(
    llama: ServedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet_of(40)
    base = kept_now()
    keeping.forget()
    Node.objects.filter(name="gpu-000").delete()
    Replica.objects.filter(name="llama-1").delete()
    monkeypatch.setattr(snapshot, "_kept", None)
    builders.node("gpu-new", 2)
    first = kept_now()
    Node.objects.filter(name="gpu-a1").update(schedulable=False)
    second = kept_now()
    assert first.base == second.base == base
    assert specs(keeping.read(second)) == specs(now())


def test_after_a_restore_no_difference_is_told_to_what_has_the_id_of_the_base(llama: ServedModel) -> None:
    fleet_of(40)
    kept_now()
    KeptInventory.objects.update(nonce=17, body=packed(whole(now()) | {"nodes": {}}))
    Node.objects.filter(name="gpu-a2").update(ready=False)
    assert specs(keeping.read(kept_now())) == specs(now())


def test_the_differences_to_a_base_take_no_more_room_than_it_does(llama: ServedModel) -> None:
    fleet_of(40)
    rows = []
    for ready in (False, True) * 8:
        Node.objects.filter(name__startswith="gpu-0").update(ready=ready)
        rows.append(kept_now())
    bases = [row for row in rows if row.base is None]
    assert 1 < len(bases) < len(rows)
    for base in bases:
        assert sum(len(row.body) for row in rows if row.base == base) <= len(base.body)
