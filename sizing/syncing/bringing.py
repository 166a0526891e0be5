"""A listed cluster into the tables: what would change, and the change itself, whole or not at all.

What people keep stays: profiles, measurements and targets always, models and variants that were made by
hand, nodes and replicas that the cluster does not know. A node goes only where a whole list, which has
nodes, is without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import IntegrityError

from sizing.inventory.applying import apply
from sizing.inventory.applying.gone import remove_models, remove_replicas_and_nodes
from sizing.inventory.document import Document, Findings, merged
from sizing.inventory.holding import check_holdings
from sizing.inventory.kubernetes.counted import Counted
from sizing.inventory.kubernetes.counting import count
from sizing.inventory.kubernetes.document import Brought, as_document
from sizing.inventory.kubernetes.facts import Listing
from sizing.inventory.kubernetes.mapping import Mapped, map_pods
from sizing.inventory.kubernetes.report import report
from sizing.inventory.kubernetes.rules import Rule
from sizing.inventory.places import StoredPlaces
from sizing.inventory.references import check_references, check_uuids
from sizing.inventory.stored import Stored, read_stored
from sizing.inventory.words import counted as plural
from sizing.models import ClusterSync, MappingRule
from sizing.models.fields import Source
from sizing.models.history import Event
from sizing.models.locking import inventory_lock
from sizing.models.reads import consistent_reads
from sizing.syncing import seen
from sizing.syncing.comparing import Difference, Gone, compare
from sizing.syncing.happened import Happened

KUBERNETES = Source.KUBERNETES.value


class RefusedError(Exception):
    """The list is not brought in; nothing was changed. The message is one line."""


class ConflictError(RefusedError):
    """Another writer was in the way; the same list may be brought in again."""


@dataclass(slots=True)
class Outcome:
    """What bringing in a list would change or has changed, and what is to be known of it.

    `rows` are numbers of rows by what happened to them and kind; None where nothing was written. `events` is
    what was done, for the history; empty where that is too much to be told object by object.
    """

    report: dict[str, Any]
    refusals: list[str] = field(default_factory=list)
    difference: Difference = field(default_factory=Difference)
    ignored: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    rows: dict[str, dict[str, int]] | None = None
    events: list[Event] = field(default_factory=list)

    @property
    def changes(self) -> dict[str, Any]:
        """The difference in plain values."""
        return {**self.difference.as_json(), "rows": self.rows}

    def as_json(self) -> dict[str, Any]:
        return {
            "refusals": self.refusals,
            "changes": self.changes,
            "ignored": self.ignored,
            "warnings": self.warnings,
            "report": self.report,
        }


def rules() -> list[Rule]:
    """The operator's rules in order."""
    rows = MappingRule.objects.filter(enabled=True).order_by("position", "pk")
    return [rule_of(row) for row in rows]


def rule_of(row: MappingRule) -> Rule:
    """A rule as the mapping takes it."""
    return Rule(row.name, row.by, row.pattern, row.key, row.namespace, row.model, row.variant)


def refusals(listing: Listing, *, partial: bool = False, live: bool = False) -> list[str]:
    """Why a list must not be brought in, in words.

    With `partial` it may be incomplete: what it leaves out stays. A `live` list comes from the cluster's
    own API kind by kind, so that no pods means that there are none; that it has no nodes is a fault.
    """
    found = []
    if listing.incomplete and not partial:
        found.append(f"the list is incomplete: {listing.incomplete} (list all, or take it as partial)")
    unread = sum(s.kind == "Pod" for s in listing.skipped)
    if listing.nodes and not listing.pods and unread and not partial:
        reason = next(s.reason for s in listing.skipped if s.kind == "Pod")
        found.append(f"no pod of the list can be read ({reason}), so that every GPU would look free")
    elif listing.nodes and not listing.pods and not partial and not (live and "Pod" in listing.kinds):
        found.append(
            "the list has nodes but no pods, so that every GPU would look free"
            " (list the pods too, or take it as partial)"
        )
    if live and not listing.nodes:
        found.append("the cluster lists no nodes; those that are known stay as they are")
    return found


@dataclass(slots=True)
class _Plan:
    """All that is to be done, from one look at the tables."""

    brought: Brought
    gone: Gone
    difference: Difference
    warnings: list[str]


def consider(listing: Listing, *, partial: bool = False) -> Outcome:
    """What bringing in the list would change. Nothing is written."""
    counted = count(listing)
    with consistent_reads():
        mapped = map_pods(counted, rules())
        plan = _plan(counted, mapped, read_stored(), partial)
    return _outcome(counted, plan, refusals(listing, partial=partial))


def bring(
    listing: Listing,
    *,
    partial: bool = False,
    live: bool = False,
    guard: Callable[[], None] | None = None,
    after: Callable[[Outcome], None] | None = None,
) -> Outcome:
    """Bring in the list in one transaction. Raises `RefusedError`; then nothing was changed.

    `guard` is called inside the transaction before anything is read, and `after` when all is written; both
    may raise to end it.
    """
    refused = refusals(listing, partial=partial, live=live)
    if refused:
        raise RefusedError("; ".join(refused))
    counted = count(listing)
    mapped = map_pods(counted, rules())
    try:
        with inventory_lock():
            if guard is not None:
                guard()
            stored = read_stored()
            plan = _plan(counted, mapped, stored, partial)
            outcome = _outcome(counted, plan, [])
            happened = Happened(plan.difference, stored, plan.brought.document)
            outcome.rows = _write(stored, plan)
            outcome.events = happened.events()
            _remember(seen.pack(counted, mapped))
            if after is not None:
                after(outcome)
    except IntegrityError:
        # The checks have the tables' rules; so another writer was there who does not take the lock.
        raise ConflictError("somebody else changed the inventory meanwhile; nothing was changed") from None
    return outcome


def _plan(counted: Counted, mapped: Mapped, stored: Stored, partial: bool) -> _Plan:
    listing, before = counted.listing, stored.document
    whole = bool(listing.nodes) and not partial
    # What could not be read is there all the same: it stays as it was known.
    unread_nodes = {s.name for s in listing.skipped if s.kind == "Node"}
    unread_pods = {s.name for s in listing.skipped if s.kind == "Pod"}
    staying = {
        name
        for name, entry in before.replicas.items()
        if entry.source == KUBERNETES
        and (not whole or name in unread_pods or any(node in unread_nodes for node, _ in entry.placement))
    }
    brought = as_document(counted, mapped, before, staying)
    document = brought.document
    _with_known_variants(document, before)
    gone_nodes: set[str] = set()
    gone_replicas = set(brought.displaced)
    if whole:
        gone_nodes = {
            name
            for name, node in before.nodes.items()
            if node.source == KUBERNETES and name not in document.nodes and name not in unread_nodes
        }
        gone_replicas |= {
            name
            for name, replica in before.replicas.items()
            if name not in document.replicas
            and name not in staying
            and (replica.source == KUBERNETES or any(node in gone_nodes for node, _ in replica.placement))
        }
    gone = Gone(
        frozenset(gone_nodes),
        frozenset(gone_replicas),
        frozenset(_unused_models(before, document, gone_replicas) if whole else ()),
    )
    warnings = [*counted.warnings, *brought.warnings]
    if before.nodes and not listing.nodes:
        warnings.append("the list has no nodes; nodes and replicas stay as they are")
    return _Plan(brought, gone, compare(before, document, gone), warnings)


def _with_known_variants(document: Document, stored: Document) -> None:
    """A model keeps the variants that it has; new ones come behind them."""
    for name, model in document.models.items():
        known = stored.models.get(name)
        if known is None or not known.variants:
            continue
        variants = dict(known.variants)
        next_position = 1 + max(v.position for v in variants.values())
        for variant_name, entry in (model.variants or {}).items():
            there = variants.get(variant_name)
            if there is None:
                variants[variant_name] = replace(entry, position=next_position)
                next_position += 1
            else:
                variants[variant_name] = replace(entry, position=there.position)
        model.variants = variants


def _unused_models(stored: Document, brought: Document, gone_replicas: set[str]) -> list[str]:
    """Other workloads that are over: they came with the cluster, and nothing of them is left."""
    used = {
        r.model
        for name, r in stored.replicas.items()
        if name not in gone_replicas and name not in brought.replicas
    }
    used |= {m.model for m in stored.measurements} | {t.model for t in stored.targets.values()}
    return [
        name
        for name, model in stored.models.items()
        if model.source == KUBERNETES
        and model.workload == "other"
        and name not in brought.models
        and name not in used
        and all(v.source == KUBERNETES for v in (model.variants or {}).values())
    ]


def _write(stored: Stored, plan: _Plan) -> dict[str, dict[str, int]]:
    removed = remove_replicas_and_nodes(stored, plan.gone.replicas, plan.gone.nodes)
    _check(stored.document, plan.brought.document)
    changes = apply(plan.brought.document, stored, replace=False)
    removed += remove_models(stored, plan.gone.models)
    changes.removed["objects the cluster has no more"] += removed
    return {
        "created": {kind: n for kind, n in changes.created.items() if n},
        "updated": {kind: n for kind, n in changes.updated.items() if n},
        "removed": {kind: n for kind, n in changes.removed.items() if n},
    }


def _check(stored: Document, document: Document) -> None:
    """The rules that every write to the inventory keeps."""
    for at, node in enumerate(document.nodes.values()):
        node.at = at
    for at, model in enumerate(document.models.values()):
        model.at = at
    for at, replica in enumerate(document.replicas.values()):
        replica.at = at
    findings = Findings()
    state = merged(stored, document)
    check_references(document, state, findings)
    check_uuids(document, state, findings)
    check_holdings(state, StoredPlaces(), findings)
    if findings.errors:
        first, more = findings.errors[0], len(findings.errors) - 1 + findings.more_errors
        others = f" (and {plural(more, 'more error')})" if more else ""
        raise RefusedError(f"{first}{others}; nothing was changed")


def _remember(pods: bytes) -> None:
    """Keep the pods with devices, to try rules on. Written only where they changed."""
    row, _ = ClusterSync.objects.get_or_create(pk=1)
    if row.pods_seen is None or bytes(row.pods_seen) != pods:
        ClusterSync.objects.filter(pk=1).update(pods_seen=pods)


def _outcome(counted: Counted, plan: _Plan, refused: Sequence[str]) -> Outcome:
    return Outcome(
        report(counted),
        list(refused),
        plan.difference,
        [*plan.brought.ignored, *_unread(counted.listing)],
        plan.warnings,
    )


def _unread(listing: Listing) -> list[dict[str, Any]]:
    """What could not be read, and what says nothing about capacity, by kind and reason."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for object_ in listing.skipped:
        by_reason.setdefault((object_.kind, object_.reason), []).append(object_.name)
    found = [
        {"kind": kind, "reason": reason, "count": len(names), "examples": names[:5]}
        for (kind, reason), names in by_reason.items()
    ]
    if listing.duplicates:
        found.append(
            {"kind": "object", "reason": "listed twice", "count": listing.duplicates, "examples": []}
        )
    for kind, number in sorted(listing.other.items()):
        found.append({"kind": kind, "reason": "says nothing about capacity", "count": number, "examples": []})
    return found
