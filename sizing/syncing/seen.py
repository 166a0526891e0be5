"""The pods with devices as they were last told, kept small: so that rules can be tried before they work.

What a pod becomes without a rule is kept as it was found, for what it was found by (the environment, the
whole object) is not kept.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sizing.inventory.kubernetes.counted import Counted
from sizing.inventory.kubernetes.facts import ContainerFacts, Listing, PodFacts
from sizing.inventory.kubernetes.mapping import Identity, Mapped, identify
from sizing.inventory.kubernetes.mapping.matching import named_by_rules
from sizing.inventory.kubernetes.mapping.owners import root_owner
from sizing.inventory.kubernetes.rules import Rule

MOST_PODS = 2000
"""So many are kept; of each owner at least one as long as there is room."""

LONGEST_COMMAND = 4096

_NOTHING = Listing()


@dataclass(frozen=True, slots=True)
class SeenPod:
    """A pod, what it is now, and what it would be without any rule."""

    facts: PodFacts
    owner: str
    devices: int
    now: Identity
    alone: Identity


@dataclass(frozen=True, slots=True)
class Seen:
    """The pods that were kept, and how many there were."""

    pods: tuple[SeenPod, ...] = ()
    total: int = 0


def pack(counted: Counted, mapped: Mapped) -> bytes:
    """The pods that hold devices or wait for them, and of which models they are: JSON in zlib."""
    listing = counted.listing
    models = {
        member.pod.key: (replica.model, replica.variant, replica.by, model.workload)
        for model in mapped.models.values()
        for replica in model.replicas
        for member in replica.members
    }
    pods = sorted(
        (pod for pod in listing.pods.values() if not pod.ended and counted.needs.get(pod.key)),
        key=lambda pod: pod.key,
    )
    kept = []
    for pod in _chosen(pods, listing):
        owner = root_owner(pod, listing)
        now = Identity(*models.get(pod.key, ("", "", "", "other")))
        alone = identify(pod, listing, ()) if now.by.startswith("rule ") else now
        kept.append(
            {
                "pod": pod.name,
                "namespace": pod.namespace,
                "owner": list(owner),
                "labels": pod.labels,
                "containers": [[c.image, _command(c)] for c in pod.containers],
                "node": pod.node,
                "devices": sum(need.count for need in counted.needs[pod.key]),
                "now": _identity_form(now),
                "alone": _identity_form(alone),
            }
        )
    text = json.dumps({"total": len(pods), "pods": kept}, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode("utf-8", "replace"), 1)


def unpack(packed: bytes | None) -> Seen:
    """The pods that were kept; none where nothing was kept yet."""
    if not packed:
        return Seen()
    form = json.loads(zlib.decompress(packed))
    return Seen(tuple(_pod(one) for one in form["pods"]), form["total"])


def tried(pod: SeenPod, rules: Sequence[Rule], problems: set[str] | None = None) -> Identity:
    """What the pod would be by these rules; `problems` gathers rules that are left out, in words."""
    if named_by_rules(pod.facts, _NOTHING, rules, problems) is None:
        return pod.alone
    return identify(pod.facts, _NOTHING, rules)


def _chosen(pods: Sequence[PodFacts], listing: Listing) -> list[PodFacts]:
    if len(pods) <= MOST_PODS:
        return list(pods)
    first: dict[tuple[str, str, str], PodFacts] = {}
    for pod in pods:
        first.setdefault((pod.namespace, *root_owner(pod, listing)), pod)
    chosen = {pod.key: pod for pod in list(first.values())[:MOST_PODS]}
    for pod in pods:
        if len(chosen) == MOST_PODS:
            break
        chosen.setdefault(pod.key, pod)
    return sorted(chosen.values(), key=lambda pod: pod.key)


def _command(container: ContainerFacts) -> str:
    return " ".join(container.words)[:LONGEST_COMMAND]


def _identity_form(identity: Identity) -> list[str]:
    return [identity.model, identity.variant, identity.by, identity.workload]


def _pod(form: dict[str, Any]) -> SeenPod:
    kind, name = form["owner"]
    containers = tuple(
        ContainerFacts(name="", image=image, words=(command,) if command else ())
        for image, command in form["containers"]
    )
    facts = PodFacts(
        form["namespace"],
        form["pod"],
        node=form["node"],
        labels=form["labels"],
        owner=None if kind == "Pod" else (kind, name),
        containers=containers,
    )
    return SeenPod(
        facts,
        f"{kind}/{name}",
        form["devices"],
        Identity(*form["now"]),
        Identity(*form["alone"]),
    )
