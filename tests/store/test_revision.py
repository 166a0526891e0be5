"""Every committed write to what an answer depends on moves the inventory's revision."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client

from sizing import snapshot
from sizing.measuring import refreshes
from sizing.models import (
    BenchProfile,
    Gpu,
    InventoryChange,
    Measurement,
    Node,
    Placement,
    Refresh,
    Replica,
    ServedModel,
    Target,
    Variant,
)
from tests import builders

pytestmark = pytest.mark.django_db(transaction=True)


def revision() -> tuple[int, int] | None:
    return InventoryChange.objects.order_by("-id").values_list("id", "nonce").first()


@pytest.fixture
def fleet() -> None:
    node = builders.node(gpus=2)
    chat = builders.profile()
    llama = builders.model()
    tp1 = builders.variant(llama, "tp1", gpus=1)
    builders.measurement(tp1, chat)
    builders.replica("llama-0", tp1, node, (0,))
    builders.target(llama)


WRITES: dict[str, Callable[[], Any]] = {
    "create a node": lambda: Node.objects.create(name="new"),
    "save a node": lambda: Node.objects.get().save(),
    "delete a GPU": lambda: Gpu.objects.filter(index=1).delete(),
    "bulk-create GPUs": lambda: Gpu.objects.bulk_create(
        [Gpu(node=Node.objects.get(), index=9, type="L4", memory_mib=24000)]
    ),
    "update GPUs by a queryset": lambda: Gpu.objects.update(healthy=False),
    "update a replica by a queryset": lambda: Replica.objects.filter(name="llama-0").update(state="failed"),
    "delete a placement": lambda: Placement.objects.all().delete(),
    "bulk-create placements": lambda: Placement.objects.bulk_create(
        [Placement(replica=Replica.objects.get(), gpu=Gpu.objects.get(index=1))]
    ),
    "create a model": lambda: ServedModel.objects.create(name="new"),
    "bulk-update models": lambda: ServedModel.objects.bulk_update(
        [_with(ServedModel.objects.get(), priority=7)], ["priority"]
    ),
    "create a variant": lambda: Variant.objects.create(model=ServedModel.objects.get(), name="new"),
    "update a profile": lambda: BenchProfile.objects.update(refresh_every_h=1),
    "create a measurement": lambda: builders.measurement(
        Variant.objects.get(), BenchProfile.objects.get(), 5
    ),
    "delete a measurement": lambda: Measurement.objects.all().delete(),
    "update a target": lambda: Target.objects.update(tokens_per_sec=2),
}


def _with(row: Any, **fields: Any) -> Any:
    for name, value in fields.items():
        setattr(row, name, value)
    return row


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
@pytest.mark.usefixtures("fleet")
def test_each_way_of_writing_moves_the_revision(write: Callable[[], Any]) -> None:
    before = revision()
    kept = snapshot.current()
    write()
    assert revision() != before
    assert snapshot.current() is not kept


TABLES = [
    "node",
    "gpu",
    "replica",
    "placement",
    "servedmodel",
    "variant",
    "benchprofile",
    "measurement",
    "target",
]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.usefixtures("fleet")
def test_raw_sql_of_another_process_moves_the_revision(table: str) -> None:
    before = revision()
    another_process(f"UPDATE sizing_{table} SET id = id")
    assert revision() != before


@pytest.mark.parametrize("table", ["placement", "measurement", "target"])
@pytest.mark.usefixtures("fleet")
def test_a_raw_delete_of_another_process_moves_the_revision(table: str) -> None:
    before = revision()
    another_process(f"DELETE FROM sizing_{table}")
    assert revision() != before


@pytest.mark.usefixtures("fleet")
def test_an_answer_follows_raw_sql_of_another_process_at_once() -> None:
    assert free() == 1
    another_process("UPDATE sizing_node SET schedulable = (1 = 0)")
    assert free() == 0
    another_process("UPDATE sizing_node SET schedulable = (1 = 1)")
    another_process("DELETE FROM sizing_placement")
    assert free() == 2


@pytest.mark.usefixtures("fleet")
def test_an_answer_follows_a_replacing_insert() -> None:
    if connection.vendor != "sqlite":
        another_process("TRUNCATE sizing_placement")
        assert free() == 2
        return
    assert free() == 1
    another_process(
        "REPLACE INTO sizing_node (name, ready, schedulable, stale, labels, taints, source)"
        " VALUES ('gpu-a1', 1, 1, 0, '{}', '[]', '')"
    )
    assert free() == 0


@pytest.mark.usefixtures("fleet")
def test_the_admin_moves_the_revision(client: Client) -> None:
    client.force_login(User.objects.create_superuser("root", password="x"))
    before = revision()
    response = client.post(f"/admin/sizing/target/{Target.objects.get().pk}/delete/", {"post": "yes"})
    assert response.status_code == 302
    assert revision() != before


@pytest.mark.usefixtures("fleet")
def test_the_api_moves_the_revision(client: Client) -> None:
    client.force_login(User.objects.create_superuser("root", password="x"))
    before = revision()
    response = client.delete(f"/api/v1/targets/{Target.objects.get().pk}")
    assert response.status_code == 204
    assert revision() != before


@pytest.mark.usefixtures("fleet")
def test_heartbeats_sessions_tokens_and_users_do_not_move_it(client: Client) -> None:
    Replica.objects.update(benchable=True, endpoint="http://127.0.0.1:9/v1")
    before = revision()
    user = User.objects.create_user("someone")
    client.force_login(user)
    row = Refresh.objects.create(
        variant=Variant.objects.get(), profile=BenchProfile.objects.get(), trigger="api"
    )
    claim = refreshes.claim(row.pk)
    assert claim is not None
    assert refreshes.heartbeat(claim, 50)
    assert refreshes.fail(claim, "enough")
    assert revision() == before


@pytest.mark.usefixtures("fleet")
def test_a_rolled_back_write_leaves_no_trace_in_the_snapshot() -> None:
    try:
        with transaction.atomic():
            Node.objects.update(schedulable=False)
            assert free() == 0
            raise RuntimeError
    except RuntimeError:
        pass
    assert free() == 1


@pytest.mark.usefixtures("fleet")
def test_a_restored_older_state_is_read_anew() -> None:
    assert free() == 1
    kept = snapshot.current()
    newest = InventoryChange.objects.order_by("-id").first()
    assert newest is not None
    # A backup: the log has the same ids, but not the row that the snapshot was read at.
    Node.objects.update(schedulable=False)
    InventoryChange.objects.filter(id__gte=newest.id).update(nonce=1)
    assert snapshot.current() is not kept
    assert free() == 0


def test_pruning_keeps_the_newest_rows_and_answers_stay_right() -> None:
    builders.node(gpus=2)
    for _ in range(30):
        Node.objects.update(cpu_millis=None)
    kept = snapshot.current()
    Node.objects.update(ready=False)
    newest = revision()
    removed = InventoryChange.prune(keep=1)
    assert removed > 0
    assert revision() == newest
    assert snapshot.current() is not kept
    assert not snapshot.current().fleet.hardware.ready.any()


def free() -> int:
    from sizing.domain.placement import room
    from sizing.domain.specs import VariantSpec

    return room(snapshot.current().fleet, VariantSpec("any"))


def another_process(sql: str) -> None:
    """Run a statement by another program, as by sqlite3 or psql."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        program = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"
        address = str(settings["NAME"])
    else:
        program = (
            "import psycopg, sys\nwith psycopg.connect(sys.argv[1]) as c: c.execute(sys.argv[2])"  # commits
        )
        from psycopg.conninfo import make_conninfo

        connection.ensure_connection()
        password = {"password": settings["PASSWORD"]} if settings["PASSWORD"] else {}
        address = make_conninfo(connection.connection.info.dsn, **password)
    subprocess.run([sys.executable, "-c", program, address, sql], check=True, timeout=30)
