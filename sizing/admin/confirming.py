"""What a confirmation names, so that only that is done; else it is asked again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest

from sizing.domain.wording import names, plural

CONFIRMED, NAMED = "confirmed", "named"
"""The parameters that tell what was confirmed: all of it as a digest, and by name where that is little."""
NAMES_CARRIED = 50


@dataclass(frozen=True, slots=True)
class Named:
    """The rows that an action changes. `digest` is alike for the same rows only: one that was deleted and
    made anew by the same name is another one."""

    digest: str
    names: Sequence[str]

    def confirmed(self, request: HttpRequest) -> bool:
        """Whether somebody has confirmed just this."""
        return request.POST.get(CONFIRMED) == self.digest

    @property
    def carried(self) -> Sequence[str]:
        """The names, where they are few enough to be sent along."""
        return self.names if len(self.names) <= NAMES_CARRIED else ()

    def differs(self, request: HttpRequest) -> str:
        """That what was confirmed is not this, and what came or went where both are known by name."""
        said = "Nothing is changed: since you looked, what this changes has become something else."
        before = request.POST.getlist(NAMED)
        if before and self.carried:
            for what, some in (
                ("New", set(self.names) - set(before)),
                ("Gone", set(before) - set(self.names)),
            ):
                if some:
                    said += f" {what}: {names(sorted(some))}."
        return f"{said} See the list as it is now."


def named(*rows: QuerySet[Any]) -> Named:
    """These rows, each of a table with names."""
    found, known = hashlib.sha256(), []
    for some in rows:
        found.update(f"{some.model._meta.model_name}\n".encode())
        for pk, name in sorted(some.values_list("pk", "name")):
            found.update(f"{pk} {name}\n".encode())
            known.append(name)
    return Named(found.hexdigest(), known)


def missing(request: HttpRequest, selected: QuerySet[Any]) -> str:
    """How many of the selected rows are there no more; empty where all are."""
    marked = set(request.POST.getlist(ACTION_CHECKBOX_NAME))
    if request.POST.get("select_across", "0") != "0":
        return ""
    gone = len(marked) - selected.count()
    return f" {plural(gone, 'of the selected is', 'of the selected are')} there no more." if gone > 0 else ""
