"""Suppositions: the cluster as if something were other than it is.

Each is one text: segments, percent-quoted, with colons between. They are supposed one after the other,
and what is so already changes nothing:

    uncordon:NODE               the node is not cordoned
    ready:NODE                  it is ready
    seen:NODE                   it is not stale
    healthy:NODE                all its GPUs are healthy
    nothing_outside:NODE        nothing but replicas uses its GPUs
    more_like:NODE              there is one more node of that kind, open and empty
    move:REPLICA:NODE           the replica runs there
    ended:REPLICA               the replica has ended
    max_replicas:N              of the model that is asked; `none`: without a limit
    min_replicas:MODEL:N        of that model
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import quote, unquote

from sizing.domain.catalog import Catalog, Question, QuestionError
from sizing.domain.fleet import Fleet, Held
from sizing.domain.moves import moved
from sizing.domain.specs import ModelSpec
from sizing.domain.wording import number

MOST_SUPPOSED = 20

FLAGS: dict[str, dict[str, bool]] = {
    "uncordon": {"schedulable": True},
    "nothing_outside": {"outside": False},
    "ready": {"ready": True},
    "seen": {"stale": False},
    "healthy": {"healthy": True},
}
"""What is supposed of a node, as `Hardware.as_if` takes it."""

FORMS = (
    *(f"{kind}:NODE" for kind in FLAGS),
    "more_like:NODE",
    "move:REPLICA:NODE",
    "ended:REPLICA",
    "max_replicas:N",
    "min_replicas:MODEL:N",
)
"""Each as it is written."""

_COUNT = re.compile(r"[0-9]{1,10}")
_MOST_REPLICAS = 2**31 - 1
_SHOWN = 100


class _WrongError(Exception):
    """What is wrong with a supposition."""


def supposition(kind: str, *segments: str) -> str:
    """The text of a supposition."""
    return ":".join([kind, *(quote(segment, safe="") for segment in segments)])


def supposed_too(before: tuple[str, ...], more: Iterable[str]) -> tuple[str, ...]:
    """Suppositions with more of them; a limit takes the place of an earlier one of the same model."""
    result = list(before)
    for text in more:
        limit = text.rpartition(":")[0]
        if limit.partition(":")[0] in ("max_replicas", "min_replicas"):
            result = [other for other in result if other.rpartition(":")[0] != limit]
        result.append(text)
    return tuple(result)


def suppose(catalog: Catalog, fleet: Fleet, question: Question) -> tuple[Catalog, Fleet]:
    """The catalog and the fleet as the question supposes them; QuestionError names what cannot be."""
    if len(question.as_if) > MOST_SUPPOSED:
        raise QuestionError("invalid", f"as_if may be given at most {MOST_SUPPOSED} times")
    for text in question.as_if:
        try:
            catalog, fleet = _supposed(catalog, fleet, question.model, _segments(text))
        except _WrongError as wrong:
            shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
            raise QuestionError("invalid", f'as_if "{shown}": {wrong}') from None
    return catalog, fleet


def in_words(text: str) -> str:
    """A supposition as it goes on after "as if"; the text itself where it is none."""
    match _segments(text):
        case ["uncordon", node]:
            return f"{node} were uncordoned"
        case ["ready", node]:
            return f"{node} were ready"
        case ["seen", node]:
            return f"{node} were seen again"
        case ["healthy", node]:
            return f"the GPUs of {node} were healthy"
        case ["nothing_outside", node]:
            return f"nothing ran outside replicas on {node}"
        case ["more_like", node]:
            return f"there were one more node like {node}"
        case ["move", replica, node]:
            return f"{replica} ran on {node}"
        case ["ended", replica]:
            return f"{replica} had ended"
        case ["max_replicas", "none"]:
            return "there were no max_replicas"
        case ["max_replicas", count]:
            return f"max_replicas were {count}"
        case ["min_replicas", model, count]:
            return f"min_replicas of {model} were {count}"
    return text


def _segments(text: str) -> list[str]:
    return [unquote(segment) for segment in text.split(":")]


def _supposed(catalog: Catalog, fleet: Fleet, asked: str, segments: list[str]) -> tuple[Catalog, Fleet]:
    match segments:
        case [kind, node] if kind in FLAGS:
            return catalog, fleet.as_if([_node(fleet, node)], told=True, **FLAGS[kind])
        case ["more_like", node]:
            return catalog, fleet.with_empty_node(fleet.hardware.nodes[_node(fleet, node)])
        case ["move", replica, node]:
            return catalog, _moved(fleet, _replica(fleet, replica), _node(fleet, node))
        case ["ended", replica]:
            return catalog, fleet.with_replicas(removed=[_replica(fleet, replica).spec.name])
        case ["max_replicas", count]:
            limit = None if count == "none" else _count(count)
            return _with_model(catalog, fleet, replace(catalog.model(asked), max_replicas=limit))
        case ["min_replicas", name, count]:
            if name not in catalog.models:
                raise _WrongError(f'no model "{name}"')
            least = replace(catalog.models[name], min_replicas=_count(count))
            return _with_model(catalog, fleet, least)
    raise _WrongError(f"there are {', '.join(FORMS)}, names percent-encoded")


def _node(fleet: Fleet, name: str) -> int:
    number = fleet.hardware.node_number.get(name)
    if number is None:
        raise _WrongError(f'no node "{name}"')
    return number


def _replica(fleet: Fleet, name: str) -> Held:
    held = fleet.replicas.get(name)
    if held is None:
        raise _WrongError(f'no replica "{name}"')
    return held


def _count(text: str) -> int:
    if not _COUNT.fullmatch(text) or int(text) > _MOST_REPLICAS:
        raise _WrongError(f"a whole number from 0 to {number(_MOST_REPLICAS)} is needed")
    return int(text)


def _moved(fleet: Fleet, held: Held, target: int) -> Fleet:
    if held.nodes == (target,):
        return fleet
    variant = fleet.models[held.spec.model].variant(held.spec.variant)
    if len(held.nodes) != 1 or variant.nodes != 1:
        raise _WrongError("only a replica on one node can be moved")
    then = moved(fleet, held, target)
    if then is None:
        node = fleet.hardware.nodes[target].name
        raise _WrongError(f"{node} takes no replica of {held.spec.model} · {variant.name}")
    return then


def _with_model(catalog: Catalog, fleet: Fleet, changed: ModelSpec) -> tuple[Catalog, Fleet]:
    return (
        replace(catalog, models={**catalog.models, changed.name: changed}),
        fleet.with_models({**fleet.models, changed.name: changed}),
    )
