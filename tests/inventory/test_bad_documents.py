"""Hundreds of damaged documents: whatever is wrong, one kind of error and nothing changed."""

from __future__ import annotations

import copy
import json
import random
from functools import partial
from typing import Any

import pytest

from sizing.services.inventory import dump_text, load_document
from sizing.services.inventory import load as load_bytes
from tests.inventory.documents import load, refusal, replica, sound

pytestmark = pytest.mark.django_db

JUNK: list[Any] = [
    None, True, 0, -1, 10**40, 1.5, float("inf"), float("nan"), "", "x", "\x00", "\ud800", "x" * 400, [],
    [[]], [None], {}, {"a": {}}, {"": None}, "1e999", b"bytes", object(), "0001-01-01T00:00:00+14:00", "９",
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every part of a document."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, part in parts for found in [(*path, key), *places(part, (*path, key))]]


def damaged(document: Any, chance: random.Random) -> Any:
    """A copy with one to three parts replaced, removed, doubled or renamed."""
    document = copy.deepcopy(document)
    for _ in range(chance.randint(1, 3)):
        spots = places(document)
        if not spots:
            break
        *parents, last = chance.choice(spots)
        place = document
        for key in parents:
            place = place[key]
        action = chance.choice(["junk", "junk", "junk", "remove", "double", "rename"])
        if action == "remove":
            del place[last]
        elif action == "double" and isinstance(place, list):
            place.append(copy.deepcopy(place[last]))
        elif action == "rename" and isinstance(place, dict):
            place[chance.choice(["x", "", 5, None, "a\nb"])] = place.pop(last)
        else:
            place[last] = chance.choice(JUNK)
    return document


def test_damaged_documents_are_refused_in_one_way_only() -> None:
    load(sound())
    chance = random.Random(20261130)
    base = sound(
        (
            "replicas.+",
            replica("x", "pair", ("gpu-a1", [3]), ("gpu-a2", [0]), started_at="2026-11-01T08:00:00Z"),
        ),
        ("nodes.0.taints", [{"key": "a", "value": "b", "effect": "NoSchedule"}]),
        ("models.0.variants.0.tolerations", [{"key": "a", "operator": "Exists"}]),
    )
    refused = []
    for _ in range(500):
        document, replace = damaged(base, chance), chance.random() < 0.5
        error = refusal(partial(load_document, document, replace))
        if error:
            refused.append(error)
            json.dumps(error.fields).encode()
    assert len(refused) > 350


@pytest.mark.parametrize("kind", ["yaml", "json"])
def test_damaged_bytes_are_refused_in_one_way_only(kind: str) -> None:
    load(sound())
    text = dump_text(kind).encode()
    chance = random.Random(7)
    for _ in range(250):
        content = bytearray(text)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(content))
            content[at : at + chance.choice([0, 1, 1, 8])] = chance.choice(
                [
                    b"",
                    b"\x00",
                    b"\xff",
                    b"\n",
                    b"\t",
                    b"{",
                    b"]",
                    b'"',
                    b": ",
                    b"&a ",
                    b"- ",
                    b"9" * 20,
                    b"\xc2\x85",
                ]
            )
        refusal(partial(load_bytes, bytes(content), replace=True))
