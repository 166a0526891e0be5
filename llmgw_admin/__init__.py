"""Wiring: settings, addresses, web server and worker entry points. What the desk does is in ``sizing``."""

# Here, so that a task that the web server sends goes to this app's queue.
from llmgw_admin.celery import app as celery_app

__all__ = ["celery_app"]
