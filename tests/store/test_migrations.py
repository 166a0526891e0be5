"""Migrations leave the processes of the version before working: the database goes first, they follow."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, migrations
from django.db.migrations.loader import MigrationLoader
from django.db.models import NOT_PROVIDED

FIRST = "0008"
"""The first that was made after the desk could be updated while it runs."""

ADDITIVE = (
    migrations.AddConstraint,
    migrations.AddField,
    migrations.AddIndex,
    migrations.AlterModelOptions,
    migrations.CreateModel,
    migrations.RunPython,
)

LATER = [
    pytest.param(operation, id=f"{name}-{number}")
    for (app, name), migration in sorted(MigrationLoader(None).disk_migrations.items())
    if app == "sizing" and name >= FIRST
    for number, operation in enumerate(migration.operations)
]


@pytest.mark.parametrize("operation", LATER)
def test_a_migration_takes_nothing_away_and_asks_nothing_of_older_code(operation: Any) -> None:
    assert isinstance(operation, ADDITIVE)
    if isinstance(operation, migrations.AddField):
        field = operation.field
        assert field.null or field.many_to_many or field.db_default is not NOT_PROVIDED


@pytest.mark.django_db
def test_every_trigger_of_the_change_log_is_still_there() -> None:
    """SQLite makes a table anew to change it, and its triggers go with the old one."""
    from sizing.models.triggers import WATCHED, sqlite_create

    catalog = {
        "sqlite": "SELECT tbl_name, COUNT(*) FROM sqlite_master WHERE type = 'trigger' GROUP BY tbl_name",
        "postgresql": "SELECT tgrelid::regclass::text, COUNT(*) FROM pg_trigger"
        " WHERE NOT tgisinternal GROUP BY tgrelid",
    }
    with connection.cursor() as cursor:
        cursor.execute(catalog[connection.vendor])
        found = {table: count for table, count in cursor.fetchall() if table.startswith("sizing_")}
    expected = {w.table: 4 for w in WATCHED}  # one before each statement, one after each kind of change
    if connection.vendor == "sqlite":
        expected = {w.table: sum(f" ON {w.table} " in made for made in sqlite_create()) for w in WATCHED}
    assert found == expected
