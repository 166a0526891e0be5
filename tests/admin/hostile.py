"""Names that want to be more than text, in every field of every row that can hold them."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib.auth.models import Group, User
from django.db import DatabaseError, models, transaction

EVIL = '"\'><script>owned=1</script><img src=x onerror=owned=1>" autofocus onfocus=owned=1 x="{{7}}'
MARK = "<script>owned=1</script>"

# What the desk makes itself and reads again: numbers as text, digests, words of its own.
OWN = {"digest", "token_key", "asked_key", "sha256", "tokens_per_sec", "utilization", "password"}
OWN_KEYS = {"code", "codes", "state", "kind", "verdict", "bound", "loop", "search", "arrival", "unit"}


def plant() -> int:
    """End every free text in the database with `EVIL`; how many texts took it."""
    tables: list[Any] = [*apps.get_app_config("sizing").get_models(), User, Group]
    taken = 0
    for table in tables:
        fields = [field for field in table._meta.concrete_fields if _is_free(field)]
        for row in table._default_manager.all():
            for field in fields:
                value = _with_evil(field, getattr(row, field.attname))
                taken += _written(table, row.pk, field.attname, value)
    return taken


def _is_free(field: Any) -> bool:
    text = isinstance(field, models.CharField | models.TextField | models.JSONField)
    return text and not field.primary_key and not field.choices and field.name not in OWN


def _with_evil(field: Any, value: Any) -> Any:
    if isinstance(field, models.JSONField):
        return _deep(value)
    return f"{(value or '')[: (field.max_length or 1000) - len(EVIL)]}{EVIL}"


def _deep(value: Any) -> Any:
    match value:
        case str():
            return f"{value}{EVIL}"
        case list():
            return [_deep(one) for one in value]
        case dict():
            return {key: one if key in OWN_KEYS else _deep(one) for key, one in value.items()}
    return value


def _written(table: Any, pk: Any, name: str, value: Any) -> bool:
    try:
        with transaction.atomic():
            return bool(table._default_manager.filter(pk=pk).update(**{name: value}))
    except DatabaseError:  # a constraint, or too short a column
        return False
