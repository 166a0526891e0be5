"""What made a pod, in the end: a Deployment rather than its ReplicaSet, a CronJob rather than its Job."""

from __future__ import annotations

import re
from typing import NamedTuple

from sizing.inventory.kubernetes.facts import Listing, PodFacts

LWS_NAME = "leaderworkerset.sigs.k8s.io/name"
RAY_CLUSTER = "ray.io/cluster"

# The names that controllers give: a Deployment adds a hash of its template, a CronJob the minute.
_HASH = re.compile(r"(.+)-(?=[a-z]*[0-9])[0-9a-z]{5,10}")
_MINUTE = re.compile(r"(.+)-\d{8,}")
_MOST_STEPS = 5


class Owner(NamedTuple):
    """The kind and name of what controls a pod; a pod that nothing controls is its own."""

    kind: str
    name: str


def root_owner(pod: PodFacts, listing: Listing) -> Owner:
    """Follow the owners that were listed, then the names that controllers give."""
    if pod.labels.get(LWS_NAME):
        return Owner("LeaderWorkerSet", pod.labels[LWS_NAME])
    # The kubelet's own pods belong to their node, which says nothing of what they are.
    if pod.owner is None or pod.owner[0] == "Node":
        return Owner("Pod", pod.name)
    owner = Owner(*pod.owner)
    for _ in range(_MOST_STEPS):
        above = listing.owners.get((owner.kind, pod.namespace, owner.name)) or _by_name(owner, pod)
        if above is None:
            break
        owner = Owner(*above)
    return owner


def _by_name(owner: Owner, pod: PodFacts) -> Owner | None:
    if owner.kind == "ReplicaSet":
        for label, kind in (("pod-template-hash", "Deployment"), ("rollouts-pod-template-hash", "Rollout")):
            end = f"-{pod.labels.get(label, '')}"
            if len(end) > 1 and owner.name.endswith(end) and len(owner.name) > len(end):
                return Owner(kind, owner.name.removesuffix(end))
        found = _HASH.fullmatch(owner.name)
        return Owner("Deployment", found[1]) if found else None
    if owner.kind == "Job":
        found = _MINUTE.fullmatch(owner.name)
        return Owner("CronJob", found[1]) if found else None
    return None
