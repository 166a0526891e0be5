"""An operator's own rules: the first that matches decides."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import regex

from sizing.inventory.kubernetes.facts import Listing, PodFacts
from sizing.inventory.kubernetes.mapping.owners import root_owner
from sizing.inventory.kubernetes.rules import Rule
from sizing.inventory.words import quoted

LONGEST_VALUE = 4096
"""Characters of a value that a pattern is tried on."""

LONGEST_MATCH_S = 0.25
LEFT_OUT_S = 60.0

# Patterns that took too long, and until when they are not tried again in this process.
_slow: dict[str, float] = {}


class TooSlowError(Exception):
    """A pattern that would take for ever on some value."""


class Named(NamedTuple):
    """What a rule says: model and variant as its templates give them, each maybe empty."""

    rule: str
    model: str
    variant: str


@dataclass(frozen=True, slots=True)
class Matcher:
    """A rule with its patterns compiled."""

    rule: Rule
    pattern: regex.Pattern[str]
    namespace: regex.Pattern[str] | None

    def match(self, pod: PodFacts, listing: Listing) -> regex.Match[str] | None:
        """The first value of the pod that matches whole, or None. Raises `TooSlowError`."""
        if self.namespace and not _match(self.namespace, pod.namespace):
            return None
        for value in _values(self.rule, pod, listing):
            found = _match(self.pattern, value)
            if found:
                return found
        return None


def _match(pattern: regex.Pattern[str], value: str) -> regex.Match[str] | None:
    """Match within a limit of time: some patterns try exponentially many ways, as `(a|aa)+` does."""
    if time.monotonic() < _slow.get(pattern.pattern, 0.0):
        raise TooSlowError
    try:
        return pattern.fullmatch(value[:LONGEST_VALUE], timeout=LONGEST_MATCH_S)
    except TimeoutError:
        _slow[pattern.pattern] = time.monotonic() + LEFT_OUT_S
        raise TooSlowError from None


def named_by_rules(
    pod: PodFacts, listing: Listing, rules: Sequence[Rule], problems: set[str] | None = None
) -> Named | None:
    """What the first matching rule makes of the pod, or None.

    A rule that is no regular expression, takes too long, or whose names stand for groups that its pattern
    lacks, is left out; `problems` gathers that in words.
    """
    matchers, wrong = _compiled(tuple(rules))
    if problems is not None:
        problems.update(wrong)
    for matcher in matchers:
        rule = matcher.rule
        try:
            found = matcher.match(pod, listing)
        except TooSlowError:
            if problems is not None:
                problems.add(f"rule {quoted(rule.name)} is left out: its pattern takes too long")
            continue
        if found is None:
            continue
        try:
            return Named(rule.name, found.expand(rule.model).strip(), found.expand(rule.variant).strip())
        except (regex.error, IndexError) as error:
            if problems is not None:
                problems.add(f"rule {quoted(rule.name)} is left out: {error} in the names that it gives")
    return None


@lru_cache(maxsize=8)
def _compiled(rules: tuple[Rule, ...]) -> tuple[tuple[Matcher, ...], tuple[str, ...]]:
    matchers, wrong = [], []
    for rule in rules:
        try:
            namespace = regex.compile(rule.namespace) if rule.namespace else None
            matchers.append(Matcher(rule, regex.compile(rule.pattern), namespace))
        except (regex.error, OverflowError, RecursionError) as error:
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
