"""The background worker: ``celery -A llmgw_admin worker``."""

import logging
import os
import threading
import warnings
from datetime import timedelta
from typing import Any

from celery import Celery
from celery.platforms import SecurityWarning  # type: ignore[attr-defined]
from celery.signals import worker_process_init, worker_ready, worker_shutdown, worker_shutting_down

from sizing.supervisor import end_with
from sizing.syncing.stopping import stopping

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmgw_admin.settings")

logger = logging.getLogger(__name__)

# Messages are JSON, so root is no more at risk here than in the web server, which says nothing of it.
warnings.filterwarnings("ignore", category=SecurityWarning)

app = Celery("llmgw_admin")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

BEAT_EVERY_S = 15.0
FORGET_AFTER = timedelta(days=1)

_stopping = threading.Event()


@worker_process_init.connect
def end_with_the_worker(**kwargs: Any) -> None:
    """A process of the pool does not work on alone when the worker itself is killed."""
    if ask := end_with(os.getppid()):
        ask()


@worker_shutting_down.connect
def end_the_sync(**kwargs: Any) -> None:
    """The sync would run on for minutes; a worker that is asked to end waits for nothing so long."""
    stopping.set()


@worker_ready.connect
def start_beating(sender: Any, **kwargs: Any) -> None:
    """Tell the database every few seconds that this worker lives; ``/healthz`` names a missing one."""
    threading.Thread(target=_beat, args=(sender.hostname,), daemon=True, name="worker beat").start()


@worker_shutdown.connect
def stop_beating(sender: Any, **kwargs: Any) -> None:
    """A worker that leaves in good order is gone at once, not only when its last beat is old."""
    _stopping.set()
    _carefully(_forget, sender.hostname)


def _beat(name: str) -> None:
    while True:
        _carefully(_note_beat, name)
        if _stopping.wait(BEAT_EVERY_S):
            return


def _carefully(write: Any, name: str) -> None:
    """A beat that fails is logged; the worker works on, and the next beat tries again."""
    from django.db import Error, connection

    try:
        write(name)
    except Error as error:
        logger.warning("the worker's beat could not be written: %s", error)
    finally:
        connection.close()


def _note_beat(name: str) -> None:
    from django.utils import timezone

    from sizing.models import WorkerBeat

    now = timezone.now()
    if not WorkerBeat.objects.filter(name=name).update(seen_at=now):
        WorkerBeat.objects.create(name=name, seen_at=now)
        WorkerBeat.objects.filter(seen_at__lt=now - FORGET_AFTER).delete()


def _forget(name: str) -> None:
    from sizing.models import WorkerBeat

    WorkerBeat.objects.filter(name=name).delete()
