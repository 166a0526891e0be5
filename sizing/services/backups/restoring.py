"""The state from a backup: all of it in one transaction, or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import DataError, IntegrityError, connection, models
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from sizing.models.history import DESK
from sizing.models.locking import inventory_lock
from sizing.models.revision import InventoryChange
from sizing.services.backups.reading import Backup
from sizing.services.backups.tables import (
    Migrations,
    applied,
    columns,
    loader,
    rows_at_once,
    tables,
    value_of,
)
from sizing.services.errors import DeskError

# What every new database has from its migrations.
_FROM_THE_START = frozenset(
    {"auth.permission", "auth.group", "auth.group_permissions", "contenttypes.contenttype"}
)

Tables = Mapping[str, type[models.Model]]


def restore(file: IO[bytes], replace: bool = False) -> dict[str, int]:
    """Bring the database into the state of the backup; the number of rows by table.

    A database without tables gets those of the backup's version; one with tables has to have had the same
    migrations, and to be empty unless *replace* gives up what is in it. What the code has in addition is
    migrated afterwards. Nobody stays signed in. Raises DeskError.
    """
    backup = Backup(file)
    _prepare(backup.migrations)
    known = loader()
    counts = _bring(backup, tables(known, applied(known)), replace)
    call_command("migrate", interactive=False, verbosity=0)
    return counts


def _prepare(migrations: Migrations) -> None:
    """See that the database has the tables of the backup, as they were then."""
    known = loader()
    wanted = {(app, name) for app, names in migrations.items() for name in names}
    if unknown := sorted(wanted - set(known.graph.nodes)):
        newest = ".".join(unknown[-1])
        raise DeskError(f"the backup is of a newer version of the desk ({newest}); update the desk first")
    here = {(app, name) for app, names in applied(known).items() for name in names}
    if not here:
        MigrationExecutor(connection).migrate(_last(known, wanted))
        return
    if missing := sorted(wanted - here):
        first = ".".join(missing[0])
        raise DeskError(f"the database is older than the backup ({first}); run `manage.py migrate` first")
    if here != wanted:
        raise DeskError(
            "the backup is of an older version of the desk; restore it into a database without tables,"
            " where it is brought up to date"
        )


def _last(known: MigrationLoader, wanted: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """The last of these migrations of each app."""
    children = {node: {child.key for child in known.graph.node_map[node].children} for node in wanted}
    return sorted(
        node
        for node in wanted
        if not any(child in wanted and child[0] == node[0] for child in children[node])
    )


def _bring(backup: Backup, known: Tables, replace: bool) -> dict[str, int]:
    counts: dict[str, int] = {}
    with inventory_lock():
        _keep_writers_out(known)
        if not replace and (found := _what_is_there(known)):
            raise DeskError(f"the database is not empty ({', '.join(found)}); --replace gives that up")
        _empty(known)
        try:
            for table, rows in _batches(backup, known):
                into: models.QuerySet[Any] = models.QuerySet(table)
                into.bulk_create(rows)
                name = table._meta.label_lower
                counts[name] = counts.get(name, 0) + len(rows)
            connection.check_constraints()
        except (DataError, IntegrityError, ValidationError, ValueError, TypeError, OverflowError) as error:
            raise DeskError(f"the backup does not fit this database: {_one_line(error)}") from None
        _continue_numbers(known)
    InventoryChange.prune()
    return counts


def _batches(backup: Backup, known: Tables) -> Iterator[tuple[type[models.Model], list[models.Model]]]:
    """The rows of the backup, some of one table at a time."""
    table: type[models.Model] | None = None
    fields: list[models.Field[Any, Any]] = []
    rows: list[models.Model] = []
    at_once = 1
    for part in backup.parts():
        if part.row is None:
            if table is not None and rows:
                yield table, rows
            table, rows = known.get(part.table), []
            if table is None:
                raise DeskError(f"the backup has a table that the desk does not know: {part.table}")
            fields = columns(table)
            if [field.attname for field in fields] != part.columns:
                raise DeskError(f"the backup's table {part.table} has other columns than the desk's")
            at_once = rows_at_once(fields)
        elif table is not None:
            values = zip(fields, part.row, strict=True)
            rows.append(table(**{field.attname: value_of(field, value) for field, value in values}))
            if len(rows) >= at_once:
                yield table, rows
                rows = []
    if table is not None and rows:
        yield table, rows


def _keep_writers_out(known: Tables) -> None:
    """SQLite has one writer anyway; on PostgreSQL readers go on and writers wait."""
    if connection.vendor == "postgresql":
        names = ", ".join(connection.ops.quote_name(table._meta.db_table) for table in known.values())
        with connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {names} IN EXCLUSIVE MODE")


def _what_is_there(known: Tables) -> list[str]:
    """What people would lose, in words; nothing of what a new database has."""
    found = []
    for name, table in known.items():
        rows: models.QuerySet[Any] = models.QuerySet(table)
        if name in _FROM_THE_START:
            continue
        if name == User._meta.label_lower:
            rows = rows.exclude(username=DESK)
        if count := rows.count():
            plural = table._meta.verbose_name_plural if count > 1 else table._meta.verbose_name
            found.append(f"{count:,} {plural}")
    return found


def _empty(known: Tables) -> None:
    going = {Session._meta.db_table, *(table._meta.db_table for table in known.values())}
    with connection.cursor() as cursor:
        for name in sorted(going.intersection(connection.introspection.table_names(cursor))):
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(name)}")


def _continue_numbers(known: Tables) -> None:
    """PostgreSQL counts keys apart from the rows: what comes next is after the largest that is there."""
    statements = connection.ops.sequence_reset_sql(no_style(), list(known.values()))
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
