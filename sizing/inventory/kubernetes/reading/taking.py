"""Objects as they are read, out of lists and lists of lists, into a listing."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from sizing.inventory.kubernetes import objects
from sizing.inventory.kubernetes.facts import Listing, Skipped
from sizing.inventory.kubernetes.reading.refusing import ASK, refuse_document, refuse_status
from sizing.inventory.kubernetes.texts import line, mapping, whole
from sizing.inventory.words import shown
from sizing.inventory.yaml_reading import UnreadableError

MOST_OBJECTS = 1_000_000
"""More than the largest clusters have; beyond it a file is made to fill the memory."""

_LIST = "List"


@dataclass(slots=True)
class _Open:
    """A document or list that is being read: its keys but `items`, and the items that wait for its kind."""

    header: dict[str, Any] = field(default_factory=dict)
    listed: bool = False
    bare: bool = False
    waiting: list[str] = field(default_factory=list)


class Taking:
    """Is told what stands in a file in its order: `begin`, then keys and items, then `end`."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._open: list[_Open] = []
        self._versions: dict[str, int] = {}
        self._objects = 0
        self._lists = 0

    def begin(self, bare: bool = False) -> None:
        """A document or list begins; a `bare` one is an array without keys."""
        self._open.append(_Open(bare=bare, listed=bare))

    def key(self, key: str, value: Any) -> None:
        """A key of it, other than a list of items."""
        self._open[-1].header[key] = value

    @property
    def keys(self) -> dict[str, Any]:
        """The keys that were told so far."""
        return self._open[-1].header

    def items(self) -> None:
        """Its items follow."""
        opened = self._open[-1]
        opened.listed = True
        opened.header["items"] = None

    def item(self, value: Any) -> None:
        """One of its items. Its kind may be the list's, which may stand behind the items."""
        opened = self._open[-1]
        if isinstance(value, dict) and not value.get("kind") and not opened.bare:
            if "kind" in opened.header:
                self._take_as(opened.header, value)
            else:
                opened.waiting.append(json.dumps(value, default=str))
                self._count()
        else:
            self._take(value)

    def end(self) -> None:
        """The document or list ends."""
        opened = self._open.pop()
        header = opened.header
        kind = line(header.get("kind"))
        if kind == "Status":
            refuse_status(header)
        if not opened.listed and not _is_list(header):
            if not self._open:
                refuse_document(header)
            self._take(header)
            return
        if header.get("items") is not None:
            raise UnreadableError(f"items must be a list of objects, not {shown(header['items'])}")
        self._lists += 1
        if kind.endswith(_LIST) and kind != _LIST:
            self._listing.kinds.add(kind.removesuffix(_LIST))
        for waiting in opened.waiting:
            self._take_as(header, json.loads(waiting))
        self._note_what_is_missing(mapping(header.get("metadata")))

    def done(self) -> None:
        """The file ends. Refused where nothing in it was of Kubernetes."""
        if self._objects and not self._listing.kinds:
            raise UnreadableError(f"these are no Kubernetes objects: none has a kind; {ASK}")
        if not self._objects and not self._lists:
            raise UnreadableError(f"there is no Kubernetes object in the file; {ASK}")

    def _take_as(self, header: dict[str, Any], item: dict[str, Any]) -> None:
        kind = line(header.get("kind"))
        if kind.endswith(_LIST) and kind != _LIST:
            item["kind"] = kind.removesuffix(_LIST)
            item.setdefault("apiVersion", header.get("apiVersion"))
        self._take(item)

    def _take(self, item: Any) -> None:
        self._count()
        if not isinstance(item, dict):
            self._listing.skipped.append(Skipped("object", "(without a name)", f"it is {shown(item)}"))
            return
        kind = item.get("kind")
        if kind == "Status":
            refuse_status(item)
        if _is_list(item):
            self._take_list(item)
        elif not self._is_outdated(kind, item):
            objects.add(self._listing, item)

    def _take_list(self, item: dict[str, Any]) -> None:
        self.begin()
        for key, value in item.items():
            if key != "items" or not isinstance(value, list):
                self.key(key, value)
        if isinstance(item.get("items"), list):
            self.items()
            for each in item["items"]:
                self.item(each)
        self.end()

    def _is_outdated(self, kind: Any, item: dict[str, Any]) -> bool:
        """Whether a newer state of the same object was read before."""
        if kind not in ("Node", "Pod"):
            return False
        metadata = mapping(item.get("metadata"))
        uid, version = metadata.get("uid"), whole(metadata.get("resourceVersion"))
        if not isinstance(uid, str) or version is None:
            return False
        if version < self._versions.get(uid, version):
            self._listing.duplicates += 1
            return True
        self._versions[uid] = version
        return False

    def _count(self) -> None:
        self._objects += 1
        if self._objects > MOST_OBJECTS:
            raise UnreadableError(f"the list has more than {MOST_OBJECTS:,} objects")

    def _note_what_is_missing(self, metadata: Any) -> None:
        remaining = whole(metadata.get("remainingItemCount")) or 0
        if not metadata.get("continue") and remaining <= 0:
            return
        missing = "1 more item is missing" if remaining == 1 else f"{remaining:,} more items are missing"
        note = f"metadata.continue is set, {missing if remaining > 0 else 'more items are missing'}"
        listing = self._listing
        if note not in listing.incomplete:
            listing.incomplete = f"{listing.incomplete}; {note}" if listing.incomplete else note
        listing.warnings.append(f"{note}, so the figures are not complete")


def _is_list(item: dict[str, Any]) -> bool:
    """Whether it holds objects, of one kind (NodeList) or any."""
    if "items" in item:
        kind = item.get("kind")
        return not kind or (isinstance(kind, str) and kind.endswith(_LIST))
    return str(item.get("kind")).endswith(_LIST) and "spec" not in item and "status" not in item
