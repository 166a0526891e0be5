"""Lists of the cluster in the hands of workers: taken once, healed after a loss, dropped when old."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from io import BytesIO
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from sizing import tasks
from sizing.inventory.kubernetes.reading import read_listing
from sizing.models import ClusterImport, Node
from sizing.services import cluster_imports
from sizing.services.errors import DeskError
from sizing.syncing import bringing, importing
from tests.cluster_lists import as_bytes, node, pod, small

pytestmark = pytest.mark.django_db


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> ClusterImport:
    """A list that waits for a worker."""
    monkeypatch.setattr(cluster_imports, "LARGE_BYTES", 10)
    return cluster_imports.take("a.json", BytesIO(small()), partial=False, user=None)


def fields(row: ClusterImport, *names: str) -> tuple[Any, ...]:
    row.refresh_from_db()
    return tuple(getattr(row, name) for name in names)


def change(row: ClusterImport, **fields: Any) -> None:
    ClusterImport.objects.filter(pk=row.pk).update(**fields)


def long_ago(**span: float) -> Any:
    return timezone.now() - timedelta(**span)


def test_a_queued_list_is_read_by_one_worker(queued: ClusterImport) -> None:
    assert importing.read(queued.pk)
    assert not importing.read(queued.pk)
    assert fields(queued, "state", "attempts", "progress", "error") == ("read", 1, 100, "")
    assert queued.message == "1 node added, 1 replica added, 1 model added"
    assert queued.body is not None


def test_a_list_whose_reader_is_lost_is_read_by_another(queued: ClusterImport) -> None:
    change(queued, state="running", attempts=1, heartbeat_at=long_ago(seconds=50))
    assert importing.sweep() == 0
    change(queued, heartbeat_at=long_ago(seconds=70))
    assert importing.sweep() == 1
    assert fields(queued, "state", "heartbeat_at") == ("queued", None)
    assert importing.waiting() == ([queued.pk], [])


@pytest.mark.parametrize("attempts", [1, 3])
def test_an_import_whose_worker_is_lost_waits_for_people_not_for_another_worker(
    queued: ClusterImport, attempts: int
) -> None:
    assert importing.read(queued.pk)
    change(queued, state="importing", attempts=attempts, heartbeat_at=long_ago(seconds=50))
    assert importing.sweep() == 0
    change(queued, heartbeat_at=long_ago(seconds=70))
    assert importing.sweep() == 1
    assert fields(queued, "state", "heartbeat_at", "error") == ("read", None, importing.LOST)
    assert importing.waiting() == ([], [])
    assert not importing.bring(queued.pk)
    assert not Node.objects.exists()
    cluster_imports.bring(queued.pk)
    assert importing.bring(queued.pk)
    assert fields(queued, "state", "error") == ("done", "")


def test_a_list_that_loses_every_reader_is_given_up(queued: ClusterImport) -> None:
    change(queued, state="running", attempts=3, heartbeat_at=long_ago(seconds=70))
    assert importing.sweep() == 1
    assert fields(queued, "state", "error", "body") == ("failed", importing.GIVEN_UP, None)


@pytest.mark.django_db(transaction=True)
def test_a_worker_gives_signs_of_life_while_it_counts(
    queued: ClusterImport, monkeypatch: pytest.MonkeyPatch
) -> None:
    consider = bringing.consider

    def slow(*args: Any, **options: Any) -> Any:
        change(queued, heartbeat_at=long_ago(hours=1))
        for _ in range(500):
            if fields(queued, "heartbeat_at")[0] > long_ago(minutes=1):
                return consider(*args, **options)
            time.sleep(0.02)
        raise AssertionError("no sign of life")

    monkeypatch.setattr(importing, "BEAT_EVERY_S", 0.02)
    monkeypatch.setattr(bringing, "consider", slow)
    assert importing.read(queued.pk)
    assert fields(queued, "state") == ("read",)


@pytest.fixture
def to_import(queued: ClusterImport) -> ClusterImport:
    """A list that waits for a worker to import it."""
    importing.read(queued.pk)
    return cluster_imports.bring(queued.pk)


@pytest.mark.parametrize("taken_back", ["cancelled", "lost", "asked for again"])
def test_an_import_that_was_taken_back_writes_nothing_however_late_its_worker_is(
    to_import: ClusterImport, monkeypatch: pytest.MonkeyPatch, taken_back: str
) -> None:
    bring = bringing.bring

    def late(*args: Any, **options: Any) -> Any:
        if taken_back == "lost":
            change(to_import, heartbeat_at=long_ago(seconds=70))
            importing.sweep()
        else:
            cluster_imports.cancel(to_import.pk)
        if taken_back == "asked for again":
            cluster_imports.bring(to_import.pk)
            change(to_import, attempts=F("attempts") + 1, heartbeat_at=timezone.now())
        return bring(*args, **options)

    monkeypatch.setattr(bringing, "bring", late)
    assert importing.bring(to_import.pk)
    assert (
        fields(to_import, "state", "error")
        == {
            "cancelled": ("read", importing.CANCELLED),
            "lost": ("read", importing.LOST),
            "asked for again": ("importing", ""),
        }[taken_back]
    )
    assert to_import.body is not None
    assert not Node.objects.exists()


def test_what_fails_after_an_import_does_not_call_it_not_imported(
    to_import: ClusterImport, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring = bringing.bring

    def killed(*args: Any, **options: Any) -> Any:
        bring(*args, **options)
        raise SystemExit

    monkeypatch.setattr(bringing, "bring", killed)
    with pytest.raises(SystemExit):
        importing.bring(to_import.pk)
    assert Node.objects.exists()
    assert fields(to_import, "state", "error", "body") == ("done", "", None)
    assert to_import.message == "1 node added, 1 replica added, 1 model added"
    with pytest.raises(DeskError):
        cluster_imports.cancel(to_import.pk)


def test_a_list_whose_reading_was_cancelled_too_late_can_be_imported(queued: ClusterImport) -> None:
    importing.read(queued.pk)
    change(queued, cancel_requested=True)
    cluster_imports.bring(queued.pk)
    importing.bring(queued.pk)
    assert fields(queued, "state") == ("done",)


def test_a_worker_that_comes_back_late_writes_nothing(
    queued: ClusterImport, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = read_listing

    def late(body: bytes, progress: Callable[[float], None]) -> Any:
        # Meanwhile it counted as lost, and another worker has begun.
        change(queued, attempts=2)
        return read(body, progress)

    monkeypatch.setattr(importing, "read_listing", late)
    assert importing.read(queued.pk)
    assert fields(queued, "state", "attempts", "report", "body") == (
        "running",
        2,
        {},
        queued.body,
    )


def test_a_cancelled_list_is_not_imported(queued: ClusterImport, monkeypatch: pytest.MonkeyPatch) -> None:
    change(queued, state="importing", cancel_requested=True)
    importing.bring(queued.pk)
    assert fields(queued, "state", "error") == ("failed", importing.CANCELLED)
    assert not Node.objects.exists()


@pytest.mark.parametrize("state", ["queued", "read"])
def test_files_that_nobody_imported_within_a_day_are_dropped(queued: ClusterImport, state: str) -> None:
    change(queued, state=state, queued_at=long_ago(hours=23))
    assert importing.sweep() == 0
    change(queued, queued_at=long_ago(hours=25))
    assert importing.sweep() == 1
    assert fields(queued, "state", "error", "body") == ("failed", importing.DROPPED, None)


def test_the_sweep_wakes_workers_for_what_waits(
    queued: ClusterImport, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[tuple[str, int]] = []
    monkeypatch.setattr(
        tasks.read_cluster_list, "apply_async", lambda args, **_: woken.append(("read", *args))
    )
    monkeypatch.setattr(
        tasks.import_cluster_list, "apply_async", lambda args, **_: woken.append(("import", *args))
    )
    tasks.sweep_refreshes()
    change(queued, state="importing", heartbeat_at=None)
    tasks.sweep_refreshes()
    assert woken == [("read", queued.pk), ("import", queued.pk)]


def test_the_tasks_do_what_they_are_called(queued: ClusterImport) -> None:
    tasks.read_cluster_list(queued.pk)
    cluster_imports.bring(queued.pk)
    tasks.import_cluster_list(queued.pk)
    assert fields(queued, "state", "body") == ("done", None)
    assert Node.objects.get().name == "gpu-a1"


def test_what_breaks_a_worker_is_told_by_the_row(
    queued: ClusterImport, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(importing, "read_listing", broken)
    with pytest.raises(ZeroDivisionError):
        importing.read(queued.pk)
    assert fields(queued, "state", "error", "body") == ("failed", importing.BROKE_OFF, None)


def test_what_is_refused_at_the_last_moment_can_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    row = cluster_imports.take("a.json", BytesIO(small()), partial=False, user=None)

    def refused(*args: Any, **options: Any) -> Any:
        raise bringing.RefusedError("somebody else changed the inventory meanwhile; nothing was changed")

    with monkeypatch.context() as patch:
        patch.setattr(bringing, "bring", refused)
        with pytest.raises(DeskError, match="somebody else changed"):
            cluster_imports.bring(row.pk)
    assert fields(row, "state", "error")[0] == "read"
    assert cluster_imports.bring(row.pk).state == "done"


def test_acts_on_what_is_in_another_state_are_conflicts(queued: ClusterImport) -> None:
    acts: tuple[Callable[[], object], ...] = (
        lambda: cluster_imports.bring(queued.pk),
        lambda: cluster_imports.look_again(queued.pk, partial=True),
        lambda: cluster_imports.cancel(queued.pk),
    )
    for act in acts:
        with pytest.raises(DeskError) as refused:
            act()
        assert (refused.value.status, refused.value.code) == (409, "conflict")
    change(queued, state="running")
    with pytest.raises(DeskError):
        cluster_imports.discard(queued.pk)


def test_a_list_of_too_many_bytes_is_a_413(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_imports, "LARGEST_DOCUMENT", 100)
    with pytest.raises(DeskError) as refused:
        cluster_imports.take("a.json", BytesIO(small()), partial=False, user=None)
    assert (refused.value.status, refused.value.code) == (413, "too_large")
    assert not ClusterImport.objects.exists()


def test_a_files_name_is_a_label_on_one_line() -> None:
    content = as_bytes(node(), pod("llama-0"))
    row = cluster_imports.take("a\n\x1b[31m" + "x" * 300, BytesIO(content), partial=False, user=None)
    assert row.name.startswith("a\\n\\x1b[31mxxx")
    assert len(row.name) == 255
