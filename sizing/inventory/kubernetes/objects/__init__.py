"""Objects of the API, one by one, into a `Listing`: `add`, `remove` and `replace`, and at the end `finish`.

Objects are plain mappings as JSON has them. Whatever is in them, nothing is raised: an object that cannot
be taken stands in `Listing.skipped` with the reason, one of a kind that says nothing about capacity in
`Listing.other`. What a template asks for (of a Deployment, an InferenceService) is never usage: pods are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sizing.inventory.kubernetes.facts import Listing, Skipped
from sizing.inventory.kubernetes.objects.claims import (
    read_claim,
    read_device_class,
    read_slice,
    read_taint_rule,
)
from sizing.inventory.kubernetes.objects.finishing import finish
from sizing.inventory.kubernetes.objects.nodes import read_node
from sizing.inventory.kubernetes.objects.pods import read_pod
from sizing.inventory.kubernetes.objects.scheduling import (
    namespaced,
    read_budget,
    read_group_size,
    read_priority_class,
)
from sizing.inventory.kubernetes.texts import NotTakenError, controller, line, mapping
from sizing.inventory.words import quoted

__all__ = ["add", "finish", "remove", "replace"]

Item = Mapping[str, Any]


def add(listing: Listing, item: Item) -> None:
    """Take one object. One of the same uid is a duplicate, and this one stands in its place."""
    kind = _kind(item)
    if not kind:
        listing.skipped.append(Skipped("object", _shown_name(item), "it has no kind"))
        return
    listing.kinds.add(kind)
    known = _KINDS.get(kind)
    if known is None or not _is_of_group(item, known[0]):
        listing.other[kind] += 1
        return
    try:
        known[1](listing, item)
    except NotTakenError as reason:
        listing.skipped.append(Skipped(kind, _shown_name(item), str(reason)))


def remove(listing: Listing, item: Item) -> None:
    """Forget an object that is gone, also where it could not be taken."""
    kind = _kind(item)
    if listing.skipped:
        gone = (kind, _shown_name(item))
        listing.skipped[:] = [each for each in listing.skipped if (each.kind, each.name) != gone]
    known = _KINDS.get(kind)
    if known is None or not _is_of_group(item, known[0]):
        if listing.other[kind] > 1:
            listing.other[kind] -= 1
        else:
            listing.other.pop(kind, None)
        return
    try:
        known[2](listing, item)
    except NotTakenError:
        return


def replace(listing: Listing, item: Item) -> None:
    """Take an object that has changed, as a watch tells it: no duplicate of what it was."""
    remove(listing, item)
    add(listing, item)


def _kind(item: Item) -> str:
    return line(item.get("kind"), 63)


def _is_of_group(item: Item, group: str) -> bool:
    """Whether the kind is the one meant: other groups have Nodes and Jobs too. Without a version it is."""
    version = item.get("apiVersion")
    return not version or (isinstance(version, str) and version.rpartition("/")[0] == group)


def _shown_name(item: Item) -> str:
    metadata = mapping(item.get("metadata"))
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str) or not name:
        return "(without a name)"
    full = f"{namespace}/{name}" if isinstance(namespace, str) and namespace else name
    return full if full.isprintable() and len(full) <= 253 else quoted(full)


def _uid(item: Item) -> str:
    return line(mapping(item.get("metadata")).get("uid"))


def _add_node(listing: Listing, item: Item) -> None:
    node = read_node(item)
    before = listing.nodes.get(node.name)
    if before is not None:
        if before.uid == node.uid or not before.uid or not node.uid:
            listing.duplicates += 1
        else:
            listing.warnings.append(
                f"node {node.name} is listed twice with different uids; the one created later counts"
            )
            if before.created_at and (not node.created_at or node.created_at < before.created_at):
                return
    listing.nodes[node.name] = node


def _remove_node(listing: Listing, item: Item) -> None:
    name, uid = namespaced(item)[1], _uid(item)
    known = listing.nodes.get(name)
    # A new node of the same name may have come before the end of the old one was told.
    if known is not None and (known.uid == uid or not known.uid or not uid):
        del listing.nodes[name]


def _add_pod(listing: Listing, item: Item) -> None:
    pod = read_pod(item)
    key = pod.uid or pod.key
    if key in listing.pods:
        listing.duplicates += 1
    listing.pods[key] = pod


def _remove_pod(listing: Listing, item: Item) -> None:
    listing.pods.pop(_uid(item) or "/".join(namespaced(item)), None)


def _add_slice(listing: Listing, item: Item) -> None:
    found = read_slice(item)
    listing.duplicates += found.name in listing.slices
    listing.slices[found.name] = found


def _remove_slice(listing: Listing, item: Item) -> None:
    listing.slices.pop(namespaced(item)[1], None)


def _add_claim(listing: Listing, item: Item) -> None:
    found = read_claim(item)
    key = (found.namespace, found.name)
    listing.duplicates += key in listing.claims
    listing.claims[key] = found


def _remove_claim(listing: Listing, item: Item) -> None:
    listing.claims.pop(namespaced(item), None)


def _add_device_class(listing: Listing, item: Item) -> None:
    name, resource = read_device_class(item)
    listing.device_classes[name] = resource


def _remove_device_class(listing: Listing, item: Item) -> None:
    listing.device_classes.pop(namespaced(item)[1], None)


def _add_taint_rule(listing: Listing, item: Item) -> None:
    rule = read_taint_rule(item)
    if rule is not None:
        listing.taint_rules[rule.name] = rule


def _remove_taint_rule(listing: Listing, item: Item) -> None:
    listing.taint_rules.pop(namespaced(item)[1], None)


def _add_budget(listing: Listing, item: Item) -> None:
    budget = read_budget(item)
    listing.budgets[budget.namespace, budget.name] = budget


def _remove_budget(listing: Listing, item: Item) -> None:
    listing.budgets.pop(namespaced(item), None)


def _add_priority_class(listing: Listing, item: Item) -> None:
    name = namespaced(item)[1]
    listing.priority_classes[name] = read_priority_class(item)
    if item.get("globalDefault") is True:
        listing.default_classes.add(name)


def _remove_priority_class(listing: Listing, item: Item) -> None:
    name = namespaced(item)[1]
    listing.priority_classes.pop(name, None)
    listing.default_classes.discard(name)


def _add_owner(listing: Listing, item: Item) -> None:
    owner = controller(mapping(item.get("metadata")))
    if owner:
        listing.owners[_kind(item), *namespaced(item)] = owner


def _remove_owner(listing: Listing, item: Item) -> None:
    listing.owners.pop((_kind(item), *namespaced(item)), None)


def _add_group(listing: Listing, item: Item) -> None:
    listing.sizes[_kind(item), *namespaced(item)] = read_group_size(item)
    _add_owner(listing, item)


def _remove_group(listing: Listing, item: Item) -> None:
    listing.sizes.pop((_kind(item), *namespaced(item)), None)
    _remove_owner(listing, item)


_Taker = Callable[[Listing, Item], None]

# By kind: its API group, and how it is taken and forgotten.
_KINDS: dict[str, tuple[str, _Taker, _Taker]] = {
    "Node": ("", _add_node, _remove_node),
    "Pod": ("", _add_pod, _remove_pod),
    "ResourceSlice": ("resource.k8s.io", _add_slice, _remove_slice),
    "ResourceClaim": ("resource.k8s.io", _add_claim, _remove_claim),
    "DeviceClass": ("resource.k8s.io", _add_device_class, _remove_device_class),
    "DeviceTaintRule": ("resource.k8s.io", _add_taint_rule, _remove_taint_rule),
    "PodDisruptionBudget": ("policy", _add_budget, _remove_budget),
    "PriorityClass": ("scheduling.k8s.io", _add_priority_class, _remove_priority_class),
    "ReplicaSet": ("apps", _add_owner, _remove_owner),
    "Job": ("batch", _add_owner, _remove_owner),
    "LeaderWorkerSet": ("leaderworkerset.x-k8s.io", _add_group, _remove_group),
    "RayCluster": ("ray.io", _add_group, _remove_group),
}
