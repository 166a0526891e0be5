"""PodDisruptionBudgets as the minimum of the models whose pods they select.

https://kubernetes.io/docs/tasks/run-application/configure-pdb/: a budget keeps so many pods healthy; an
empty selector selects every pod of the namespace; percentages are rounded up.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from sizing.inventory.kubernetes.facts import BudgetFacts, Listing, PodFacts
from sizing.inventory.kubernetes.mapping.mapped import MappedModel, MappedReplica
from sizing.inventory.words import counted as words_for
from sizing.inventory.words import listed, quoted

_AMOUNT = re.compile(r"([0-9]{1,9})(%?)")


def set_minimums(models: Mapping[str, MappedModel], listing: Listing, warnings: list[str]) -> None:
    """Give each model the sum of what the budgets keep of its replicas."""
    if not listing.budgets:
        return
    pods = _Pods(listing, {budget.namespace for budget in listing.budgets.values()})
    replica_of: dict[str, MappedReplica] = {}
    for model in models.values():
        for replica in model.replicas:
            replica_of.update((member.pod.key, replica) for member in replica.members)
    for key in sorted(listing.budgets):
        budget = listing.budgets[key]
        _apply(budget, pods.selected_by(budget), replica_of, models, warnings)


def _apply(
    budget: BudgetFacts,
    selected: Sequence[PodFacts],
    replica_of: Mapping[str, MappedReplica],
    models: Mapping[str, MappedModel],
    warnings: list[str],
) -> None:
    by_model: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for pod in selected:
        replica = replica_of.get(pod.key)
        if replica is not None:
            by_model[replica.model][replica.name] += 1
    if not by_model:
        return
    who = f"the disruption budget {quoted(f'{budget.namespace}/{budget.name}')}"
    keep = _kept(budget, len(selected))
    if keep is None:
        warnings.append(f"{who} says neither minAvailable nor maxUnavailable as a number or a percentage")
        return
    may_go = max(0, len(selected) - keep)
    for name in sorted(by_model):
        replicas = by_model[name]
        # Whole replicas give way, so a group counts with all of its pods.
        stay = max(0, sum(replicas.values()) - may_go)
        models[name].min_replicas += ceil(stay / max(replicas.values()))
        others = len(models[name].replicas) - len(replicas)
        if others:
            warnings.append(
                f"{who} selects {len(replicas)} of {len(models[name].replicas)} replicas of model"
                f" {quoted(name)}; its minimum counts all of them"
            )
    if len(by_model) > 1:
        warnings.append(
            f"{who} selects pods of {words_for(len(by_model), 'model')} ({listed(sorted(by_model))});"
            " each of them has the minimum that it would have if the others were not touched"
        )


def _kept(budget: BudgetFacts, selected: int) -> int | None:
    """The pods that must stay: the cluster's own sum, else by the spec."""
    if budget.frozen:
        return selected
    if budget.desired_healthy is not None:
        return budget.desired_healthy
    if budget.min_available:
        return _amount(budget.min_available, selected)
    most = _amount(budget.max_unavailable, selected)
    return None if most is None else max(0, selected - most)


def _amount(text: str, of: int) -> int | None:
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        return None
    return ceil(int(found[1]) * of / 100) if found[2] else int(found[1])


class _Pods:
    """The pods of some namespaces by their labels, so that no budget looks at all of them."""

    def __init__(self, listing: Listing, namespaces: set[str]) -> None:
        self.all: dict[str, list[PodFacts]] = defaultdict(list)
        self.by_label: dict[tuple[str, str, str], list[PodFacts]] = defaultdict(list)
        for pod in listing.pods.values():
            if pod.ended or pod.namespace not in namespaces:
                continue
            self.all[pod.namespace].append(pod)
            for key, value in pod.labels.items():
                self.by_label[pod.namespace, key, value].append(pod)

    def selected_by(self, budget: BudgetFacts) -> list[PodFacts]:
        namespace = budget.namespace
        candidates: Sequence[PodFacts] = self.all.get(namespace, ())
        for key, value in budget.match.items():
            with_label = self.by_label.get((namespace, key, value), ())
            candidates = min(candidates, with_label, key=len)
        return [pod for pod in candidates if _selects(budget, pod.labels)]


def _selects(budget: BudgetFacts, labels: Mapping[str, str]) -> bool:
    if any(labels.get(key) != value for key, value in budget.match.items()):
        return False
    return all(_holds(labels, key, operator, values) for key, operator, values in budget.expressions)


def _holds(labels: Mapping[str, str], key: str, operator: str, values: Iterable[str]) -> bool:
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if operator == "In":
        return labels.get(key) in tuple(values)
    return operator == "NotIn" and labels.get(key) not in tuple(values)
