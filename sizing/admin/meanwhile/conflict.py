"""What a page says of a form that came back after somebody else had changed its object."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib.admin.models import LogEntry
from django.db.models import Model

from sizing.admin.meanwhile.marks import Seen, Shown, open_fields
from sizing.domain.wording import names
from sizing.models import history

ENTRIES_SHOWN = 5
LONGEST = 300
NOTHING, SAME = "nothing", "the same"


@dataclass(frozen=True, slots=True)
class Row:
    """One field or line that was changed: how it is stored now, and what was typed."""

    name: str
    stored: str
    typed: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """What to say: who did what, the newest first, and what is other than it was."""

    noun: str
    entries: list[LogEntry]
    rows: list[Row]

    @property
    def line(self) -> str:
        """The refusal in one line, as the form says it among its errors."""
        what = names([row.name for row in self.rows])
        return f"Not saved: since you opened this {self.noun}, it was changed: {what}."


def conflict_of(obj: Model, seen: Seen, now: Shown, typed: Shown) -> Conflict:
    """What changed of an object since it was seen; `typed` is its form as it came back."""
    different = seen.different(now.marks())
    tables: dict[type[Model], set[int]] = {type(obj): {obj.pk}}
    for key in different:
        prefix, _, pk = key.rpartition("-")
        if prefix in now.tables and is_id(pk):
            tables.setdefault(now.tables[prefix], set()).add(int(pk))
    entries = list(history.since(seen.entry, tables)[:ENTRIES_SHOWN])
    rows = [_row(key, now, typed, entries) for key in different]
    return Conflict(str(obj._meta.verbose_name), entries, rows)


def _row(key: str, now: Shown, typed: Shown, entries: list[LogEntry]) -> Row:
    if key in now.form.fields:
        stored = _words(now.form, key, now.form[key].value())
        return Row(str(now.form[key].label), stored, _typed(typed.form, key))
    there, yours = now.lines.get(key), typed.lines.get(key)
    if there is None:
        pk = key.rpartition("-")[2]
        gone = (entry.object_repr for entry in entries if entry.is_deletion() and entry.object_id == pk)
        return Row(next(gone, key), "removed", NOTHING)
    if yours is None:
        return Row(str(there.instance), "added", NOTHING)
    pairs = [
        (str(there[name].label), _words(there, name, there[name].value()), _typed(yours, name))
        for name in open_fields(there)
        if name in yours.fields and not there[name].is_hidden
    ]
    other = [pair for pair in pairs if pair[1] != pair[2]]
    stored = ", ".join(f"{label}: {words}" for label, words, _ in other)
    typed_words = ", ".join(f"{label}: {words}" for label, _, words in other)
    return Row(str(there.instance), stored or SAME, typed_words or SAME)


def _typed(form: Any, name: str) -> str:
    return _words(form, name, form[name].data) if name in form.fields else NOTHING


def _words(form: Any, name: str, value: Any) -> str:
    """A field's value, stored or typed, as people read it."""
    field = form.fields[name]
    of: Any = field  # what the kinds below have of their own
    match field:
        case forms.BooleanField():
            return "yes" if field.to_python(value) else "no"
        case forms.ModelMultipleChoiceField():
            rows = of.queryset.filter(pk__in=[pk for pk in map(str, value or ()) if is_id(pk)])
            return _cut(", ".join(sorted(map(of.label_from_instance, rows))))
        case forms.ModelChoiceField():
            row = of.queryset.filter(pk=value).first() if is_id(str(value)) else None
            return _cut(of.label_from_instance(row) if row else value)
        case forms.TypedChoiceField():
            return _cut(dict(of.choices).get(value, value))
    if isinstance(value, list | tuple):  # a date and a time
        return _cut(" ".join(map(str, filter(None, value))))
    return _cut(value)


def is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _cut(value: Any) -> str:
    if isinstance(value, Decimal) and value.is_finite():
        value = f"{value.normalize():f}"
    if isinstance(value, datetime):
        value = f"{value:%Y-%m-%d %H:%M:%S}"
    text = "" if value is None else str(value)
    return (text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…") or NOTHING
