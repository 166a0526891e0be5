"""A backup brings everything back, on another kind of database too, and answers are current afterwards."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from sizing.models import ApiToken, BenchFilePart, InventoryChange, Measurement, Node
from sizing.services import backups
from sizing.services.backups.tables import LEFT_OUT, applied, loader, tables
from sizing.services.errors import DeskError
from sizing.services.targets import find_answer, parse_question
from sizing.services.tokens import create_token
from tests import builders
from tests.admin.everything import make_one_of_each


def backup() -> bytes:
    file = BytesIO()
    backups.write_to(file)
    return file.getvalue()


def content(packed: bytes) -> list[str]:
    """All that a backup says but the moment that it was made at."""
    head, *lines = gzip.decompress(packed).decode().splitlines()
    return [json.dumps(json.loads(head)["migrations"]), *lines]


def restore(packed: bytes, replace: bool = True) -> dict[str, int]:
    return backups.restore(BytesIO(packed), replace)


def free_room() -> int:
    return find_answer(parse_question("llama", {"tokens_per_sec": ["2000"]})).count.free_room


def manage(data_dir: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    """A command on a SQLite of its own."""
    environment = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL",)}
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=settings.BASE_DIR,
        env=environment | {"DATA_DIR": str(data_dir), "DJANGO_SETTINGS_MODULE": "llmgw_admin.settings"},
        capture_output=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def one_of_each(groups: None) -> dict[str, Any]:
    rows = make_one_of_each()
    user = User.objects.create_superuser("ann", password="before")
    create_token("ann", "laptop", None)
    BenchFilePart.objects.create(file=rows["file"], position=9, content=bytes(range(256)))
    at = Measurement.objects.get()
    at.tok_per_sec, at.warnings = Decimal("1234.567891"), ['ünï\u2028 \\ " 🙂']
    at.save()
    return rows | {"ann": user}


def test_everything_comes_back_as_it_was(one_of_each):
    before = backup()
    User.objects.all().delete()
    Node.objects.all().update(name="changed since")
    Measurement.objects.all().update(source="changed since")
    if connection.vendor == "postgresql":  # as in a new database
        with connection.cursor() as cursor:
            cursor.execute("SELECT setval(pg_get_serial_sequence('sizing_node', 'id'), 1, false)")
    counts = restore(before)
    assert content(backup()) == content(before)
    assert User.objects.get(username="ann").check_password("before")
    assert bytes(BenchFilePart.objects.get(position=9).content) == bytes(range(256))
    assert counts["sizing.apitoken"] == ApiToken.objects.count() == 2
    Node.objects.create(name="after the restore")  # keys go on where they were


def test_a_backup_moves_between_sqlite_and_the_other_database(one_of_each, tmp_path):
    here = backup()
    (tmp_path / "here.bak").write_bytes(here)
    done = manage(tmp_path / "other", "restore", str(tmp_path / "here.bak"))
    assert done.returncode == 0, done.stderr
    done = manage(tmp_path / "other", "backup", "-")
    assert content(done.stdout) == content(here)
    Node.objects.all().update(name="changed since")
    restore(done.stdout)
    assert content(backup()) == content(here)


@pytest.mark.django_db(transaction=True)
def test_answers_are_current_after_a_restore_in_a_running_process():
    model = builders.model()
    variant = builders.variant(model)
    builders.measurement(variant, builders.profile(), 1000)
    model.default_profile = variant.measurements.get().profile
    model.save()
    node = builders.node()
    empty = backup()
    assert free_room() == 2
    node.gpus.filter(index__lt=4).delete()
    assert free_room() == 1
    restore(empty)
    assert free_room() == 2


def test_a_database_that_holds_something_is_only_replaced_on_purpose(groups):
    packed = backup()
    builders.node()
    builders.model()
    with pytest.raises(DeskError) as refused:
        restore(packed, replace=False)
    assert refused.value.message == (
        "the database is not empty (1 node, 8 GPUs, 1 model); --replace gives that up"
    )
    assert Node.objects.count() == 1
    restore(packed)
    assert Node.objects.count() == 0
    restore(packed, replace=False)  # into what a new database has


def test_sessions_end_and_the_log_of_changes_goes_on(groups):
    Session.objects.create(session_key="k", session_data="x", expire_date=timezone.now())
    builders.node()
    newest = InventoryChange.objects.latest("id").id
    restore(backup())
    assert not Session.objects.exists()
    assert InventoryChange.objects.latest("id").id > newest


@pytest.mark.parametrize(
    ("broken", "line"),
    [
        (lambda packed: b"not a backup", "this is no backup of the desk"),
        (lambda packed: gzip.compress(b'{"is": "another"}'), "this is no backup of the desk"),
        (lambda packed: packed[:-20], "the backup is cut off: its end is missing"),
        (
            lambda packed: gzip.compress(b"\n".join(gzip.decompress(packed).splitlines()[:-1])),
            "the backup is cut off: its end is missing",
        ),
        (
            lambda packed: gzip.compress(gzip.decompress(packed).replace(b'"gpu-a1"', b"null")),
            "the backup does not fit this database: ",
        ),
        (
            lambda packed: gzip.compress(gzip.decompress(packed).replace(b'"sizing.gpu"', b'"sizing.gpus"')),
            "the backup has a table that the desk does not know: sizing.gpus",
        ),
        (
            lambda packed: gzip.compress(gzip.decompress(packed).replace(b'"version":1', b'"version":2')),
            "this backup was made by a newer version of the desk; update the desk first",
        ),
        (
            lambda packed: gzip.compress(gzip.decompress(packed).replace(b"0001_tables", b"9999_newest")),
            "the backup is of a newer version of the desk (sizing.9999_newest); update the desk first",
        ),
        (
            lambda packed: gzip.compress(gzip.decompress(packed).replace(b',"0007_groups"', b"")),
            "the backup is of an older version of the desk; restore it into a database without tables,"
            " where it is brought up to date",
        ),
    ],
)
def test_a_broken_or_foreign_backup_changes_nothing(groups, broken, line):
    builders.node()
    packed = backup()
    with pytest.raises(DeskError) as refused:
        restore(broken(packed))
    assert refused.value.message.startswith(line)
    assert "\n" not in refused.value.message
    assert content(backup()) == content(packed)


def test_a_backup_of_an_older_version_is_brought_up_to_date(tmp_path):
    """Its tables are made as they were, filled, and then migrated."""
    data = tmp_path / "old"
    assert manage(data, "migrate", "sizing", "0006", "-v0").returncode == 0
    with closing(sqlite3.connect(data / "db.sqlite3")) as old:
        old.execute(
            "INSERT INTO sizing_mappingrule"
            " (name, position, enabled, by, key, pattern, namespace, model, variant)"
            " VALUES ('of old', 7, 1, 'pod', '', '.*', '', 'llama', '')"
        )
        old.commit()
    packed = manage(data, "backup", "-").stdout
    assert "0007_groups" not in content(packed)[0]
    (tmp_path / "old.bak").write_bytes(packed)
    done = manage(tmp_path / "new", "restore", str(tmp_path / "old.bak"))
    assert (done.returncode, done.stderr) == (0, b"")
    newest = content(manage(tmp_path / "new", "backup", "-").stdout)
    assert "0007_groups" in newest[0]
    assert [line for line in newest if '"of old"' in line] == [
        line for line in content(packed) if "of old" in line
    ]
    assert any('"viewer"' in line for line in newest)  # a group that the newer migration made


def test_a_backup_file_is_its_owners_alone_and_overwrites_nothing(tmp_path):
    done = manage(tmp_path / "none", "backup", str(tmp_path / "a.bak"))
    assert done.returncode == 2
    assert done.stderr == b"the database has no tables yet; run `manage.py migrate`\n"
    assert not (tmp_path / "a.bak").exists()
    assert manage(tmp_path / "none", "migrate", "-v0").returncode == 0
    done = manage(tmp_path / "none", "backup", str(tmp_path / "a.bak"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.bak").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.bak", "none"]
    again = manage(tmp_path / "none", "backup", str(tmp_path / "a.bak"))
    assert again.returncode == 2
    assert b"is there already; a backup overwrites nothing" in again.stderr


@pytest.mark.django_db
def test_every_table_is_in_the_backup_but_what_is_of_the_moment():
    known = loader()
    names = {table._meta.db_table for table in tables(known, applied(known)).values()}
    left_out = {name.replace(".", "_") for name in LEFT_OUT} | {"django_session", "django_migrations"}
    assert names | left_out - {"sessions_session"} == set(connection.introspection.table_names())
    assert not MigrationExecutor(connection).migration_plan(known.graph.leaf_nodes())
