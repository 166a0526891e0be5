"""Pods become replicas of models: by an operator's rules, by labels, by what their commands say.

matching    an operator's own rules
commands    command lines of inference servers -> the name that they serve
paths       a path of a model -> a name, where it says one
owners      what made a pod, in the end
identity    all of these in their order: of which model is this pod a replica?
groups      the pods that are one replica together
replicas    a group -> its state, priority, address
budgets     PodDisruptionBudgets -> minimums
"""

from sizing.inventory.kubernetes.mapping.identity import Identity, identify
from sizing.inventory.kubernetes.mapping.mapped import (
    Ignored,
    Mapped,
    MappedModel,
    MappedReplica,
    Member,
)
from sizing.inventory.kubernetes.mapping.pods import map_pods

__all__ = [
    "Identity",
    "Ignored",
    "Mapped",
    "MappedModel",
    "MappedReplica",
    "Member",
    "identify",
    "map_pods",
]
