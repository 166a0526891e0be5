"""When tokens were used last: noted in the process, written once a minute on a thread of its own.

No request waits for that, or fails with it; what a process noted in its last minute may be lost with it.
"""

from __future__ import annotations

import atexit
import logging
import os
from datetime import datetime
from threading import Condition, Thread

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.db.models import Q
from django.utils import timezone

from sizing.models import ApiToken

log = logging.getLogger(__name__)

EVERY_S = 60.0
MOST_WAITING = 10_000

_noted: dict[str, datetime] = {}
_changed = Condition()
_thread: Thread | None = None


def note(token: ApiToken) -> None:
    """Keep in mind that a token was used now."""
    global _thread
    with _changed:
        if token.pk in _noted or len(_noted) < MOST_WAITING:
            _noted[token.pk] = timezone.now()
        if settings.TOKEN_USES_BY_THREAD and (_thread is None or not _thread.is_alive()):
            _thread = Thread(target=_keep_writing, daemon=True, name="token uses")
            _thread.start()
        _changed.notify()


def write() -> None:
    """Write what was noted so far. What cannot be written is left for the next time."""
    with _changed:
        noted = dict(_noted)
        _noted.clear()
    try:
        for pk, used_at in noted.items():
            earlier = Q(last_used_at=None) | Q(last_used_at__lt=used_at)
            ApiToken.objects.filter(earlier, pk=pk).update(last_used_at=used_at)
    except (DatabaseError, InterfaceError) as error:
        log.warning("when tokens were used is not written yet: %s", " ".join(str(error).split()))
        with _changed:
            for pk, used_at in noted.items():
                _noted.setdefault(pk, used_at)


def _keep_writing() -> None:
    while True:
        with _changed:
            _changed.wait_for(lambda: bool(_noted))
        _write_and_let_go()
        with _changed:
            _changed.wait_for(lambda: False, EVERY_S)


def _write_and_let_go() -> None:
    try:
        write()
    finally:
        connection.close()


def _at_exit() -> None:
    if _noted and settings.TOKEN_USES_BY_THREAD:
        _write_and_let_go()


def _begin_anew() -> None:
    """In a child that was forked: what its parent noted is its parent's to write."""
    global _noted, _changed, _thread
    _noted, _changed, _thread = {}, Condition(), None


os.register_at_fork(after_in_child=_begin_anew)
atexit.register(_at_exit)
