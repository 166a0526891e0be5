"""The inventory as plain values: what a file says, what the tables hold, and the two merged.

Entries compare by what they say. `at` is the place in the file that an entry came from; `None` where it
comes from the tables. `broken` marks an entry of a file with an error in what others build on: a node's
GPUs, a model's list of variants, what a variant claims, what a replica holds. `source` says who keeps
an entry: "" people and their scripts, "kubernetes" the cluster's imports and syncs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from sizing.domain.specs import Taint, VariantSpec

VERSION = 1

MOST_PROBLEMS = 5_000
"""Errors, and warnings, that are told one by one."""


@dataclass(slots=True)
class GpuEntry:
    """One accelerator, or one slice of it; a run of `count` GPUs is that many entries."""

    index: int
    type: str
    memory_mib: int | None = None
    uuid: str = ""
    healthy: bool = True
    used_outside_mib: int = 0
    partition: bool = False
    at: int | None = field(default=None, compare=False)


@dataclass(slots=True)
class NodeEntry:
    """A machine. `gpus` by index; None: not said, those that there are stay."""

    name: str
    ready: bool = True
    schedulable: bool = True
    stale: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    cpu_millis: int | None = None
    memory_mib: int | None = None
    pods: int | None = None
    cost_per_hour: Decimal | None = None
    source: str = ""
    gpus: dict[int, GpuEntry] | None = field(default=None, compare=False)
    at: int | None = field(default=None, compare=False)
    broken: bool = field(default=False, compare=False)


@dataclass(slots=True)
class ProfileEntry:
    """A bench profile."""

    name: str
    input_tokens: int
    output_tokens: int
    ttft_ms: Decimal | None = None
    itl_ms: Decimal | None = None
    e2e_ms: Decimal | None = None
    percentile: Decimal = Decimal(95)
    arrival: str = "poisson"
    refresh_every_h: Decimal | None = None
    at: int | None = field(default=None, compare=False)


@dataclass(slots=True)
class VariantEntry:
    """One way to run a replica; `position` counts from 0 in order of preference."""

    spec: VariantSpec
    position: int
    source: str = ""
    in_file: bool = field(default=False, compare=False)
    broken: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        return self.spec.name


@dataclass(slots=True)
class ModelEntry:
    """A served model. `variants` by name, in order; None: not said, those that there are stay."""

    name: str
    priority: int = 0
    preemption_policy: str = "PreemptLowerPriority"
    min_replicas: int = 0
    max_replicas: int | None = None
    default_profile: str | None = None
    workload: str = "model"
    owner: str = ""
    source: str = ""
    variants: dict[str, VariantEntry] | None = field(default=None, compare=False)
    at: int | None = field(default=None, compare=False)
    broken: bool = field(default=False, compare=False)


MeasurementKey = tuple[str, str, str, Decimal, datetime, str, str | None, str, tuple[str, ...], bool]


@dataclass(slots=True)
class MeasurementEntry:
    """What a variant was measured to serve."""

    model: str
    variant: str
    profile: str
    tok_per_sec: Decimal
    measured_at: datetime
    source: str = "manual"
    bound: str | None = None
    engine: str = ""
    warnings: tuple[str, ...] = ()
    slo_met: bool = True
    at: int | None = field(default=None, compare=False)

    @property
    def key(self) -> MeasurementKey:
        """Measurements have no name: they are the same when all that they say is."""
        return (
            self.model,
            self.variant,
            self.profile,
            self.tok_per_sec,
            self.measured_at,
            self.source,
            self.bound,
            self.engine,
            self.warnings,
            self.slo_met,
        )


@dataclass(slots=True)
class ReplicaEntry:
    """A replica and its GPU indexes by node, both in order. `priority` None: its model's.

    `spots` are the places in the file of its nodes and GPUs, to name them in errors.
    """

    name: str
    model: str
    variant: str
    state: str = "ready"
    started_at: datetime | None = None
    endpoint: str = ""
    benchable: bool = False
    priority: int | None = None
    source: str = ""
    placement: tuple[tuple[str, tuple[int, ...]], ...] = ()
    at: int | None = field(default=None, compare=False)
    broken: bool = field(default=False, compare=False)
    spots: dict[tuple[str, int | None], str] = field(default_factory=dict, compare=False)


TargetKey = tuple[str, str | None, str | None]


@dataclass(slots=True)
class TargetEntry:
    """A saved wish."""

    model: str
    profile: str | None
    variant: str | None
    utilization: Decimal
    tokens_per_sec: Decimal
    at: int | None = field(default=None, compare=False)

    @property
    def key(self) -> TargetKey:
        return (self.model, self.profile, self.variant)


@dataclass(slots=True)
class Document:
    """A whole inventory. Objects by name, targets by question, measurements in order.

    `unread` are the sections of a file that are no lists, so that nothing is known of their names.
    """

    nodes: dict[str, NodeEntry] = field(default_factory=dict)
    profiles: dict[str, ProfileEntry] = field(default_factory=dict)
    models: dict[str, ModelEntry] = field(default_factory=dict)
    measurements: list[MeasurementEntry] = field(default_factory=list)
    replicas: dict[str, ReplicaEntry] = field(default_factory=dict)
    targets: dict[TargetKey, TargetEntry] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)

    def variant(self, model: str, variant: str) -> VariantEntry | None:
        """The variant of that model, or None."""
        owner = self.models.get(model)
        return (owner.variants or {}).get(variant) if owner else None


@dataclass(frozen=True, slots=True)
class Problem:
    """An error or a warning, with the path of what it is about."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.at_path}" if self.path else self.message

    @property
    def at_path(self) -> str:
        """The message as it stands beside its path: what the path names, it does not name again."""
        path, message = self.path, self.message
        for begin in (f"{path}: ", f"{path} "):
            if path and message.startswith(begin):
                return message.removeprefix(begin)
        head, of, rest = message.partition(f" of {path}: ")
        return f"{head}: {rest}" if path and of else message


@dataclass(slots=True)
class Findings:
    """What a check found: errors refuse the document, warnings do not. Beyond a number they only count."""

    errors: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    more_errors: int = 0
    more_warnings: int = 0

    def error(self, path: str, message: str) -> None:
        if len(self.errors) < MOST_PROBLEMS:
            self.errors.append(Problem(path, message))
        else:
            self.more_errors += 1

    def warn(self, path: str, message: str) -> None:
        if len(self.warnings) < MOST_PROBLEMS:
            self.warnings.append(Problem(path, message))
        else:
            self.more_warnings += 1


def merged(stored: Document, file: Document) -> Document:
    """What the tables hold after the file is loaded over them, object by object.

    Fills in the lists of GPUs and variants that the file does not say. Measurements are those of both.
    """
    for name, node in file.nodes.items():
        if node.gpus is None:
            there = stored.nodes.get(name)
            node.gpus = there.gpus if there else {}
    for name, model in file.models.items():
        if model.variants is None:
            known = stored.models.get(name)
            model.variants = known.variants if known else {}
    return Document(
        nodes=stored.nodes | file.nodes,
        profiles=stored.profiles | file.profiles,
        models=stored.models | file.models,
        measurements=[*stored.measurements, *file.measurements],
        replicas=stored.replicas | file.replicas,
        targets=stored.targets | file.targets,
        unread=file.unread,
    )


def by_path(problems: Iterable[Problem]) -> dict[str, list[str]]:
    """Messages by path, in order; what is about the whole is under `document`."""
    found: dict[str, list[str]] = {}
    for problem in problems:
        found.setdefault(problem.path or "document", []).append(problem.at_path)
    return found
