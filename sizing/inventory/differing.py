"""What loading a document would change, object by object, told by name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from typing import Any

from sizing.inventory.applying.measurements import planned
from sizing.inventory.applying.rows import Changes
from sizing.inventory.document import (
    Document,
    MeasurementEntry,
    NodeEntry,
    ReplicaEntry,
    VariantEntry,
)

HAPPENED = ("created", "updated", "removed")
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Changed:
    """One object by name; `what` changes of it in words, empty where it is new or goes.

    `key` finds it in a document: its name, owner and name, a target's question, what a measurement says, or
    of one that goes the place in the list of those that there were. `of` tells it from another one by the
    same name.
    """

    name: str
    what: str = ""
    key: Any = None
    of: str = ""


@dataclass(slots=True)
class Difference:
    """The objects that a load creates, updates and removes, by what happens to them and their kind."""

    happened: dict[str, dict[str, list[Changed]]] = field(default_factory=lambda: {w: {} for w in HAPPENED})
    unchanged: dict[str, int] = field(default_factory=dict)

    def note(self, word: str, kind: str, key: Any, name: str, what: str = "", of: str = "") -> None:
        self.happened[word].setdefault(kind, []).append(Changed(name, what, key, of))

    def names(self, word: str, kind: str) -> list[Changed]:
        """The objects of a kind to which this happens, in the document's order."""
        return self.happened[word].get(kind, [])

    def counts(self) -> Changes:
        """The numbers that a load of the document comes to."""
        changes = Changes()
        for kind, unchanged in self.unchanged.items():
            created, updated, removed = (len(self.names(word, kind)) for word in HAPPENED)
            of = unchanged + created + updated
            changes.note(kind, created=created, updated=updated, removed=removed, of=of)
        return changes

    def digest(self) -> str:
        """Alike where two differences say the same of the same objects."""
        found = hashlib.sha256()
        for word, kinds in self.happened.items():
            for kind in sorted(kinds):
                for one in sorted(kinds[kind], key=lambda one: (one.name, one.what)):
                    found.update("\0".join((word, kind, one.name, one.what, one.of, "\n")).encode())
        return found.hexdigest()


def differ(file: Document, stored: Document, *, replace: bool) -> Difference:
    """Compare a checked document, whose left-out lists are filled in, with what the tables hold."""
    found = Difference()
    _compare(found, "nodes", file.nodes, stored.nodes, replace)
    _compare(found, "gpus", _gpus(file), _gpus(stored), replace, file.nodes)
    _compare(found, "profiles", file.profiles, stored.profiles, replace)
    _compare(found, "models", file.models, stored.models, replace)
    _compare(found, "variants", _variants(file), _variants(stored), replace, file.models)
    _compare(found, "replicas", file.replicas, stored.replicas, replace)
    _compare(found, "targets", file.targets, stored.targets, replace)
    _compare_measurements(found, file, stored, replace)
    return found


def _compare(
    found: Difference,
    kind: str,
    file: Mapping[Any, Any],
    stored: Mapping[Any, Any],
    replace: bool,
    owners: Mapping[str, Any] | None = None,
) -> None:
    """Objects by key. Parts have (owner, name) as key; a file says all parts of the `owners` in it."""
    same = 0
    for key, entry in file.items():
        before = stored.get(key)
        if before is None:
            found.note("created", kind, key, _name(kind, key))
        elif before != entry:
            found.note("updated", kind, key, _name(kind, key), words(before, entry))
        else:
            same += 1
    for key, entry in stored.items():
        if key not in file and (replace or (owners is not None and key[0] in owners)):
            found.note("removed", kind, key, _name(kind, key), of=_identity(entry))
    found.unchanged[kind] = same


def _compare_measurements(found: Difference, file: Document, stored: Document, replace: bool) -> None:
    plan = planned(file.measurements, stored.measurements, range(len(stored.measurements)), replace)
    for entry in plan.new:
        found.note("created", "measurements", entry.key, _measurement(entry))
    for at in plan.again:
        entry = stored.measurements[at]
        found.note("updated", "measurements", entry.key, _measurement(entry), "its order")
    for at in plan.gone:
        found.note("removed", "measurements", at, _measurement(stored.measurements[at]))
    found.unchanged["measurements"] = len(file.measurements) - len(plan.store)


def _gpus(document: Document) -> dict[tuple[str, int], Any]:
    nodes = document.nodes.values()
    return {(node.name, index): gpu for node in nodes for index, gpu in (node.gpus or {}).items()}


def _variants(document: Document) -> dict[tuple[str, str], Any]:
    models = document.models.values()
    return {(model.name, name): v for model in models for name, v in (model.variants or {}).items()}


def _name(kind: str, key: Any) -> str:
    if kind == "gpus":
        return f"{key[0]} GPU {key[1]}"
    if kind == "targets":
        model, profile, variant = key
        return f"{model}{f' · {variant}' if variant else ''} on {profile or 'its own profile'}"
    return " · ".join(key) if kind == "variants" else str(key)


def _identity(entry: Any) -> str:
    """What makes a replica another one than the next by its name; others are told apart by their names."""
    return f"{entry.model} {entry.variant} {entry.placement}" if isinstance(entry, ReplicaEntry) else ""


def _measurement(entry: MeasurementEntry) -> str:
    rate, at = f"{entry.tok_per_sec.normalize():,f} tok/s", f"{entry.measured_at:%Y-%m-%d %H:%M}"
    return f"{entry.model} · {entry.variant} on {entry.profile}: {rate}, {at}"


# In words ----------------------------------------------------------------------------------------


def words(before: Any, after: Any) -> str:
    """What differs of two entries of one kind, such as `ready yes → no; labels: zone`."""
    return "; ".join(_different(before, after))


def _different(before: Any, after: Any) -> Iterator[str]:
    if isinstance(before, VariantEntry):
        yield from _different(before.spec, after.spec)
    for each in fields(before):
        if not each.compare or each.name == "spec":
            continue
        old, new = getattr(before, each.name), getattr(after, each.name)
        if old == new:
            continue
        label = _label(before, each.name)
        if isinstance(old, dict):
            keys = sorted(key for key in old | new if old.get(key) != new.get(key))
            yield f"{label}: {_cut(', '.join(keys))}"
        elif label == "kept by":
            yield f"{label} {old or 'hand'} → {new or 'hand'}"
        else:
            yield f"{label} {_said(old)} → {_said(new)}"


def _label(entry: Any, name: str) -> str:
    if name == "source" and not isinstance(entry, MeasurementEntry):
        return "kept by"
    if isinstance(entry, ReplicaEntry) and name == "placement":
        return "on"
    if isinstance(entry, NodeEntry) and name == "memory_mib":
        return "host memory MiB"
    said = name.replace("_", " ").replace("gpu", "GPU").replace("cpu", "CPU").replace("uuid", "UUID")
    return said.replace(" mib", " MiB").replace(" ms", " (ms)")


def _said(value: Any) -> str:
    if value is None or value == "" or value == ():
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, tuple):
        return _cut(", ".join(_part(part) for part in value))
    return _cut(str(value))


def _part(part: Any) -> str:
    """A taint or toleration, a pair of a selector, a replica's GPUs on a node, or a plain name."""
    if isinstance(part, tuple):
        name, value = part
        return f"{name} GPU {' '.join(map(str, value))}" if isinstance(value, tuple) else f"{name}={value}"
    if isinstance(part, str):
        return part
    return f"{part.key or ''}{'=' if part.value else ''}{part.value or ''}:{part.effect or 'any'}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
