"""An operator's own rules: the first that matches decides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from sizing.inventory.kubernetes.facts import Listing, PodFacts
from sizing.inventory.kubernetes.mapping.owners import root_owner
from sizing.inventory.kubernetes.rules import Rule
from sizing.inventory.words import quoted

LONGEST_VALUE = 4096
"""Characters of a value that a pattern is tried on."""


class Named(NamedTuple):
    """What a rule says: model and variant as its templates give them, each maybe empty."""

    rule: str
    model: str
    variant: str


@dataclass(frozen=True, slots=True)
class Matcher:
    """A rule with its patterns compiled."""

    rule: Rule
    pattern: re.Pattern[str]
    namespace: re.Pattern[str] | None

    def match(self, pod: PodFacts, listing: Listing) -> re.Match[str] | None:
        """The first value of the pod that matches whole, or None."""
        if self.namespace and not self.namespace.fullmatch(pod.namespace):
            return None
        for value in _values(self.rule, pod, listing):
            found = self.pattern.fullmatch(value[:LONGEST_VALUE])
            if found:
                return found
        return None


def named_by_rules(
    pod: PodFacts, listing: Listing, rules: Sequence[Rule], problems: set[str] | None = None
) -> Named | None:
    """What the first matching rule makes of the pod, or None.

    A rule that is no regular expression, or whose names stand for groups that its pattern lacks, is left
    out; `problems` gathers that in words.
    """
    matchers, wrong = _compiled(tuple(rules))
    if problems is not None:
        problems.update(wrong)
    for matcher in matchers:
        found = matcher.match(pod, listing)
        if found is None:
            continue
        rule = matcher.rule
        try:
            return Named(rule.name, found.expand(rule.model).strip(), found.expand(rule.variant).strip())
        except (re.error, IndexError) as error:
            if problems is not None:
                problems.add(f"rule {quoted(rule.name)} is left out: {error} in the names that it gives")
    return None


@lru_cache(maxsize=8)
def _compiled(rules: tuple[Rule, ...]) -> tuple[tuple[Matcher, ...], tuple[str, ...]]:
    matchers, wrong = [], []
    for rule in rules:
        try:
            namespace = re.compile(rule.namespace) if rule.namespace else None
            matchers.append(Matcher(rule, re.compile(rule.pattern), namespace))
        except (re.error, OverflowError, RecursionError) as error:
            wrong.append(f"rule {quoted(rule.name)} is left out: no regular expression ({error})")
    return tuple(matchers), tuple(wrong)


def _values(rule: Rule, pod: PodFacts, listing: Listing) -> Iterable[str]:
    if rule.by == "label":
        value = pod.labels.get(rule.key)
        return [] if value is None else [value]
    if rule.by == "owner":
        owner = root_owner(pod, listing)
        return [f"{owner.kind}/{owner.name}"]
    if rule.by == "pod":
        return [pod.key]
    if rule.by == "image":
        return [c.image for c in pod.containers if c.image]
    return [" ".join(c.words) for c in pod.containers if c.words]
