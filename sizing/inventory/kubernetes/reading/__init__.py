"""Bytes of a file into a `Listing`: what `kubectl get nodes,pods,… -A -o json` prints, in any of its forms.

JSON (also several objects one behind the other, or one a line), YAML (also several documents), lists of
any kind and lists of lists, single objects and bare arrays; UTF-8 or UTF-16, also packed with gzip. It is
read piece by piece: each object lives only until it has become facts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from sizing.inventory.kubernetes import objects
from sizing.inventory.kubernetes.facts import Listing
from sizing.inventory.kubernetes.reading.json_walking import walk_json
from sizing.inventory.kubernetes.reading.refusing import refuse_what_it_is_not
from sizing.inventory.kubernetes.reading.source import Source
from sizing.inventory.kubernetes.reading.taking import Taking
from sizing.inventory.kubernetes.reading.yaml_walking import walk_yaml
from sizing.inventory.yaml_reading import UnreadableError

__all__ = ["read_listing"]


def read_listing(source: bytes | BinaryIO, progress: Callable[[float], None] | None = None) -> Listing:
    """All that a file lists. `progress` is told the share that is read (0..1), where the size is known.

    Raises `UnreadableError` with one line that names the place.
    """
    listing = Listing()
    taking = Taking(listing)
    text = Source(source, progress)
    head = text.head()
    if not head:
        raise UnreadableError("the file is empty")
    if head.lstrip()[:1] in ("{", "["):
        walk_json(text, taking)
    else:
        refuse_what_it_is_not(head)
        walk_yaml(text, taking)
    taking.done()
    objects.finish(listing)
    text.done()
    return listing
