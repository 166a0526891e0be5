"""The tables of a backup, as the database's own migrations made them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection, models
from django.db.migrations.loader import MigrationLoader

FORMAT = "llmgw-admin backup"
VERSION = 1

# Of the moment, and worth nothing in another place or at another time.
LEFT_OUT = frozenset(
    {"sessions.session", "sizing.inventorychange", "sizing.signinfailures", "sizing.workerbeat"}
)

Migrations = Mapping[str, list[str]]
"""The names of an app's migrations, by app."""


def applied(loader: MigrationLoader) -> dict[str, list[str]]:
    """The migrations that this database has had, of the apps that the desk knows."""
    by_app: dict[str, list[str]] = {}
    for app, name in sorted(loader.applied_migrations):
        if (app, name) in loader.graph.nodes:
            by_app.setdefault(app, []).append(name)
    return by_app


def tables(loader: MigrationLoader, migrations: Migrations) -> dict[str, type[models.Model]]:
    """The tables by name, as they are after these migrations: also older than the code's own."""
    nodes = [(app, name) for app, names in migrations.items() for name in names]
    apps = loader.project_state(nodes).apps
    found = {}
    for model in apps.get_models(include_auto_created=True):
        options = model._meta
        if (
            options.managed
            and not options.proxy
            and not options.swapped
            and options.label_lower not in LEFT_OUT
        ):
            for field in options.local_fields:
                if isinstance(field, models.DateField):
                    field.auto_now = field.auto_now_add = False  # the time is the backup's
            found[options.label_lower] = model
    return found


def loader() -> MigrationLoader:
    """The migrations of the code, and which of them this database has had."""
    return MigrationLoader(connection)


def plain(value: Any) -> Any:
    """A column's value as JSON has it; `value_of` is its inverse."""
    match value:
        case bytes() | memoryview():
            return base64.b64encode(value).decode("ascii")
        case datetime() | date():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
    return value


def value_of(field: models.Field[Any, Any], value: Any) -> Any:
    """A column's value from what JSON has; raises ValueError and ValidationError."""
    if isinstance(field, models.JSONField):
        return models.Value(None, models.JSONField()) if value is None and not field.null else value
    if value is None:
        return None
    if isinstance(field, models.BinaryField):
        return base64.b64decode(value, validate=True)
    return field.to_python(value)


def columns(model: type[models.Model]) -> list[models.Field[Any, Any]]:
    """The columns of a table, in the order of the rows of a backup."""
    return list(model._meta.local_concrete_fields)


def rows_at_once(fields: list[models.Field[Any, Any]]) -> int:
    """How many rows are in memory at a time: few where there are files in them."""
    if any(isinstance(field, models.BinaryField) for field in fields):
        return 8
    return 100 if any(isinstance(field, models.JSONField) for field in fields) else 1000
