"""Which taints close a node to a variant."""

from __future__ import annotations

from collections.abc import Iterable

from sizing.domain.specs import CLOSING_EFFECTS, Taint, Toleration


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration matches a taint.

    https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.value == taint.value


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> list[Taint]:
    """The taints that close a node to a variant with these tolerations."""
    tolerations = tuple(tolerations)
    return [
        taint
        for taint in taints
        if taint.effect in CLOSING_EFFECTS and not any(tolerates(t, taint) for t in tolerations)
    ]
