"""The shape of an inventory file: keys, types, numbers, names and duplicates, each error with its path."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any, TypeVar

from django.utils import timezone

from sizing.domain.specs import VariantSpec
from sizing.inventory import scheduling
from sizing.inventory.document import (
    VERSION,
    Document,
    Findings,
    MeasurementEntry,
    ModelEntry,
    NodeEntry,
    ProfileEntry,
    ReplicaEntry,
    TargetEntry,
    VariantEntry,
)
from sizing.inventory.fields import REQUIRED, Fields, text_problem
from sizing.inventory.node_checking import read_node
from sizing.inventory.words import quoted, shown
from sizing.models.catalog import PRIORITY_LIMIT
from sizing.models.fields import (
    LARGEST_COUNT,
    LARGEST_RATE,
    endpoint_problem,
    model_name_problem,
    name_problem,
)

ONE = Decimal(1)
LARGEST_DECIMAL = Decimal(LARGEST_COUNT)
CLOCKS_DIFFER_BY = timedelta(minutes=5)
STATES = ("pending", "starting", "ready", "draining", "failed")
T = TypeVar("T")


def check_shape(raw: Any, findings: Findings) -> Document:
    """Read a plain document into entries; what is wrong with it goes to the findings."""
    document = Document()
    fields = Fields(findings, raw, "")
    if not fields.is_mapping:
        return document
    version = fields.raw("version", REQUIRED)
    if version is not REQUIRED and (type(version) is not int or version != VERSION):
        fields.error("version", f"must be {VERSION}, not {shown(version)}")
    for section in ("nodes", "profiles", "models"):
        if not isinstance(fields.raw(section), list | tuple | None):
            document.unread.add(section)
    _named(fields, "nodes", _node_reader(), document.nodes)
    _named(fields, "profiles", _read_profile, document.profiles)
    _named(fields, "models", _read_model, document.models)
    _read_measurements(fields, document)
    _named(fields, "replicas", _read_replica, document.replicas)
    _read_targets(fields, document)
    fields.done()
    return document


def _named(fields: Fields, section: str, read: Callable[[Fields, int], T | None], into: dict[str, T]) -> None:
    """Read a section of named objects."""
    first: dict[str, int] = {}
    for i, child in enumerate(fields.children(section)):
        entry: Any = read(child, i) if child.is_mapping else None
        if entry is None:
            continue
        if entry.name in first:
            child.error("name", f"{quoted(entry.name)} is also {section}[{first[entry.name]}]")
            continue
        first[entry.name] = i
        into[entry.name] = entry


def _node_reader() -> Callable[[Fields, int], NodeEntry | None]:
    """Reads nodes and keeps count of their GPUs."""
    gpus = 0

    def read(fields: Fields, at: int) -> NodeEntry | None:
        nonlocal gpus
        node = read_node(fields, at, gpus)
        gpus += len(node.gpus or {}) if node else 0
        return node

    return read


def _read_profile(fields: Fields, at: int) -> ProfileEntry | None:
    name = fields.name("name", name_problem)
    slo = fields.child("slo")
    entry = ProfileEntry(
        name=name,
        input_tokens=fields.whole("input_tokens", REQUIRED, 1),
        output_tokens=fields.whole("output_tokens", REQUIRED, 1),
        ttft_ms=slo.number("ttft_ms", None, LARGEST_DECIMAL, most=False),
        itl_ms=slo.number("itl_ms", None, LARGEST_DECIMAL, most=False),
        e2e_ms=slo.number("e2e_ms", None, LARGEST_DECIMAL, most=False),
        percentile=slo.number("percentile", Decimal(95), Decimal(100)),
        arrival=fields.choice("arrival", ("poisson", "concurrency"), "poisson"),
        refresh_every_h=fields.number("refresh_every_h", None, LARGEST_DECIMAL, most=False),
        at=at,
    )
    slo.done()
    if not slo.broken and (entry.ttft_ms, entry.itl_ms, entry.e2e_ms) == (None, None, None):
        fields.error("slo", "must have at least one limit: ttft_ms, itl_ms or e2e_ms")
    fields.done()
    return entry if name is not None else None


def _read_model(fields: Fields, at: int) -> ModelEntry | None:
    name = fields.name("name", model_name_problem)
    entry = ModelEntry(
        name=name,
        priority=fields.whole("priority", 0, -PRIORITY_LIMIT - 1, PRIORITY_LIMIT),
        preemption_policy=fields.choice(
            "preemption_policy", ("PreemptLowerPriority", "Never"), "PreemptLowerPriority"
        ),
        min_replicas=fields.whole("min_replicas", 0),
        max_replicas=fields.whole("max_replicas", None),
        default_profile=fields.name("default_profile", name_problem, default=None),
        workload=fields.choice("workload", ("model", "other"), "model"),
        owner=fields.text("owner"),
        source=fields.source(),
        at=at,
    )
    if fields.has("variants"):
        entry.variants = {}
        entry.broken = not isinstance(fields.raw("variants"), list | tuple | None)
        for position, child in enumerate(fields.children("variants")):
            variant = _read_variant(child, position) if child.is_mapping else None
            if variant is None:
                entry.broken = True
            elif variant.name in entry.variants:
                other = entry.variants[variant.name].position
                child.error("name", f"{quoted(variant.name)} is also {fields.at('variants')}[{other}]")
            else:
                entry.variants[variant.name] = variant
    fields.done()
    return entry if name is not None else None


def _read_variant(fields: Fields, position: int) -> VariantEntry | None:
    name = fields.name("name", name_problem)
    shape = {
        "gpus": fields.whole("gpus", 1, 1),
        "nodes": fields.whole("nodes", 1, 1),
        "gpu_memory_mib": fields.whole("gpu_memory_mib", None, 1),
        "gpu_memory_fraction": fields.number("gpu_memory_fraction", None, ONE),
    }
    unsure = fields.broken
    spec = VariantSpec(
        name=name,
        **shape,
        gpu_types=fields.texts("gpu_types", name_problem, unique=True),
        node_selector=tuple(sorted(scheduling.read_labels(fields, "node_selector").items())),
        tolerations=scheduling.read_tolerations(fields, "tolerations"),
        cpu_millis=fields.whole("cpu_millis", 0),
        memory_mib=fields.whole("memory_mib", 0),
        topology_key=fields.name("topology_key", scheduling.key_problem, default=None),
    )
    source = fields.source()
    fields.done()
    return VariantEntry(spec, position, source, in_file=True, broken=unsure) if name is not None else None


def _read_measurements(fields: Fields, document: Document) -> None:
    seen: dict[Any, str] = {}
    future = timezone.now() + CLOCKS_DIFFER_BY
    for i, child in enumerate(fields.children("measurements")):
        if not child.is_mapping:
            continue
        entry = MeasurementEntry(
            model=child.name("model", name_problem) or "",
            variant=child.name("variant", name_problem) or "",
            profile=child.name("profile", name_problem) or "",
            tok_per_sec=child.number("tok_per_sec", REQUIRED, LARGEST_RATE, zero=True),
            measured_at=child.time("measured_at", REQUIRED),
            source=child.text("source", "manual"),
            bound=child.choice("bound", ("edge", "floor"), None),
            engine=child.text("engine"),
            warnings=child.texts("warnings", text_problem),
            slo_met=child.flag("slo_met", True),
            at=i,
        )
        child.done()
        if entry.measured_at > future:
            moment = f"{entry.measured_at:%Y-%m-%dT%H:%M:%SZ}"
            child.findings.warn(child.at("measured_at"), f"{moment} lies in the future")
        if not child.broken:
            first = seen.setdefault(entry.key, child.path)
            if first != child.path:
                child.error("", f"is the same as {first}")
        if entry.model and entry.variant and entry.profile:
            document.measurements.append(entry)


def _read_replica(fields: Fields, at: int) -> ReplicaEntry | None:
    name = fields.name("name", name_problem)
    entry = ReplicaEntry(
        name=name,
        model=fields.name("model", name_problem) or "",
        variant=fields.name("variant", name_problem) or "",
        state=fields.choice("state", STATES, "ready"),
        at=at,
    )
    entry.placement = tuple(sorted(_read_placement(fields, entry)))
    entry.broken = fields.broken
    entry.started_at = fields.time("started_at", None)
    entry.endpoint = fields.text("endpoint", longest=500, problem_of=endpoint_problem)
    entry.benchable = fields.flag("benchable", False)
    entry.priority = fields.whole("priority", None, -PRIORITY_LIMIT - 1, PRIORITY_LIMIT)
    entry.source = fields.source()
    fields.done()
    return entry if name is not None else None


def _read_placement(fields: Fields, entry: ReplicaEntry) -> list[tuple[str, tuple[int, ...]]]:
    placement: list[tuple[str, tuple[int, ...]]] = []
    for child in fields.children("placement"):
        node = child.name("node", name_problem) if child.is_mapping else None
        indexes: list[int] = []
        for i, value in enumerate(child.items("gpus")):
            place = f"gpus[{i}]"
            index = child.whole_value(place, value, 0, LARGEST_COUNT, None)
            if index is None or node is None:
                continue
            if index in indexes:
                child.error(place, f"GPU {index} stands here twice")
            else:
                indexes.append(index)
                entry.spots[node, index] = child.at(place)
        if child.is_mapping:
            if not indexes and not child.broken:
                child.error("gpus", "must name at least one GPU")
            child.done()
        if node is not None and any(node == other for other, _ in placement):
            child.error("node", f"{quoted(node)} stands here twice")
        elif node is not None:
            entry.spots[node, None] = child.at("node")
            placement.append((node, tuple(sorted(indexes))))
        fields.broken |= child.broken
    return placement


def _read_targets(fields: Fields, document: Document) -> None:
    for i, child in enumerate(fields.children("targets")):
        if not child.is_mapping:
            continue
        entry = TargetEntry(
            model=child.name("model", name_problem) or "",
            profile=child.name("profile", name_problem, default=None),
            variant=child.name("variant", name_problem, default=None),
            utilization=child.number("utilization", ONE, ONE),
            tokens_per_sec=child.number("tokens_per_sec", REQUIRED, LARGEST_RATE),
            at=i,
        )
        child.done()
        if not entry.model:
            continue
        first = document.targets.setdefault(entry.key, entry)
        if first is not entry and not child.broken:
            child.error("", f"asks the same as targets[{first.at}]")
