"""What a form showed of an object, as digests of its fields and lines."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import Model
from django.http import HttpRequest

SEEN = "desk_seen"
"""The parameter in which a form carries them."""

_DIGITS = 12
_LONGEST_ID = 18

Marks = dict[str, str]


@dataclass(frozen=True, slots=True)
class Shown:
    """An object as its form shows it: the form, and the lines of its parts that can be changed there, by the
    prefix of their table and their id, as in `gpus-17`. `tables` are the models of the tables by prefix."""

    form: Any
    lines: dict[str, Any]
    tables: dict[str, type[Model]] = field(default_factory=dict)

    def marks(self) -> Marks:
        """A digest for each field, and one for each line."""
        own = {name: _digest(_values(self.form, name)) for name in open_fields(self.form)}
        return own | {key: _digest(_values(line, *open_fields(line))) for key, line in self.lines.items()}


@dataclass(frozen=True, slots=True)
class Seen:
    """What a form carries: the newest entry of the history when it was shown, and its marks."""

    entry: int
    marks: Marks

    def __str__(self) -> str:
        return " ".join([str(self.entry), *(f"{key}:{mark}" for key, mark in self.marks.items())])

    def different(self, now: Marks) -> list[str]:
        """The fields and lines that are other ones now, those that came, and those that went."""
        return [key for key in {**now, **self.marks} if self.marks.get(key) != now.get(key)]


def seen_by(request: HttpRequest) -> Seen | None:
    """What a form that comes back was shown with; None where it carries nothing."""
    text = request.POST.get(SEEN)
    if not text:
        return None
    entry, _, rest = text.partition(" ")
    known = entry.isascii() and entry.isdigit() and len(entry) <= _LONGEST_ID
    marks = (part.rpartition(":") for part in rest.split())
    return Seen(int(entry) if known else 0, {key: mark for key, _, mark in marks})


def shown(model_admin: Any, request: HttpRequest, obj: Any) -> Shown:
    """The object as its page would show it now."""
    fields = flatten_fieldsets(model_admin.get_fieldsets(request, obj))
    form = model_admin.get_form(request, obj, change=True, fields=fields)(instance=obj)
    found = Shown(form, {})
    for kind, inline in model_admin.get_formsets_with_inlines(request, obj):
        if inline.has_change_permission(request, obj):
            formset = kind(instance=obj, queryset=inline.get_queryset(request))
            found.lines.update(lines_of(formset))
            found.tables[formset.prefix] = formset.model
    return found


def lines_of(formset: Any) -> dict[str, Any]:
    """The stored lines of a table by prefix and id."""
    return {f"{formset.prefix}-{line.instance.pk}": line for line in formset.initial_forms}


def open_fields(form: Any) -> Iterator[str]:
    """The fields of a form that can be changed in it."""
    return (name for name, its in form.fields.items() if not its.disabled)


def _values(form: Any, *names: str) -> list[Any]:
    return [form[name].value() for name in names]


def _digest(values: list[Any]) -> str:
    texts = [sorted(map(str, value)) if isinstance(value, list | tuple) else str(value) for value in values]
    return hashlib.sha256(repr(texts).encode()).hexdigest()[:_DIGITS]
