"""The SQL of the triggers that write `InventoryChange`, for SQLite and PostgreSQL.

Used by migrations only. Whoever writes to one of the watched tables, by whatever client, adds rows
to the log in the same transaction, so that a reader who compares the newest row knows whether what
it holds is current.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

LOG = "sizing_inventorychange"

# Held by a PostgreSQL writer from its first change to its commit: ids of the log then grow in the
# order of commits. `sizing.models.locking` takes the same lock before it reads what it will write.
ADVISORY_LOCK = 728301


@dataclass(frozen=True)
class Watched:
    """A table, what a change to one of its rows means, and the columns that SQLite's REPLACE resolves by."""

    table: str
    kind: str
    row: str
    unique: tuple[tuple[str, ...], ...] = ()


WATCHED = (
    Watched("sizing_node", "node", "id", (("name",),)),
    Watched("sizing_gpu", "node", "node_id", (("node_id", "index"), ("uuid",))),
    Watched("sizing_replica", "replica", "id", (("name",),)),
    Watched("sizing_placement", "replica", "replica_id", (("replica_id", "gpu_id"),)),
    Watched("sizing_servedmodel", "catalog", "0"),
    Watched("sizing_variant", "catalog", "0"),
    Watched("sizing_benchprofile", "catalog", "0"),
    Watched("sizing_measurement", "catalog", "0"),
    Watched("sizing_target", "catalog", "0"),
)


def create(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """For `RunPython`: make the triggers."""
    for statement in postgresql_create() if _on_postgresql(editor) else sqlite_create():
        editor.execute(statement, params=None)


def drop(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """For `RunPython`: undo `create`. SQLite makes a table anew to change it, and its triggers are lost."""
    for statement in postgresql_drop() if _on_postgresql(editor) else sqlite_drop():
        editor.execute(statement, params=None)


def _on_postgresql(editor: BaseDatabaseSchemaEditor) -> bool:
    return editor.connection.vendor == "postgresql"


def _row(watched: Watched, prefix: str) -> str:
    return watched.row if watched.row == "0" else f'{prefix}."{watched.row}"'


def sqlite_create() -> list[str]:
    """Row-level triggers; the one write lock of SQLite orders the log."""
    statements = []
    for w in WATCHED:
        for event, prefixes in (("INSERT", ("NEW",)), ("UPDATE", ("OLD", "NEW")), ("DELETE", ("OLD",))):
            insert = f"INSERT INTO {LOG} (kind, row, nonce)"
            inserts = f"{insert} VALUES ('{w.kind}', {_row(w, prefixes[-1])}, random());"
            if len(prefixes) == 2 and w.row not in ("0", "id"):
                old, new = _row(w, "OLD"), _row(w, "NEW")
                inserts += f" {insert} SELECT '{w.kind}', {old}, random() WHERE {old} <> {new};"
            statements.append(
                f"CREATE TRIGGER {w.table}_log_{event.lower()} AFTER {event} ON {w.table} BEGIN {inserts} END"
            )
        # INSERT OR REPLACE removes the row in its way without a delete trigger: only a full read is safe.
        for number, columns in enumerate(w.unique):
            same = " AND ".join(f'"{c}" = NEW."{c}"' for c in columns)
            for event in ("INSERT", "UPDATE"):
                statements.append(
                    f"CREATE TRIGGER {w.table}_replace{number}_{event.lower()} BEFORE {event} ON {w.table}"
                    f" WHEN NEW.\"{columns[0]}\" <> '' AND EXISTS"
                    f" (SELECT 1 FROM {w.table} WHERE {same} AND id <> NEW.id)"
                    f" BEGIN INSERT INTO {LOG} (kind, row, nonce) VALUES ('all', 0, random()); END"
                )
    return statements


def sqlite_drop() -> list[str]:
    """Undo `sqlite_create`."""
    names = [s.split()[2] for s in sqlite_create()]
    return [f"DROP TRIGGER IF EXISTS {name}" for name in names]


_NONCE = "(random() * 9e18)::bigint"


def postgresql_create() -> list[str]:
    """Statement-level triggers: one takes the lock before any row is touched, one logs the changed rows."""
    statements = [
        f"""CREATE FUNCTION sizing_log_begin() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_advisory_xact_lock({ADVISORY_LOCK});
            INSERT INTO {LOG} (kind, "row", nonce)
            VALUES (CASE WHEN TG_OP = 'TRUNCATE' THEN 'all' ELSE 'none' END, 0, {_NONCE});
            RETURN NULL;
        END $$"""
    ]
    for w in WATCHED:
        statements.append(
            f"CREATE TRIGGER {w.table}_log_begin BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {w.table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION sizing_log_begin()"
        )
        sources = {"INSERT": ("new_rows",), "UPDATE": ("old_rows", "new_rows"), "DELETE": ("old_rows",)}
        for event, tables in sources.items():
            rows = " UNION ".join(f"SELECT {_row(w, t)} AS r FROM {t}" for t in tables)
            referencing = " ".join(f"{'NEW' if t == 'new_rows' else 'OLD'} TABLE AS {t}" for t in tables)
            name = f"{w.table}_log_{event.lower()}"
            statements.append(
                f"""CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    INSERT INTO {LOG} (kind, "row", nonce)
                    SELECT '{w.kind}', changed.r, {_NONCE} FROM
                        (SELECT DISTINCT r::bigint AS r FROM ({rows}) AS touched) AS changed;
                    RETURN NULL;
                END $$"""
            )
            statements.append(
                f"CREATE TRIGGER {name} AFTER {event} ON {w.table} REFERENCING {referencing}"
                f" FOR EACH STATEMENT EXECUTE FUNCTION {name}()"
            )
    return statements


def postgresql_drop() -> list[str]:
    """Undo `postgresql_create`."""
    statements = []
    for w in WATCHED:
        statements.append(f"DROP TRIGGER IF EXISTS {w.table}_log_begin ON {w.table}")
        for event in ("insert", "update", "delete"):
            statements.append(f"DROP FUNCTION IF EXISTS {w.table}_log_{event}() CASCADE")
    return [*statements, "DROP FUNCTION IF EXISTS sizing_log_begin() CASCADE"]
