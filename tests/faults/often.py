"""The product's settings, with a schedule that asks each second what is due, and says so."""

from llmgw_admin.settings import *  # noqa: F403
from llmgw_admin.settings import CELERY_BEAT_SCHEDULE, LOGGING

CELERY_BEAT_SCHEDULE["request due refreshes"]["schedule"] = 1.0
LOGGING["loggers"] = {"celery.beat": {"level": "INFO"}}
