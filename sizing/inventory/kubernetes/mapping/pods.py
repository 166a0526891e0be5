"""All pods of a cluster as replicas of models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from sizing.inventory.kubernetes.counted import Counted
from sizing.inventory.kubernetes.facts import PodFacts
from sizing.inventory.kubernetes.mapping.budgets import set_minimums
from sizing.inventory.kubernetes.mapping.groups import Group, grouped
from sizing.inventory.kubernetes.mapping.identity import NOTHING, Identity, identify
from sizing.inventory.kubernetes.mapping.mapped import Ignored, Mapped, MappedModel, Member
from sizing.inventory.kubernetes.mapping.names import OTHER_END, short
from sizing.inventory.kubernetes.mapping.owners import root_owner
from sizing.inventory.kubernetes.mapping.replicas import replica_of
from sizing.inventory.kubernetes.rules import Rule
from sizing.inventory.words import listed
from sizing.models.fields import name_problem

NEVER = "Never"


def map_pods(counted: Counted, rules: Sequence[Rule]) -> Mapped:
    """Every pod that holds devices or waits for them as part of a replica, by model.

    Pods of one group are one replica. All other pods are in `ignored`, with the reason.
    """
    return _Mapping(counted, rules).run()


class _Mapping:
    """One run over the pods, in the order of their names."""

    def __init__(self, counted: Counted, rules: Sequence[Rule]) -> None:
        self.counted = counted
        self.listing = counted.listing
        self.rules = tuple(rules)
        self.mapped = Mapped()
        self.ignored: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.problems: set[str] = set()
        self.notes: dict[str, list[str]] = defaultdict(list)
        self.others: dict[str, MappedModel] = {}
        self.names: set[str] = set()

    def run(self) -> Mapped:
        running = []
        odd_nodes = {name for name in self.counted.nodes if name_problem(name)}
        for pod in sorted(self.listing.pods.values(), key=lambda p: (p.key, p.uid)):
            if pod.ended:
                self._ignore(pod, f"is over ({pod.phase})")
            elif name_problem(short(pod.key)) or pod.node in odd_nodes:
                self._ignore(pod, "has a name, or a node with one, that the desk cannot keep")
            else:
                running.append(pod)
        groups, alone = grouped(running, self.listing)
        for pod in alone:
            self._take(short(pod.key), [pod], 1)
        for group in sorted(groups, key=lambda g: (g.key, g.kind)):
            self._take(self._group_name(group), group.pods, group.size)
        self._join_others()
        for model in self.mapped.models.values():
            _sum_up(model)
        self.mapped.models = dict(sorted(self.mapped.models.items()))
        set_minimums(self.mapped.models, self.listing, self.mapped.warnings)
        self.mapped.warnings += sorted(self.problems)
        self.mapped.warnings += [f"{note}: pods {listed(pods)}" for note, pods in sorted(self.notes.items())]
        self.mapped.ignored = [
            Ignored(kind, reason, tuple(names)) for (kind, reason), names in sorted(self.ignored.items())
        ]
        return self.mapped

    def _ignore(self, pod: PodFacts, reason: str) -> None:
        self.ignored["Pod", reason].append(pod.key)

    def _group_name(self, group: Group) -> str:
        """The group's name; a pod of its own may have it already."""
        name = short(group.key)
        return name if name not in self.names else short(f"{group.key} ({group.kind})")

    def _take(self, name: str, pods: Sequence[PodFacts], size: int) -> None:
        """The pods as one replica, where one of them holds devices or waits for them."""
        members = []
        without = []
        for pod in pods:
            needs = self.counted.needs.get(pod.key, [])
            if needs and pod.node and pod.node not in self.counted.nodes:
                self._ignore(pod, "is bound to a node that is not listed")
                continue
            members.append(Member(pod, tuple(needs)))
            if not needs:
                without.append(pod)
        if len(without) == len(members):
            for pod in without:
                self._ignore(pod, self.counted.notes.get(pod.key, "asks for no device"))
            return
        self.names.add(name)
        identity = self._identity([m.pod for m in members])
        if identity.note:
            self.notes[identity.note].append(members[0].pod.key)
        replica = replica_of(name, members, identity, max(0, size - len(members)))
        models = self.mapped.models if identity.workload == "model" else self.others
        model = models.get(identity.model)
        if model is None:
            model = models[identity.model] = MappedModel(identity.model, identity.workload)
            if identity.workload == "other":
                owner = root_owner(replica.leader, self.listing)
                model.owner = short(f"{owner.kind}/{owner.name} in namespace {replica.leader.namespace}")
        model.replicas.append(replica)

    def _identity(self, pods: Sequence[PodFacts]) -> Identity:
        """By the leader, or where nothing names its model by the first that one is told of."""
        first = None
        for pod in pods:
            found = identify(pod, self.listing, self.rules, self.problems)
            if found.by != NOTHING:
                return found
            first = first or found
        assert first is not None
        return first

    def _join_others(self) -> None:
        """Put the other workloads beside the models, under names of their own."""
        for name, model in sorted(self.others.items()):
            while name in self.mapped.models:
                name += OTHER_END
            model.name = name
            for replica in model.replicas:
                replica.model = name
            self.mapped.models[name] = model


def _sum_up(model: MappedModel) -> None:
    """Priority and policy of the whole: the highest of what runs, and Never only where all say so."""
    model.replicas.sort(key=lambda r: r.name)
    running = [r.priority for r in model.replicas if r.state != "pending"]
    model.priority = max(running or [r.priority for r in model.replicas])
    if all(m.pod.preemption_policy == NEVER for r in model.replicas for m in r.members):
        model.preemption_policy = NEVER
