"""A small sound inventory, and ways to load one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from sizing.models import InventoryChange
from sizing.services.inventory import InventoryError, LoadResult, load_document

H100 = "NVIDIA-H100-80GB-HBM3"

SOUND: dict[str, Any] = {
    "version": 1,
    "nodes": [
        {
            "name": "gpu-a1",
            "labels": {"zone": "a"},
            "gpus": [{"type": H100, "memory_mib": 80000, "count": 4}],
        },
        {
            "name": "gpu-a2",
            "labels": {"zone": "b"},
            "gpus": [{"type": H100, "memory_mib": 80000, "count": 2}],
        },
    ],
    "profiles": [{"name": "chat", "input_tokens": 1024, "output_tokens": 256, "slo": {"ttft_ms": 500}}],
    "models": [
        {
            "name": "llama",
            "default_profile": "chat",
            "variants": [
                {"name": "tp2", "gpus": 2},
                {"name": "half", "gpu_memory_fraction": 0.5},
                {"name": "big", "gpu_memory_mib": 50000},
                {"name": "pair", "nodes": 2},
            ],
        }
    ],
    "measurements": [
        {
            "model": "llama",
            "variant": "tp2",
            "profile": "chat",
            "tok_per_sec": 1180.5,
            "measured_at": "2026-11-02T09:00:00Z",
        }
    ],
    "replicas": [
        {
            "name": "llama-0",
            "model": "llama",
            "variant": "tp2",
            "placement": [{"node": "gpu-a1", "gpus": [0, 1]}],
        },
        {
            "name": "llama-1",
            "model": "llama",
            "variant": "half",
            "placement": [{"node": "gpu-a1", "gpus": [2]}],
        },
    ],
    "targets": [{"model": "llama", "profile": "chat", "tokens_per_sec": 5000}],
}


def sound(*edits: tuple[str, Any]) -> dict[str, Any]:
    """The sound inventory with parts set by path: `("nodes.0.ready", False)`; `+` at the end of a list."""
    document = copy.deepcopy(SOUND)
    for path, value in edits:
        *parents, last = path.split(".")
        place: Any = document
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if last == "+":
            place.append(value)
        elif isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value
    return document


def replica(name: str, variant: str, *placement: tuple[str, list[int]], **more: Any) -> dict[str, Any]:
    """A replica of the sound inventory's model."""
    places = [{"node": node, "gpus": gpus} for node, gpus in placement]
    return {"name": name, "model": "llama", "variant": variant, "placement": places, **more}


def load(document: Any, replace: bool = False) -> LoadResult:
    return load_document(document, replace)


def errors(document: Any, replace: bool = False) -> list[str]:
    """What a document is refused for, each with its path; [] where it is accepted."""
    error = refusal(lambda: load_document(document, replace))
    return [str(problem) for problem in error.problems] if error else []


def refusal(load_it: Callable[[], LoadResult]) -> InventoryError | None:
    """How a load was refused, with nothing changed; None where it was not."""
    before = revision()
    try:
        load_it()
    except InventoryError as error:
        refused = error
    else:
        return None
    assert revision() == before
    assert (refused.code, refused.status) == ("invalid", 400)
    assert sum(map(len, refused.fields.values())) == len(refused.problems) > 0
    assert all("\n" not in line for line in [refused.message, *map(str, refused.problems)])
    return refused


def warnings(document: Any, replace: bool = False) -> list[str]:
    """What an accepted document is warned of."""
    return [str(warning) for warning in load_document(document, replace).warnings]


def revision() -> int:
    """The newest change that the database has logged."""
    newest = InventoryChange.objects.order_by("-id").first()
    return newest.pk if newest else 0
