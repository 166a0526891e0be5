"""The id of a request goes with the messages it sends, so that the lines of their tasks carry it too."""

import logging
import logging.config
import time
from typing import Any

from celery.signals import before_task_publish, setup_logging, task_postrun, task_prerun
from django.conf import settings

from sizing import log_context

logger = logging.getLogger(__name__)

HEADER = "desk_request_id"

_running: dict[str, tuple[Any, float]] = {}


@setup_logging.connect
def log_as_the_desk_does(loglevel: int, **kwargs: Any) -> None:
    """Celery leaves the log to the desk's own settings; ``--loglevel`` is for what Celery says of itself."""
    logging.config.dictConfig(settings.LOGGING)
    logging.getLogger("celery").setLevel(loglevel)


@before_task_publish.connect
def send_the_id(headers: dict[str, Any] | None = None, **kwargs: Any) -> None:
    """A message tells what request it is sent for."""
    if headers is not None and (request_id := log_context.request_id()):
        headers[HEADER] = request_id


@task_prerun.connect
def begin(task_id: str, task: Any, **kwargs: Any) -> None:
    """What the task logs carries its name, its id, and that of the request it was sent for."""
    request_id = log_context.valid_request_id((task.request.headers or {}).get(HEADER))
    token = log_context.begin(task=task.name, task_id=task_id, request_id=request_id)
    _running[task_id] = token, time.monotonic()


@task_postrun.connect
def end(task_id: str, task: Any, state: str | None = None, **kwargs: Any) -> None:
    """A task that somebody asked for leaves a line; those of the schedule tell only what they did."""
    token, begun = _running.pop(task_id, (None, 0.0))
    if token is None:
        return
    if log_context.request_id():
        fields = {"duration_ms": round((time.monotonic() - begun) * 1000, 1)}
        logger.info("%s: %s", task.name, (state or "ended").lower(), extra={"fields": fields})
    log_context.end(token)
