"""Whether the broker can be reached, and how many messages wait there."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from celery import current_app
from django.conf import settings

LOOKED_AT_EVERY_S = 5.0
"""Probes need no sign-in, so that none of them may cost a connection each time."""

PATIENCE_S = 2


@dataclass(frozen=True, slots=True)
class Broker:
    """The broker as this process saw it last. `messages`: waiting, by queue."""

    up: bool
    messages: Mapping[str, int] = field(default_factory=dict)


_lock = threading.Lock()
_last: tuple[float, Broker] | None = None


def look() -> Broker:
    """The broker now, or at most a few seconds ago."""
    global _last
    with _lock:
        if _last is None or time.monotonic() - _last[0] > LOOKED_AT_EVERY_S:
            found = _look()
            _last = time.monotonic(), found
        return _last[1]


def _look() -> Broker:
    options = {"socket_connect_timeout": PATIENCE_S, "socket_timeout": PATIENCE_S}
    folder = settings.CELERY_BROKER_TRANSPORT_OPTIONS.get("folder")
    if folder is not None and not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return Broker(up=False)
    try:
        with current_app.connection_for_write(
            connect_timeout=PATIENCE_S, transport_options=options
        ) as connection:
            connection.ensure_connection(max_retries=1, timeout=PATIENCE_S)
            waiting = {queue.name: _waiting(connection, queue.name) for queue in settings.CELERY_TASK_QUEUES}
    except Exception:  # noqa: BLE001  each transport has errors of its own, and all mean the same here
        return Broker(up=False)
    return Broker(up=True, messages=waiting)


def _waiting(connection: Any, queue: str) -> int:
    """Messages in a queue; 0 where there is none yet, which closes the channel that was asked."""
    channel = connection.channel()
    try:
        return int(channel.queue_declare(queue=queue, passive=True).message_count)
    except connection.channel_errors:
        return 0
    finally:
        channel.close()
