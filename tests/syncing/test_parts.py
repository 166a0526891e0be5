"""What an event changes of a listing."""

from __future__ import annotations

from typing import Any

from sizing.inventory.kubernetes import objects
from sizing.inventory.kubernetes.facts import Listing
from sizing.syncing import parts
from tests.syncing.made import pod


def item(name: str, **changes: Any) -> dict[str, Any]:
    found = pod(name)
    found["metadata"]["uid"] = name
    return {"kind": "Pod", "apiVersion": "v1", **found, **changes}


def facts_of(each: dict[str, Any]) -> Listing:
    facts = Listing()
    objects.add(facts, each)
    return facts


def change(part: Listing, each: dict[str, Any]) -> bool:
    return parts.change(part, each, facts_of(each))


UNREADABLE = {"spec": {"containers": [{"name": "x", "resources": {"requests": {"nvidia.com/gpu": "many"}}}]}}


def test_only_what_is_new_is_a_change():
    part = Listing()
    assert change(part, item("a"))
    assert not change(part, item("a"))
    assert change(part, item("a", status={"phase": "Succeeded"}))
    assert list(part.pods) == ["a"]
    assert part.duplicates == 0


def test_an_object_that_cannot_be_read_is_told_once_and_its_old_facts_are_gone():
    part = Listing()
    change(part, item("a"))
    assert change(part, item("a", **UNREADABLE))
    assert not change(part, item("a", **UNREADABLE))
    assert not part.pods
    assert [skipped.name for skipped in part.skipped] == ["llm/a"]
    assert change(part, item("b"))
    assert change(part, item("a"))
    assert part.skipped == []


def test_what_is_gone_was_there():
    part = Listing()
    change(part, item("a"))
    assert not parts.drop(part, item("b"), facts_of(item("b")))
    assert parts.drop(part, item("a"), facts_of(item("a")))
    assert not part.pods
    change(part, item("a", **UNREADABLE))
    assert parts.drop(part, item("a", **UNREADABLE), facts_of(item("a", **UNREADABLE)))
    assert part.skipped == []


def test_parts_make_a_whole_that_shares_no_table_with_them():
    one, two = Listing(kinds={"Node"}), Listing(kinds={"Pod"}, warnings=["of a part"])
    change(two, item("a"))
    whole = parts.merged([one, two], ["of the sync"])
    assert (whole.kinds, list(whole.pods)) == ({"Node", "Pod"}, ["a"])
    assert whole.warnings[:2] == ["of the sync", "of a part"]
    whole.pods.clear()
    assert list(two.pods) == ["a"]
