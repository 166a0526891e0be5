"""The schedule goes on as before when somebody sets the clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from celery.schedules import schedule

from llmgw_admin import celery
from llmgw_admin.steady_schedule import SteadyScheduler

HOUR = 3600.0


class Sent(SteadyScheduler):
    """Notes what it would send."""

    def __init__(self) -> None:
        super().__init__(app=celery.app, lazy=True)
        self.sent = 0
        self.step = 0.0
        each_minute = schedule(timedelta(minutes=1), nowfun=self.now, app=celery.app)
        self.add(name="each minute", task="none", schedule=each_minute)

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.step)

    def apply_entry(self, entry: object, producer: object = None) -> None:
        self.sent += 1


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_clock_that_is_set_neither_hurries_nor_stops_it(
    monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    scheduler = Sent()
    scheduler.tick()
    entry = scheduler.schedule["each minute"]
    sent_before = entry.last_run_at
    assert sent_before is not None
    scheduler.step = step
    now = time.time()
    monkeypatch.setattr("llmgw_admin.steady_schedule.time.time", lambda: now + step)
    scheduler.tick()
    moved = entry.last_run_at
    assert moved is not None
    assert abs((moved - sent_before).total_seconds() - step) < 1
    scheduler.tick()
    assert (scheduler.sent, entry.last_run_at) == (0, moved)


def test_it_is_the_schedule_that_beat_runs() -> None:
    assert celery.app.conf.beat_scheduler == "llmgw_admin.steady_schedule:SteadyScheduler"
