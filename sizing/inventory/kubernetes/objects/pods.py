"""A Pod as facts. A pod that asks for no devices keeps little: there are many of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sizing.inventory.kubernetes.facts import ContainerFacts, PodFacts
from sizing.inventory.kubernetes.objects.nodes import ANNOTATIONS
from sizing.inventory.kubernetes.objects.words import command_line, environment, sees_every_gpu
from sizing.inventory.kubernetes.pod_requests import PodRequests, is_sidecar
from sizing.inventory.kubernetes.quantity import QuantityError
from sizing.inventory.kubernetes.texts import (
    NotTakenError,
    condition,
    controller,
    expressions,
    kept_annotations,
    labels,
    line,
    mapping,
    mappings,
    moment,
    name,
    text,
    tolerations,
    whole,
)

PREEMPTS = "PreemptLowerPriority"

_GROUPS = ("leaderworkerset.sigs.k8s.io/", "ray.io/", "jobset.sigs.k8s.io/", "grove.io/")
# A term without a requirement matches no node.
_NOTHING = (("metadata.name", "In", ()),)


@dataclass(slots=True)
class OddPod(PodFacts):
    """A pod of which something is to be found out, or said, when all objects are known.

    `priority_class` is the class that gives its priority or its preemption policy, where the pod itself
    does not say them (the API fills both in; files kept by hand leave them out); empty for the default one.
    """

    priority_class: str = ""
    says_priority: bool = True
    says_policy: bool = True
    without_containers: bool = False
    sees_every_gpu: bool = False


def read_pod(item: Mapping[str, Any]) -> PodFacts:
    """Raises `NotTakenError` with the reason where it cannot be counted."""
    metadata, spec = mapping(item.get("metadata")), mapping(item.get("spec"))
    status = mapping(item.get("status"))
    namespace = name(metadata.get("namespace") or "default", "its namespace")
    named = name(metadata.get("name"))
    node = spec.get("nodeName")
    try:
        requests = PodRequests(spec, status)
    except QuantityError as error:
        raise NotTakenError(str(error)) from None
    claims, waits_for_claims = _claims(spec, status)
    extended = line(mapping(status.get("extendedResourceClaimStatus")).get("resourceClaimName"))
    asks = bool(claims or waits_for_claims or extended) or any("/" in found for found in requests.total)
    pod = _kind_of_pod(spec, status, asks)(
        namespace=namespace,
        name=named,
        uid=line(metadata.get("uid")),
        node=name(node, "spec.nodeName") if node else "",
        phase=line(status.get("phase")) or "Pending",
        ready=condition(status, "Ready") == "True",
        deleting=bool(metadata.get("deletionTimestamp")),
        owner=controller(metadata),
        priority=whole(spec.get("priority")) or 0,
        preemption_policy=line(spec.get("preemptionPolicy")) or PREEMPTS,
        requests=requests.total,
        nominated=line(status.get("nominatedNodeName")),
        claims=claims,
        extended_claim=extended,
        started_at=moment(status.get("startTime")),
        created_at=moment(metadata.get("creationTimestamp")),
        reason=line(status.get("reason")),
    )
    if isinstance(pod, OddPod):
        _fill_oddities(pod, spec, asks)
    if asks or _in_a_group(metadata):
        pod.labels = labels(metadata.get("labels"))
        pod.annotations = kept_annotations(metadata.get("annotations"), ANNOTATIONS)
        pod.node_selector = labels(spec.get("nodeSelector"))
        pod.selector_terms = _selector_terms(spec)
        pod.apart = _apart(spec)
        pod.tolerations = tolerations(spec.get("tolerations"))
        pod.gates = tuple(
            filter(None, (line(each.get("name")) for each in mappings(spec.get("schedulingGates"))))
        )
        pod.ip = line(status.get("podIP"))
        pod.containers = tuple(_container(each, requests) for each in _containers(spec))
    return pod


def _kind_of_pod(spec: Mapping[str, Any], status: Mapping[str, Any], asks: bool) -> type[PodFacts]:
    odd = (
        not any(mappings(spec.get("containers")))
        or spec.get("priority") is None
        or (spec.get("priorityClassName") and not spec.get("preemptionPolicy"))
        or (not asks and status.get("phase") not in ("Succeeded", "Failed") and _sees_every_gpu(spec))
    )
    return OddPod if odd else PodFacts


def _fill_oddities(pod: OddPod, spec: Mapping[str, Any], asks: bool) -> None:
    pod.without_containers = not any(mappings(spec.get("containers")))
    pod.priority_class = line(spec.get("priorityClassName"))
    pod.says_priority = whole(spec.get("priority")) is not None
    pod.says_policy = bool(line(spec.get("preemptionPolicy")))
    pod.sees_every_gpu = not asks and not pod.ended and _sees_every_gpu(spec)


def _sees_every_gpu(spec: Mapping[str, Any]) -> bool:
    return any(sees_every_gpu(each) for each in mappings(spec.get("containers")))


def _in_a_group(metadata: Mapping[str, Any]) -> bool:
    """Whether it is part of a group of pods that may be one replica, such as a leader without a GPU."""
    return any(key.startswith(_GROUPS) for key in mapping(metadata.get("labels")))


def _containers(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The containers that run side by side: the plain ones, then the sidecars."""
    sidecars = [each for each in mappings(spec.get("initContainers")) if is_sidecar(each)]
    return [*mappings(spec.get("containers")), *sidecars]


def _container(container: Mapping[str, Any], requests: PodRequests) -> ContainerFacts:
    words = command_line(container)
    ports = (
        (line(each.get("name")), whole(each.get("containerPort")))
        for each in mappings(container.get("ports"))
    )
    return ContainerFacts(
        name=line(container.get("name")),
        image=line(container.get("image"), 1024),
        words=words,
        env=environment(container, words),
        ports=tuple((name_, port) for name_, port in ports if port is not None),
        requests={found: amount for found, amount in requests.container(container).items() if amount},
    )


def _selector_terms(spec: Mapping[str, Any]) -> tuple[tuple[tuple[str, str, tuple[str, ...]], ...], ...]:
    affinity = mapping(mapping(spec.get("affinity")).get("nodeAffinity"))
    required = mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    return tuple(
        (expressions(term.get("matchExpressions")) + expressions(term.get("matchFields"))) or _NOTHING
        for term in mappings(required.get("nodeSelectorTerms"))
    )


def _apart(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Labels of nodes by which the pod must not be beside some others."""
    rules = mapping(mapping(spec.get("affinity")).get("podAntiAffinity"))
    terms = mappings(rules.get("requiredDuringSchedulingIgnoredDuringExecution"))
    return tuple(sorted({line(term.get("topologyKey")) for term in terms} - {""}))


def _claims(spec: Mapping[str, Any], status: Mapping[str, Any]) -> tuple[tuple[str, ...], bool]:
    """Names of its ResourceClaims, and whether one is still to be made from a template."""
    if not spec.get("resourceClaims"):
        return (), False
    made = {
        text(each.get("name")): line(each.get("resourceClaimName"))
        for each in mappings(status.get("resourceClaimStatuses"))
    }
    names, waits = [], False
    for each in mappings(spec.get("resourceClaims")):
        # Before v1beta1 the name stood in `source`.
        told = line(each.get("resourceClaimName")) or line(
            mapping(each.get("source")).get("resourceClaimName")
        )
        claim = told or made.get(text(each.get("name")), "")
        if claim:
            names.append(claim)
        else:
            waits = True
    return tuple(dict.fromkeys(names)), waits
