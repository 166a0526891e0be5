"""Lines of a form whose objects were removed while it was open."""

from __future__ import annotations

import re
from collections.abc import Collection

from django.forms import CheckboxInput
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

_LINE = re.compile(r"(?P<number>[0-9]{1,6})-(?P<field>.+)")


def without_gone(given: QueryDict, prefix: str, stored: Collection[str]) -> QueryDict:
    """What was given, without the lines of a table that stand for objects which are stored no more.

    Django takes a line whose object is gone for that of another one, or breaks.
    """
    gone = _gone(given, prefix, stored)
    if not gone:
        return given
    kept = QueryDict(mutable=True)
    for name, values in given.lists():
        line = _LINE.fullmatch(name.removeprefix(f"{prefix}-")) if name.startswith(f"{prefix}-") else None
        if line is None:
            kept.setlist(name, values)
        elif (number := int(line["number"])) not in gone:
            before = sum(1 for one in gone if one < number)
            kept.setlist(f"{prefix}-{number - before}-{line['field']}", values)
    for counter in ("INITIAL_FORMS", "TOTAL_FORMS"):
        number_text = given.get(f"{prefix}-{counter}", "")
        if number_text.isascii() and number_text.isdigit() and len(number_text) < 7:
            kept[f"{prefix}-{counter}"] = str(max(int(number_text) - len(gone), 0))
    return kept


def lost(given: QueryDict, prefix: str, stored: Collection[str]) -> set[str]:
    """The lines of a table, as in `gpus-17`, that a form would keep and that are stored no more."""
    box = CheckboxInput()
    return {
        f"{prefix}-{pk}"
        for number, pk in _gone(given, prefix, stored).items()
        if not box.value_from_datadict(given, MultiValueDict(), f"{prefix}-{number}-DELETE")
    }


def _gone(given: QueryDict, prefix: str, stored: Collection[str]) -> dict[int, str]:
    """The ids of the lines that stand for objects which are stored no more, by their number."""
    first = given.get(f"{prefix}-INITIAL_FORMS", "")
    if not (first.isascii() and first.isdigit() and len(first) < 7):
        return {}
    ids = ((number, given.get(f"{prefix}-{number}-id", "")) for number in range(int(first)))
    return {number: pk for number, pk in ids if pk and pk not in stored}
