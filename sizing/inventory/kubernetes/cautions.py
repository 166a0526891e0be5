"""What must be known of a list before its figures are believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from sizing.inventory.kubernetes.counted import Counted, NodeCount
from sizing.inventory.kubernetes.dra import vendor_of_driver
from sizing.inventory.kubernetes.facts import Listing, PodFacts
from sizing.inventory.kubernetes.labels import count_label
from sizing.inventory.kubernetes.vendors import NVIDIA_GPU, is_device, may_be_device, vendor_of
from sizing.inventory.words import counted as in_words

_NAMED = 5
# A node is taken to be starting for so long after it came.
_STARTING = timedelta(minutes=15)


def of_listing(counted: Counted) -> Iterator[str]:
    """What the list lacks, beside what its reader found."""
    listing = counted.listing
    if listing.incomplete and not any(listing.incomplete in warning for warning in listing.warnings):
        yield f"the list is not complete: {listing.incomplete}; its figures are not either"
    yield from map(str, listing.warnings)
    if listing.duplicates:
        yield f"{in_words(listing.duplicates, 'object')} listed twice and counted once"
    yield from _unknown_resources(listing)
    if listing.slices and "ResourceClaim" not in listing.kinds and not listing.claims:
        yield "the list holds resource slices but no resource claims: devices that claims hold look free"


def _unknown_resources(listing: Listing) -> Iterator[str]:
    """NVIDIA's plugin may give GPUs any name under nvidia.com."""
    nodes: dict[str, list[str]] = {}
    for node in listing.nodes.values():
        for name, amount in node.capacity.items():
            if amount and may_be_device(name):
                nodes.setdefault(name, []).append(node.name)
    for resource, names in sorted(nodes.items()):
        listed = f"{', '.join(sorted(names)[:_NAMED])}{', …' if len(names) > _NAMED else ''}"
        offered = in_words(len(names), "node")
        yield f"{resource} of {offered} ({listed}) is not known to be a GPU and not counted"


def of_nodes(counted: Counted) -> Iterator[str]:
    """What is odd about nodes."""
    now = _latest(counted.listing)
    for name, node in counted.nodes.items():
        for resource, numbers in node.resources.items():
            if numbers.overcommitted:
                yield (
                    f"node {name}: pods use {numbers.used} {resource}, {numbers.overcommitted} more than the "
                    f"{numbers.allocatable} that are allocatable"
                )
            by_card = "cards" in node.details or "mig_reconfiguring" in node.blocked
            if numbers.capacity > numbers.allocatable and not by_card:
                yield (
                    f"node {name}: {numbers.capacity - numbers.allocatable} of {numbers.capacity} {resource} "
                    "are withdrawn as unhealthy"
                )
        yield from _labels(name, node)
        yield from _devices(name, node)
        created = node.facts.created_at
        if "no_device_plugin" in node.blocked or "allocatable_zero" in node.blocked:
            fresh = now is not None and created is not None and now - created <= _STARTING
            if fresh and node.facts.ready == "True":
                yield f"node {name} is arriving: it is ready, but its device plugin offers no devices yet"


def _labels(name: str, node: NodeCount) -> Iterator[str]:
    details = node.details
    if "memory_unparsed" in details:
        yield f"node {name}: the memory label {details['memory_unparsed']!r} is no plausible number of MiB"
    if "memory_from" in details:
        yield f"node {name}: no label tells the memory; {node.memory_mib} MiB is read from the model's name"
    whole = node.resources.get(NVIDIA_GPU)
    promised = count_label(node.facts.labels)
    if whole is None or promised is None or details.get("virtual"):
        return
    if "mig" in details:
        if details["mig"]["strategy"] == "mixed" and promised != whole.capacity:
            yield (
                f"node {name}: a label tells {promised} GPUs, but {whole.capacity} are whole; the others are "
                "cut into MIG slices"
            )
    elif "sharing" not in details and "cards" not in details and promised != whole.capacity:
        yield (
            f"node {name}: a label tells {promised} GPUs, but {whole.capacity} are offered (a GPU is lost, "
            "or its models differ)"
        )


def _devices(name: str, node: NodeCount) -> Iterator[str]:
    details = node.details
    if "cards" in details and details.get("unhealthy"):
        yield f"node {name}: {details['unhealthy']} of {len(details['cards'])} cards are unhealthy"
    if "models" in details:
        models = ", ".join(f"{n} {model}" for model, n in details["models"].items())
        yield f"node {name} has several models: {models}"
    dra = details.get("dra")
    if dra and dra["devices"]:
        yield from _twice(name, node, dra.get("drivers", [dra["driver"]]))
    if dra and dra.get("stale_slices_ignored"):
        yield f"node {name}: stale resource slices were ignored: {', '.join(dra['stale_slices_ignored'])}"
    for pool in node.pools:
        if pool.resource not in node.resources and is_device(pool.resource):
            yield f"node {name}: pods hold {len(pool.devices)} {pool.resource}, which the node does not offer"


def _twice(name: str, node: NodeCount, drivers: Iterable[str]) -> Iterator[str]:
    """A device plugin and a DRA driver of one vendor mostly offer the same cards."""
    for driver in drivers:
        vendor = vendor_of_driver(driver)
        offered = [n for n, count in node.resources.items() if count.capacity and vendor_of(n) == vendor]
        if offered:
            yield (
                f"node {name}: a device plugin offers {', '.join(offered)} and DRA driver {driver} publishes "
                "devices too; where they are the same cards, these are counted twice"
            )


def of_pods(counted: Counted) -> Iterator[str]:
    """Pods that use GPUs unseen, and pods on nodes that are not listed."""
    if counted.orphans:
        nodes = Counter(pod.node for pod in counted.orphans)
        listed = ", ".join(f"{node} ({n})" for node, n in sorted(nodes.items())[:_NAMED])
        orphans = in_words(len(counted.orphans), "pod")
        yield f"{orphans} with GPUs bound to nodes that are not listed: {listed}"
    for pod in counted.listing.pods.values():
        node = counted.nodes.get(pod.node) if pod.bound else None
        if node is not None and node.resources and _sees_all(pod):
            devices = sum(n.capacity for n in node.resources.values())
            yield (
                f"pod {pod.key} asks for no GPU but sets NVIDIA_VISIBLE_DEVICES: it can use all {devices} "
                f"of node {pod.node} unseen"
            )
    missing = sorted(_unlisted_claims(counted.listing))
    if missing:
        yield f"{in_words(len(missing), 'resource claim')} of pods not listed: {', '.join(missing[:_NAMED])}"


def _sees_all(pod: PodFacts) -> bool:
    if pod.owner is not None and pod.owner[0] == "DaemonSet":
        return False  # the GPU operator's own
    if any(number and is_device(name) for name, number in pod.requests.items()) or pod.claims:
        return False
    return any(
        container.env.get("NVIDIA_VISIBLE_DEVICES", "none").lower() not in ("none", "void", "")
        for container in pod.containers
    )


def _unlisted_claims(listing: Listing) -> Iterable[str]:
    for pod in listing.pods.values():
        if not pod.ended:
            for name in pod.claims:
                if (pod.namespace, name) not in listing.claims:
                    yield f"{pod.namespace}/{name}"


def _latest(listing: Listing) -> datetime | None:
    """The latest time that the list tells: about when it was taken."""
    told = [node.created_at for node in listing.nodes.values() if node.created_at]
    told.extend(pod.started_at for pod in listing.pods.values() if pod.started_at)
    told.extend(pod.created_at for pod in listing.pods.values() if pod.created_at)
    return max(told, default=None)
