"""What keeps new pods away from a node.

https://kubernetes.io/docs/concepts/architecture/nodes/ and .../scheduling-eviction/taint-and-toleration/;
while NVIDIA's MIG manager changes a layout (`mig.config.state`), nothing can be promised.
"""

from __future__ import annotations

from collections.abc import Mapping

from sizing.domain.specs import Taint, Toleration
from sizing.domain.taints import untolerated
from sizing.inventory.kubernetes.counted import ResourceCount
from sizing.inventory.kubernetes.facts import NodeFacts

ASSUMED = (Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule"),)
"""What a pod that asks for GPUs is taken to tolerate."""

_CORDON = "node.kubernetes.io/unschedulable"
_NOT_READY = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


def taints_that_count(facts: NodeFacts) -> tuple[Taint, ...]:
    """Its taints without those by which Kubernetes repeats that it is cordoned or not ready."""
    return tuple(
        taint
        for taint in facts.taints
        if not (facts.unschedulable and taint.key == _CORDON)
        and not (facts.ready != "True" and taint.key in _NOT_READY)
    )


def mig_reconfiguring(facts: NodeFacts) -> bool:
    """Whether the MIG layout is being changed, or the last change failed."""
    return facts.labels.get("nvidia.com/mig.config.state") not in (None, "", "success")


def closing_codes(facts: NodeFacts, taints: tuple[Taint, ...]) -> list[str]:
    """The codes of all that closes the node, whatever devices it has."""
    codes: list[str] = []
    if mig_reconfiguring(facts):
        codes.append("mig_reconfiguring")
    if facts.ready != "True":
        codes.append(f"not_ready:{facts.ready}")
    if facts.unschedulable:
        codes.append("cordoned")
    if facts.deleting:
        codes.append("deleting")
    for taint in untolerated(taints, ASSUMED):
        value = f"={taint.value}" if taint.value else ""
        codes.append(f"taint:{taint.key}{value}:{taint.effect}")
    return codes


def lacking_codes(resources: Mapping[str, ResourceCount], published: bool, promised: bool) -> list[str]:
    """The code of a node without devices: `published` are devices by DRA, `promised` ones by labels."""
    if published or any(count.allocatable for count in resources.values()):
        return []
    if resources:
        return ["allocatable_zero"]
    return ["no_device_plugin"] if promised else ["no_gpu"]
