"""Triggers that log every change to the tables that an answer depends on."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from sizing.models import triggers


def create(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    vendor = editor.connection.vendor
    statements = triggers.postgresql_create() if vendor == "postgresql" else triggers.sqlite_create()
    for statement in statements:
        editor.execute(statement, params=None)


def drop(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    vendor = editor.connection.vendor
    statements = triggers.postgresql_drop() if vendor == "postgresql" else triggers.sqlite_drop()
    for statement in statements:
        editor.execute(statement, params=None)


class Migration(migrations.Migration):
    dependencies = [("sizing", "0001_tables")]
    operations = [migrations.RunPython(create, drop)]
