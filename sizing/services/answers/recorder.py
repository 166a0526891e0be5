"""Writing answers down, on a thread of its own: no answer waits for that, or fails with it.

What waits is bounded. Where the database is away, the newest are kept and tried again; what had to be let go
is counted, and said in the log once in a while.
"""

from __future__ import annotations

import atexit
import logging
import os
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Condition, Thread
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import (
    IntegrityError,
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
    transaction,
)

from sizing import tally
from sizing.models import Answer, Measurement
from sizing.services.answers import keeping
from sizing.services.answers.document import Inventory
from sizing.snapshot import Revision

log = logging.getLogger(__name__)

MOST_WAITING = 256
AT_ONCE = 32
IDLE_S = 10.0
"""After so long without anything to write, the thread ends, and its connection with it."""

LONGEST_PAUSE_S = 30.0
SAID_AGAIN_S = 60.0
EXIT_S = 5.0

LOOKED_FOR_S = 2.0
"""So long an answer is looked for that a process, on whichever host, may still have to write."""

_LOOKED_AGAIN_S = 0.05
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Job:
    """A row to be written, and the inventory that it rests on; revision None: that cannot be kept."""

    row: Answer
    revision: Revision | None
    inventory: Inventory


_waiting: deque[Job] = deque()
_writing: Sequence[Job] = ()
_changed = Condition()
_thread: Thread | None = None
_dropped = 0
_said_at = float("-inf")


def put(job: Job) -> None:
    """Have a row written soon; with `ANSWERS_AT_ONCE` it is when this returns."""
    global _thread
    if settings.ANSWERS_AT_ONCE:
        write([job])
        return
    with _changed:
        _waiting.append(job)
        while len(_waiting) > MOST_WAITING:
            _waiting.popleft()
            _let_go(1)
        if _thread is None or not _thread.is_alive():
            _thread = Thread(target=_keep_writing, daemon=True, name="answers")
            _thread.start()
        _changed.notify_all()


def flush(seconds: float = EXIT_S) -> bool:
    """Wait until all that was put so far is written, for so long at most; whether it is."""
    with _changed:
        return _changed.wait_for(lambda: not _waiting and not _writing, seconds)


def waits(pk: UUID) -> bool:
    """Whether the row of that id is still to be written."""
    with _changed:
        return any(job.row.pk == pk for job in (*_waiting, *_writing))


def written_by_now(pk: UUID) -> Answer | None:
    """The answer of that id; one that some process has yet to write is waited for, `LOOKED_FOR_S` at most.

    Not within a transaction, which might never see it.
    """
    until = time.monotonic() + LOOKED_FOR_S
    while True:
        row = Answer.objects.filter(pk=pk).first()
        if row or settings.ANSWERS_AT_ONCE or time.monotonic() >= until:
            return row
        time.sleep(_LOOKED_AGAIN_S)


def _keep_writing() -> None:
    global _writing, _thread
    pause = 0.0
    while True:
        with _changed:
            if not _changed.wait_for(lambda: _waiting, IDLE_S):
                connection.close()
                _thread = None
                return
            _writing = [_waiting.popleft() for _ in range(min(AT_ONCE, len(_waiting)))]
        again = _tried(_writing)
        with _changed:
            _writing = ()
            room = MOST_WAITING - len(_waiting)
            _let_go(max(len(again) - room, 0))
            _waiting.extendleft(reversed(again[-room:] if room else []))
            _changed.notify_all()
        pause = min(max(pause * 2, 0.5), LONGEST_PAUSE_S) if again else 0.0
        time.sleep(pause)


def _tried(jobs: Sequence[Job]) -> list[Job]:
    """Write these; what is to be tried again, for the database is away."""
    try:
        close_old_connections()
        write(jobs)
    except (OperationalError, InterfaceError) as error:
        connection.close()
        _say("answers wait to be stored: %s", " ".join(str(error).split()))
        return list(jobs)
    except Exception:
        if len(jobs) == 1:
            log.exception("an answer cannot be stored")
            _let_go(1)
            return []
    else:
        tally.count("llmgw_answers_stored_total", len(jobs))
        return []
    # One of them spoils the others.
    again: list[Job] = []
    for job in jobs:
        again += [job] if again else _tried([job])
    return again


def write(jobs: Sequence[Job]) -> None:
    """Write rows and the inventories that they rest on, in one transaction.

    What a row names may be removed meanwhile: a base, a measurement, an account. Then it is done over.
    """
    for last in range(_TRIES - 1, -1, -1):
        try:
            with transaction.atomic():
                kept = {
                    job.revision: keeping.keep(job.revision, job.inventory) for job in jobs if job.revision
                }
                rows = [job.row for job in jobs]
                for job in jobs:
                    job.row.inventory_id = kept[job.revision] if job.revision else None
                _name_only_what_is_there(rows)
                Answer.objects.bulk_create(rows, ignore_conflicts=True)
            return
        except Exception as error:
            keeping.forget()  # the base may be gone, or was not committed
            if not last or not isinstance(error, IntegrityError):
                raise


def _name_only_what_is_there(rows: Sequence[Answer]) -> None:
    measurements = set(
        Measurement.objects.filter(pk__in={row.measurement_id for row in rows}).values_list("pk", flat=True)
    )
    asked_by = {row.asked_by_id for row in rows if row.asked_by_id}
    people = set(User.objects.filter(pk__in=asked_by).values_list("pk", flat=True)) if asked_by else set()
    for row in rows:
        row.measurement_id = row.measurement_id if row.measurement_id in measurements else None
        row.asked_by_id = row.asked_by_id if row.asked_by_id in people else None


def _let_go(number: int) -> None:
    global _dropped
    if number:
        _dropped += number
        tally.count("llmgw_answers_dropped_total", number)
        _say("%s answers of this process could not be stored", _dropped)


def _say(text: str, value: object) -> None:
    global _said_at
    if time.monotonic() - _said_at >= SAID_AGAIN_S:
        _said_at = time.monotonic()
        log.warning(text, value)


def _begin_anew() -> None:
    """In a child that was forked: what waits in its parent is its parent's to write."""
    global _waiting, _writing, _changed, _thread, _dropped
    _waiting, _writing, _changed, _thread, _dropped = deque(), (), Condition(), None, 0
    keeping.forget()


os.register_at_fork(after_in_child=_begin_anew)
atexit.register(flush)
