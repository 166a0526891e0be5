"""ETags of objects, and writes that name the one they were made for in `If-Match`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.models import Model
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from sizing.inventory.words import quoted
from sizing.models import history
from sizing.services.editing.rows import conflict, writing

_DIGITS = 32


def etag_of(serializer: Any) -> str:
    """The ETag of an object: of its id, and of all of it that can be written."""
    shown = serializer.data
    kept = {"id": shown.get("id")} | {
        name: shown[name] for name, field in serializer.fields.items() if not field.read_only
    }
    return f'"{hashlib.sha256(JSONRenderer().render(kept)).hexdigest()[:_DIGITS]}"'


@contextmanager
def unchanged(request: Request, view: Any) -> Iterator[None]:
    """A write for the object that `If-Match` names, under the lock of all writers; without that, any write.

    A `conflict` where the object is another one by now.
    """
    if "If-Match" not in request.headers:
        yield
        return
    with writing():
        check_match(request, view, view.get_object())
        yield


def check_match(request: Request, view: Any, row: Model) -> None:
    """A `conflict` where `If-Match` names another object than this.

    Asked before what was sent is looked at, that is told also of a body that is wrong; only `unchanged` holds
    until the write.
    """
    wanted = request.headers.get("If-Match")
    if wanted is None:
        return
    etag = etag_of(view.get_serializer(row))
    if not {"*", etag, etag.strip('"')} & {one.strip() for one in wanted.split(",")}:
        by = history.last_words(row)
        said = f"{view.noun} {quoted(str(row))} is not the one that If-Match names"
        last = f": it was last changed by {by}" if by else ": it was changed meanwhile"
        raise conflict(f"{said}{last}; read it again and retry")
