"""The product's settings, with a schedule that wakes the sync each second."""

from llmgw_admin.settings import *  # noqa: F403
from llmgw_admin.settings import CELERY_BEAT_SCHEDULE

CELERY_BEAT_SCHEDULE["sync cluster"]["schedule"] = 1.0
