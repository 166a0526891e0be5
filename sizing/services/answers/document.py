"""Catalog and fleet as a JSON document, whole or as what differs from another one.

A document has sections (nodes, replicas, models, profiles, measured, unmet), and each has by name what the
domain's values hold, without what is as their class has it by default. In a difference, null is what is gone.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any, cast

from sizing.domain.catalog import Catalog
from sizing.domain.fleet import Fleet, Held
from sizing.domain.overlay import Overlay
from sizing.domain.specs import (
    GpuSpec,
    MeasurementSpec,
    ModelSpec,
    NodeSpec,
    ProfileSpec,
    ReplicaSpec,
    Taint,
    Toleration,
    VariantSpec,
)

VERSION = 1

Document = dict[str, dict[str, Any]]
"""Sections by name, and what they hold by name: domain values on the way out, plain ones on the way in."""

_AT_ONCE = 200
"""Entries that become text in one step: other threads wait for as long as that takes."""


@dataclass(frozen=True)
class Inventory:
    """What answers rest on at one moment, as the snapshot has it; it keeps no array of a fleet alive."""

    nodes: tuple[NodeSpec, ...]
    replicas: Overlay[str, Held]
    catalog: Catalog

    @classmethod
    def of(cls, catalog: Catalog, fleet: Fleet) -> Inventory:
        """Of a fleet; it costs nothing."""
        return cls(fleet.hardware.nodes, cast(Overlay[str, Held], fleet.replicas), catalog)

    def fleet(self) -> Fleet:
        """A fleet of its own, built anew."""
        return Fleet.build(
            self.nodes, self.catalog.models.values(), [held.spec for held in self.replicas.values()]
        )


def whole(inventory: Inventory) -> Document:
    """All that an inventory holds."""
    catalog = inventory.catalog
    return {
        "models": dict(catalog.models),
        "profiles": dict(catalog.profiles),
        "measured": _by_text(catalog.measured),
        "unmet": _by_text(catalog.unmet),
        "nodes": {node.name: node for node in inventory.nodes},
        "replicas": {name: held.spec for name, held in inventory.replicas.items()},
    }


def difference(base: Inventory, now: Inventory) -> Document:
    """What of `now` is other than in `base`, and what is gone; sections that are alike are left out.

    Most of a large fleet is the very same objects in both, which is seen without a look into them.
    """
    sections: Document = {}
    if base.catalog is not now.catalog:
        old, new = base.catalog, now.catalog
        sections["models"] = _other(old.models, new.models)
        sections["profiles"] = _other(old.profiles, new.profiles)
        sections["measured"] = _other(_by_text(old.measured), _by_text(new.measured))
        sections["unmet"] = _other(_by_text(old.unmet), _by_text(new.unmet))
    if base.nodes is not now.nodes:
        sections["nodes"] = _other({n.name: n for n in base.nodes}, {n.name: n for n in now.nodes})
    replicas = {}
    for name in now.replicas.differing(base.replicas):
        before, after = base.replicas.get(name), now.replicas.get(name)
        spec = after.spec if after else None
        if before is None or before.spec != spec:
            replicas[name] = spec
    sections["replicas"] = replicas
    return {name: section for name, section in sections.items() if section}


def sharing(base: Inventory, now: Inventory, other: Document) -> Inventory:
    """`base` with the objects of `now` wherever both are alike: `other` is their difference.

    Then the next difference is found as quickly as between two snapshots of one process.
    """
    replicas = now.replicas.changed({name: base.replicas.get(name) for name in other.get("replicas", ())})
    nodes = now.nodes
    if "nodes" in other:
        new = {node.name: node for node in now.nodes}
        nodes = tuple(
            node if node.name in other["nodes"] else new.get(node.name, node) for node in base.nodes
        )
    same_catalog = not {"models", "profiles", "measured", "unmet"} & other.keys()
    return Inventory(nodes, replicas, now.catalog if same_catalog else base.catalog)


def merged(base: Document, other: Document) -> Document:
    """A plain document with a plain difference brought in."""
    result = {}
    for name in base | other:
        section = base.get(name, {}) | other.get(name, {})
        result[name] = {key: value for key, value in section.items() if value is not None}
    return result


def packed(document: Document) -> bytes:
    """A document as compressed JSON, made bit by bit: a large one would keep other threads waiting."""
    compress = zlib.compressobj()
    return b"".join(compress.compress(text.encode()) for text in _pieces(document)) + compress.flush()


def unpacked(body: bytes) -> Document:
    """The plain document of a body; ValueError where it is of another version."""
    found: dict[str, Any] = json.loads(zlib.decompress(body))
    if found.pop("version", None) != VERSION:
        raise ValueError("the kept inventory is of another version of the desk")
    return found


def inventory_of(document: Document) -> Inventory:
    """The inventory that a plain document tells of."""

    def values(section: str, made: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        return {name: made(told) for name, told in document.get(section, {}).items()}

    replicas = values("replicas", _replica)
    return Inventory(
        tuple(node for _, node in sorted(values("nodes", _node).items())),
        Overlay({name: Held(spec, (), ()) for name, spec in replicas.items()}),
        Catalog(
            models=dict(sorted(values("models", _model).items())),
            profiles=dict(sorted(values("profiles", _profile).items())),
            measured={_key(m): m for m in values("measured", _measurement).values()},
            unmet={_key(m): m for m in values("unmet", _measurement).values()},
        ),
    )


# Out ------------------------------------------------------------------------------------------------


def _key(measured: MeasurementSpec) -> tuple[str, str, str]:
    return measured.model, measured.variant, measured.profile


def _by_text(measured: Mapping[tuple[str, str, str], MeasurementSpec]) -> dict[str, MeasurementSpec]:
    return {"\n".join(key): value for key, value in measured.items()}


def _other(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    other = {
        name: value for name, value in new.items() if (was := old.get(name)) is not value and was != value
    }
    return other | dict.fromkeys(old.keys() - new.keys())


def _pieces(document: Document) -> Iterator[str]:
    yield f'{{"version":{VERSION}'
    for section, entries in document.items():
        yield f',"{section}":{{'
        begin, bit = "", {}
        for name, value in entries.items():
            bit[name] = _plain(value)
            if len(bit) == _AT_ONCE:
                yield begin + _text(bit)[1:-1]
                begin, bit = ",", {}
        if bit:
            yield begin + _text(bit)[1:-1]
        yield "}"
    yield "}"


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _plain(value: Any) -> Any:
    """A domain value as JSON has it."""
    match value:
        case None | str() | bool() | int():
            return value
        case tuple():
            return [_plain(one) for one in value]
        case Decimal():
            return str(value)
        case datetime():
            return value.isoformat()
    if is_dataclass(value):
        told = {}
        for name, default in _defaults(value.__class__):
            own = getattr(value, name)
            if own is not default and own != default:
                told[name] = _plain(own)
        return told
    return dict(value)


@cache
def _defaults(kind: type) -> tuple[tuple[str, Any], ...]:
    """The fields of a class, each with its default; with itself, like no value, where it has none."""

    def default(field: Field[Any]) -> Any:
        if field.default_factory is not MISSING:
            return field.default_factory()
        return field if field.default is MISSING else field.default

    return tuple((field.name, default(field)) for field in fields(kind))


# In -------------------------------------------------------------------------------------------------


def _many(kind: Callable[..., Any], told: dict[str, Any], name: str) -> None:
    if name in told:
        told[name] = tuple(kind(**one) for one in told[name])


def _decimal(told: dict[str, Any], name: str) -> None:
    if name in told:
        told[name] = Decimal(told[name])


def _time(told: dict[str, Any], name: str) -> None:
    if name in told:
        told[name] = datetime.fromisoformat(told[name])


def _node(told: dict[str, Any]) -> NodeSpec:
    _many(GpuSpec, told, "gpus")
    _many(Taint, told, "taints")
    return NodeSpec(**told)


def _replica(told: dict[str, Any]) -> ReplicaSpec:
    _time(told, "started_at")
    if "placement" in told:
        told["placement"] = tuple((node, tuple(indexes)) for node, indexes in told["placement"])
    return ReplicaSpec(**told)


def _model(told: dict[str, Any]) -> ModelSpec:
    told["variants"] = tuple(map(_variant, told.get("variants", ())))
    return ModelSpec(**told)


def _variant(told: dict[str, Any]) -> VariantSpec:
    _decimal(told, "gpu_memory_fraction")
    _many(Toleration, told, "tolerations")
    if "gpu_types" in told:
        told["gpu_types"] = tuple(told["gpu_types"])
    if "node_selector" in told:
        told["node_selector"] = tuple((key, value) for key, value in told["node_selector"])
    return VariantSpec(**told)


def _profile(told: dict[str, Any]) -> ProfileSpec:
    _decimal(told, "refresh_every_h")
    return ProfileSpec(**told)


def _measurement(told: dict[str, Any]) -> MeasurementSpec:
    _decimal(told, "tok_per_sec")
    _time(told, "measured_at")
    told["warnings"] = tuple(told.get("warnings", ()))
    return MeasurementSpec(**told)
