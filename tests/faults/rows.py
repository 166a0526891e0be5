"""The rows of a desk that runs in other processes: made, watched and judged from here."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import dj_database_url
import psutil
from django.contrib.contenttypes.models import ContentType
from django.db import connections
from django.db.utils import ConnectionHandler

from sizing.models import (
    BenchLevel,
    BenchProfile,
    MeasuredNode,
    Measurement,
    Node,
    Refresh,
    Variant,
    WorkerBeat,
)
from tests import builders
from tests.infra.desk import Desk, alive, until
from tests.measuring.simulated import truth

LAST = 123
"""The last valid measurement of everything that is measured here."""

SHORT = {"lowest": 2, "highest": 2, "most_levels": 2, "level_s": 15, "budget_s": 40}
"""Options of a measurement of two short levels."""


@contextmanager
def rows_of(environment: dict[str, str]) -> Iterator[None]:
    """The models in this process read and write the database of the desk with this environment."""
    ours = connections["default"]
    url = environment.get("DATABASE_URL") or f"sqlite:///{environment['DATA_DIR']}/db.sqlite3"
    database: dict[str, Any] = dict(dj_database_url.parse(url))
    if database["ENGINE"].endswith("sqlite3"):
        database["OPTIONS"] = {"transaction_mode": "IMMEDIATE", "timeout": 20}
    theirs = ConnectionHandler({"default": database})["default"]
    connections["default"] = theirs
    ContentType.objects.clear_cache()  # their ids may be others there
    try:
        yield
    finally:
        theirs.close()
        connections["default"] = ours
        ContentType.objects.clear_cache()


def queued(url: str, node: Node | None = None, **options: Any) -> Refresh:
    """A refresh of a model of its own that was measured before, on a replica at this URL.

    Nobody is told of it: the next sweep finds it.
    """
    variant, profile = measurable(url, node)
    return Refresh.objects.create(variant=variant, profile=profile, trigger="api", options=SHORT | options)


def measurable(url: str, node: Node | None = None) -> tuple[Variant, BenchProfile]:
    """A model of its own that was measured before, with one replica at this URL."""
    name = uuid.uuid4().hex[:8]
    node = node or builders.node(f"node-{name}", gpus=1)
    model = builders.model(f"model-{name}")
    variant = builders.variant(model, "one", gpus=1)
    builders.replica(f"replica-{name}", variant, node, (0,), benchable=True, endpoint=url)
    profile = builders.profile(
        f"short-{name}", input_tokens=16, output_tokens=8, ttft_ms=2000, arrival="concurrency"
    )
    builders.measurement(variant, profile, LAST)
    return variant, profile


def fresh(row: Refresh) -> Refresh:
    return Refresh.objects.get(pk=row.pk)


def wait_for(row: Refresh, *states: str, seconds: float = 60.0) -> Refresh:
    """The row, once it is in one of the states."""
    assert until(lambda: fresh(row).state in states, seconds), described(row)
    return fresh(row)


def wait_until_measured_at(row: Refresh, level: int = 1) -> None:
    """Until requests of a level fly."""

    def flying() -> bool:
        live = fresh(row).live
        return live.get("level", 0) >= level and live.get("sent", 0) > 0

    assert until(flying), described(row)


def described(row: Refresh) -> str:
    now = fresh(row)
    return f"{now}, attempt {now.attempts}: {now.message or now.error} {now.live}"


def generators(desk: Desk) -> list[psutil.Process]:
    """The load generators that run for a desk."""
    family = filter(alive, desk.family())
    return [process for process in family if "sizing.measuring.loadgen" in process.cmdline()]


def worker_back(after: datetime) -> datetime:
    """When a measuring worker told for the first time after a moment that it is ready."""
    beats = WorkerBeat.objects.filter(name__startswith="measure", seen_at__gt=after)
    assert until(beats.exists, 60)
    return beats.order_by("seen_at")[0].seen_at


def measured_once(row: Refresh, attempts: int) -> None:
    """Done at this attempt, with one measurement beside the last one, and nothing held any more."""
    row = fresh(row)
    assert (row.state, row.attempts, row.error) == ("done", attempts, ""), described(row)
    last, new = Measurement.objects.filter(variant=row.variant).order_by("measured_at")
    assert (int(last.tok_per_sec), last.refresh_id, last.slo_met) == (LAST, None, True)
    assert (new.refresh_id, new.slo_met, new.bound) == (row.pk, True, "floor")
    positions = list(new.levels.values_list("position", flat=True))
    assert positions == list(range(1, row.options["most_levels"] + 1))
    assert not BenchLevel.objects.filter(refresh=row).exists()
    assert not MeasuredNode.objects.filter(refresh=row).exists()


def untouched(row: Refresh) -> None:
    """Nothing was stored, the last measurement is as it was, and nothing is held any more."""
    (last,) = Measurement.objects.filter(variant=row.variant)
    assert (int(last.tok_per_sec), last.refresh_id, last.slo_met) == (LAST, None, True)
    assert not MeasuredNode.objects.filter(refresh=row).exists()


def nothing_runs(desk: Desk, *urls: str) -> None:
    """No load generator, and no stream in any of these replicas."""
    assert until(lambda: not generators(desk), 5)
    assert until(lambda: all((truth(url)["running"], truth(url)["waiting"]) == (0, 0) for url in urls), 5)
