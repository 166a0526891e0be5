"""The background worker: ``celery -A llmgw_admin worker``."""

import logging
import os
import secrets
import threading
import warnings
from datetime import timedelta
from typing import Any

from celery import Celery
from celery.exceptions import CPendingDeprecationWarning
from celery.platforms import SecurityWarning  # type: ignore[attr-defined]
from celery.signals import (
    celeryd_after_setup,
    celeryd_init,
    worker_process_init,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)
from celery.utils.nodenames import nodesplit

from llmgw_admin import task_log  # noqa: F401  it listens to what Celery tells
from sizing.supervisor import end_with
from sizing.syncing.stopping import stopping

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmgw_admin.settings")

logger = logging.getLogger(__name__)

# Messages are JSON, so root is no more at risk here than in the web server, which says nothing of it.
warnings.filterwarnings("ignore", category=SecurityWarning)
# That what is being measured goes on while the broker is away is what is wanted.
warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)

app = Celery("llmgw_admin")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

BEAT_EVERY_S = 15.0
FORGET_AFTER = timedelta(days=1)

_stopping = threading.Event()


@celeryd_init.connect
def name_apart(instance: Any, **kwargs: Any) -> None:
    """Two workers are never one to the broker and the database, though their hosts may have one name."""
    name, host = nodesplit(instance.hostname)
    instance.hostname = f"{name}-{secrets.token_hex(4)}@{host}"


@celeryd_after_setup.connect
def take_what_is_for_its_queues(instance: Any, **kwargs: Any) -> None:
    """The queues that a worker is started for say which replicas it may measure."""
    from sizing.measuring import pools

    pools.serve(instance.app.amqp.queues.consume_from)


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
    queues = sorted(sender.app.amqp.queues.consume_from)
    threading.Thread(target=_beat, args=(sender.hostname, queues), daemon=True, name="worker beat").start()


@worker_shutdown.connect
def stop_beating(sender: Any, **kwargs: Any) -> None:
    """A worker that leaves in good order is gone at once, not only when its last beat is old."""
    _stopping.set()
    _carefully(_forget, sender.hostname)


def _beat(name: str, queues: list[str]) -> None:
    while True:
        _carefully(_note_beat, name, queues)
        if _stopping.wait(BEAT_EVERY_S):
            return


def _carefully(write: Any, *told: Any) -> None:
    """A beat that fails is logged; the worker works on, and the next beat tries again."""
    from django.db import Error, connection

    try:
        write(*told)
    except Error as error:
        logger.warning("the worker's beat could not be written: %s", error)
    finally:
        connection.close()


def _note_beat(name: str, queues: list[str]) -> None:
    from sizing.models import WorkerBeat
    from sizing.models.clock import read_shared_now

    now = read_shared_now()
    if not WorkerBeat.objects.filter(name=name).update(seen_at=now, queues=queues):
        WorkerBeat.objects.create(name=name, seen_at=now, queues=queues)
        WorkerBeat.objects.filter(seen_at__lt=now - FORGET_AFTER).delete()


def _forget(name: str) -> None:
    from sizing.models import WorkerBeat

    WorkerBeat.objects.filter(name=name).delete()
