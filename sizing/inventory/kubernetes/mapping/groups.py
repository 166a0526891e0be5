"""The pods that are one replica together.

LeaderWorkerSet labels every pod of a group (https://lws.sigs.k8s.io), KubeRay every pod of a cluster, and
KServe's predictors over several nodes have a head and workers in two Deployments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sizing.inventory.kubernetes.facts import Listing, PodFacts
from sizing.inventory.kubernetes.mapping.identity import KSERVE_NAME
from sizing.inventory.kubernetes.mapping.owners import LWS_NAME, RAY_CLUSTER

LWS_GROUP = "leaderworkerset.sigs.k8s.io/group-index"
LWS_WORKER = "leaderworkerset.sigs.k8s.io/worker-index"
LWS_SIZE = "leaderworkerset.sigs.k8s.io/size"
RAY_ROLE = "ray.io/node-type"
KSERVE_APP = "app"
KSERVE_GENERATION = "isvc.generation"
KSERVE_WORKER_END = "-predictor-worker"


@dataclass(slots=True)
class Group:
    """Pods that are one replica, the leader first; `size` is how many they are when it is whole."""

    kind: str
    namespace: str
    name: str
    pods: list[PodFacts] = field(default_factory=list)
    size: int = 0

    @property
    def key(self) -> str:
        """The name of the replica."""
        return f"{self.namespace}/{self.name}"


def grouped(pods: Iterable[PodFacts], listing: Listing) -> tuple[list[Group], list[PodFacts]]:
    """The groups among the pods, and the pods that stand alone. Pods that are over count in no group."""
    groups: dict[tuple[str, str, str], Group] = {}
    alone: list[PodFacts] = []
    kserve: dict[tuple[str, str], list[PodFacts]] = {}
    for pod in pods:
        found = _set_or_cluster(pod)
        if found is not None:
            kind, name = found
            group = groups.setdefault((kind, pod.namespace, name), Group(kind, pod.namespace, name))
            group.pods.append(pod)
        elif KSERVE_GENERATION in pod.labels and KSERVE_NAME in pod.labels:
            name = f"{pod.labels[KSERVE_NAME]}-predictor-{pod.labels[KSERVE_GENERATION]}"
            kserve.setdefault((pod.namespace, name), []).append(pod)
        else:
            alone.append(pod)
    for (namespace, name), members in kserve.items():
        if any(_is_worker(pod) for pod in members):
            groups["InferenceService", namespace, name] = Group("InferenceService", namespace, name, members)
        else:
            alone += members
    for group in groups.values():
        group.pods.sort(key=_leader_first)
        group.size = _size(group, listing)
    return list(groups.values()), alone


def _set_or_cluster(pod: PodFacts) -> tuple[str, str] | None:
    labels = pod.labels
    if labels.get(LWS_NAME) and LWS_GROUP in labels:
        return "LeaderWorkerSet", f"{labels[LWS_NAME]}-{labels[LWS_GROUP]}"
    if labels.get(RAY_CLUSTER):
        return "RayCluster", labels[RAY_CLUSTER]
    return None


def _is_worker(pod: PodFacts) -> bool:
    return pod.labels.get(KSERVE_APP, "").endswith(KSERVE_WORKER_END)


def _leader_first(pod: PodFacts) -> tuple[int, str]:
    """The leader, then the workers in their order."""
    labels = pod.labels
    if LWS_NAME in labels:
        index = labels.get(LWS_WORKER, "")
        return (int(index[:9]) if index.isascii() and index.isdigit() else 10**9, pod.name)
    if RAY_CLUSTER in labels:
        return (0 if labels.get(RAY_ROLE) == "head" else 1, pod.name)
    return (1 if _is_worker(pod) else 0, pod.name)


def _size(group: Group, listing: Listing) -> int:
    """The pods of the whole group, as they or what made them tell it; else those that there are."""
    seen = len(group.pods)
    if group.kind == "LeaderWorkerSet":
        owner = group.pods[0].labels[LWS_NAME]
        told = [pod.annotations.get(LWS_SIZE, "") for pod in group.pods]
        told += _variables(group.pods, ("LWS_GROUP_SIZE",))
    else:
        owner = group.name
        told = []
        if group.kind == "InferenceService":
            told = _variables(group.pods, ("RAY_NODE_COUNT", "PIPELINE_PARALLEL_SIZE"))
    for value in told:
        if value.isascii() and value.isdigit() and 0 < int(value[:9]) <= 100_000:
            return max(seen, int(value[:9]))
    return max(seen, listing.sizes.get((group.kind, group.namespace, owner), 0))


def _variables(pods: Sequence[PodFacts], names: Sequence[str]) -> list[str]:
    return [c.env.get(name, "") for name in names for pod in pods for c in pod.containers]
