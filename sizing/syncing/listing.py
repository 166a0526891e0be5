"""One kind of objects, listed page by page."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from sizing.inventory.kubernetes import objects
from sizing.inventory.kubernetes.facts import Listing
from sizing.syncing.client import Cluster
from sizing.syncing.failures import SyncFailure
from sizing.syncing.kinds import Resource
from sizing.syncing.timing import IN_PRODUCTION, Timing

PAGE = 500
GONE = 410
MOST_STARTS = 4


def list_all(
    cluster: Cluster,
    resource: Resource,
    timing: Timing = IN_PRODUCTION,
    stopped: threading.Event | None = None,
) -> tuple[Listing, str]:
    """All objects of a kind as facts, and the version of the list, from which a watch goes on.

    A list whose continuation has expired (410 Gone) begins anew, a few times, each after a longer
    pause. Raises `SyncFailure`.
    """
    stopped = stopped or threading.Event()
    for start in range(1, MOST_STARTS + 1):
        try:
            return _list(cluster, resource, stopped)
        except SyncFailure as failure:
            if failure.status != GONE or start == MOST_STARTS or stopped.wait(timing.pause(start)):
                raise
    raise AssertionError("unreachable")


def _list(cluster: Cluster, resource: Resource, stopped: threading.Event) -> tuple[Listing, str]:
    doing = f"listing {resource.plural}"
    listing = Listing()
    listing.kinds.add(resource.kind)
    query: dict[str, Any] = {"limit": PAGE}
    while True:
        page = cluster.get(resource.path, query, doing, resource.accept("PartialObjectMetadataList"))
        for item in _items(page, doing):
            objects.add(listing, named(item, resource))
        metadata = page.get("metadata")
        if not isinstance(metadata, dict) or not isinstance(metadata.get("resourceVersion"), str):
            raise SyncFailure("the list does not tell its version", doing)
        token = metadata.get("continue")
        if not token or stopped.is_set():
            return listing, metadata["resourceVersion"]
        query = {"limit": PAGE, "continue": token}


def _items(page: dict[str, Any], doing: str) -> Iterator[dict[str, Any]]:
    items = page.get("items", [])
    if items is None:  # an empty list in Go
        return
    if not isinstance(items, list):
        raise SyncFailure("the answer has no list of items", doing)
    for item in items:
        if not isinstance(item, dict):
            raise SyncFailure("an item of the list is not an object", doing)
        yield item


def named(item: dict[str, Any], resource: Resource) -> dict[str, Any]:
    """An object with the kind that it is: items of lists do not tell it, and metadata tells another."""
    item["kind"] = resource.kind
    item["apiVersion"] = resource.api_version
    return item
