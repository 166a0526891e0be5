"""What can be said of a listing only when all of its objects are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from sizing.inventory.kubernetes.facts import Listing, PodFacts
from sizing.inventory.kubernetes.objects.pods import PREEMPTS, OddPod
from sizing.inventory.kubernetes.objects.scheduling import SYSTEM_CLASSES
from sizing.inventory.words import counted

MOST_NAMES = 5
_MOST_GROUPS = 50
_NO_CLASS = (0, PREEMPTS)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class FinishWarning(str):
    """A warning that each `finish` makes anew."""

    __slots__ = ()


def finish(listing: Listing) -> None:
    """Give pods the priorities of their classes, keep one pod of each name, and say what is odd.

    It may be called again after every change of the listing.
    """
    found = [*_listed(listing), *_skipped(listing), *_one_of_each_name(listing), *_odd_pods(listing)]
    before = [warning for warning in listing.warnings if not isinstance(warning, FinishWarning)]
    listing.warnings[:] = [*before, *map(FinishWarning, found)]


def _listed(listing: Listing) -> Iterator[str]:
    if not listing.nodes and not listing.pods:
        yield "there are no nodes and no pods in the list"
    elif not listing.nodes:
        yield f"there are no nodes in the list, so {counted(len(listing.pods), 'pod')} have no place in it"
    elif not listing.pods:
        yield (
            "there are no pods in the list, so every GPU looks free: "
            "list them as well, as with `kubectl get nodes,pods -A -o json`"
        )


def _skipped(listing: Listing) -> Iterator[str]:
    groups: dict[tuple[str, str], list[str]] = {}
    for each in listing.skipped:
        groups.setdefault((each.kind, each.reason), []).append(each.name)
    for (kind, reason), names in list(groups.items())[:_MOST_GROUPS]:
        verb = "is" if len(names) == 1 else "are"
        consequence = ""
        if kind == "Pod":
            consequence = (
                "; what is free on " + ("its node" if len(names) == 1 else "their nodes") + " may be too high"
            )
        yield f"{_kind(kind, len(names))} {_some(names)} {verb} skipped: {reason}{consequence}"
    if len(groups) > _MOST_GROUPS:
        yield f"{len(groups) - _MOST_GROUPS:,} more reasons for skipped objects are not listed here"


def _kind(kind: str, number: int) -> str:
    word = kind.lower() if kind in ("Node", "Pod") else kind
    if number == 1:
        return word
    return f"{word}es" if word.endswith("s") else f"{word}s"


def _one_of_each_name(listing: Listing) -> Iterator[str]:
    """Two pods never have one name at one time: of those, the one that was created later is left."""
    by_name: dict[tuple[str, str], str] = {}
    dropped = []
    for uid, pod in listing.pods.items():
        other = by_name.setdefault((pod.namespace, pod.name), uid)
        if other != uid:
            older, newer = sorted((other, uid), key=lambda each: _created(listing.pods[each]))
            by_name[pod.namespace, pod.name] = newer
            dropped.append(older)
    names = sorted({listing.pods.pop(uid).key for uid in dropped})
    if names:
        yield f"{_pods(names)} listed twice with different uids; the one created later counts"


def _created(pod: PodFacts) -> datetime:
    return pod.created_at or _LONG_AGO


def _odd_pods(listing: Listing) -> Iterator[str]:
    odd = [pod for pod in listing.pods.values() if isinstance(pod, OddPod)]
    unknown: dict[str, list[str]] = {}
    otherwise = _default_class(listing)
    for pod in odd:
        known: tuple[int, str] | None = otherwise
        if pod.priority_class:
            known = SYSTEM_CLASSES.get(pod.priority_class) or listing.priority_classes.get(pod.priority_class)
        elif pod.says_priority:
            continue
        value, policy = known or _NO_CLASS
        if not pod.says_priority:
            pod.priority = value
            if known is None:
                unknown.setdefault(pod.priority_class, []).append(pod.key)
        if not pod.says_policy:
            pod.preemption_policy = policy
    for name, keys in unknown.items():
        yield f"{_pods(keys)} counted with priority 0: there is no PriorityClass {name} in the list"
    empty = [pod.key for pod in odd if pod.without_containers]
    if empty:
        yield f"{_pods(empty)} counted as requesting nothing: there are no containers in spec.containers"
    # Those of a DaemonSet look after the GPUs; the others may well compute on them.
    seeing = sorted(
        (pod.owner is not None and pod.owner[0] == "DaemonSet", pod.key) for pod in odd if pod.sees_every_gpu
    )
    if seeing:
        word = "pod" if len(seeing) == 1 else "pods"
        yield (
            f"{word} {_some(key for _, key in seeing)} can see every GPU of "
            f"{'its node' if len(seeing) == 1 else 'their nodes'} without asking for one "
            "(NVIDIA_VISIBLE_DEVICES=all)"
        )


def _default_class(listing: Listing) -> tuple[int, str]:
    """What pods without a class have; of several defaults the lowest counts
    (https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/#priorityclass)."""
    defaults = (listing.priority_classes[name] for name in listing.default_classes)
    return min(defaults, default=_NO_CLASS)


def _pods(keys: list[str]) -> str:
    return f"pod {keys[0]} is" if len(keys) == 1 else f"pods {_some(keys)} are"


def _some(names: Iterable[str]) -> str:
    all_of_them = list(names)
    words = ", ".join(all_of_them[:MOST_NAMES])
    more = len(all_of_them) - MOST_NAMES
    return f"{words} and {more:,} more" if more > 0 else words
