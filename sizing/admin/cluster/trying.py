"""What rules make of the pods that were last seen, before they work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sizing.inventory.kubernetes.mapping import Identity
from sizing.inventory.kubernetes.rules import Rule
from sizing.models import ClusterSync, MappingRule
from sizing.syncing import seen
from sizing.syncing.bringing import rule_of

ROWS_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Tried:
    """A pod as it is and as it would be."""

    pod: str
    owner: str
    node: str
    devices: int
    now: str
    would_be: str
    by: str
    changes: bool


@dataclass(frozen=True, slots=True)
class Trial:
    """The pods that change and those that do not, each cut where nobody reads on."""

    changed: list[Tried]
    same: list[Tried]
    changed_count: int
    same_count: int
    left_out: int
    problems: list[str]

    @property
    def any_seen(self) -> bool:
        return bool(self.changed_count or self.same_count)


def rules_with(rule: MappingRule | None = None) -> list[Rule]:
    """The rules in their order, with this one in its place as it stands in a form."""
    rows = list(MappingRule.objects.filter(enabled=True))
    if rule is not None:
        rows = [row for row in rows if row.pk != rule.pk] + ([rule] if rule.enabled else [])
    # A rule that is not saved yet comes behind those of its position.
    rows.sort(key=lambda row: (row.position, row.pk is None, row.pk or 0))
    return [rule_of(row) for row in rows]


def trial(rules: Sequence[Rule]) -> Trial:
    """Try rules on the pods that the last import or sync told."""
    kept = ClusterSync.objects.filter(pk=1).values_list("pods_seen", flat=True).first()
    pods = seen.unpack(bytes(kept) if kept else None)
    problems: set[str] = set()
    changed: list[Tried] = []
    same: list[Tried] = []
    for pod in pods.pods:
        would_be = seen.tried(pod, rules, problems)
        row = Tried(
            pod=pod.facts.key,
            owner=pod.owner,
            node=pod.facts.node,
            devices=pod.devices,
            now=words_of(pod.now),
            would_be=words_of(would_be),
            by=would_be.note or would_be.by,
            changes=_differ(pod.now, would_be),
        )
        (changed if row.changes else same).append(row)
    return Trial(
        changed[:ROWS_SHOWN],
        same[:ROWS_SHOWN],
        len(changed),
        len(same),
        pods.total - len(pods.pods),
        sorted(problems),
    )


def words_of(identity: Identity) -> str:
    """What a pod is, in words."""
    if identity.workload == "other":
        return f"other workload {identity.model}".rstrip()
    return f"{identity.model} ({identity.variant})" if identity.variant else identity.model


def _differ(now: Identity, would_be: Identity) -> bool:
    return (now.model, now.variant, now.workload) != (would_be.model, would_be.variant, would_be.workload)
