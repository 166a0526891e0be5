"""The web server's entry point: ``gunicorn llmgw_admin.wsgi``."""

import gc
import os
import sys

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from sizing import tally

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmgw_admin.settings")

try:
    application = get_wsgi_application()
except SystemExit:
    # A wrong setting, said already. Gunicorn takes 3 for "do not start me again"; any other code it retries.
    raise SystemExit(3) from None

# A thread that computes gives way after 1 ms instead of 5: a short answer waits that long for each of them
# whenever it has read from the database.
sys.setswitchinterval(0.001)
# An answer about thousands of nodes makes far more objects than the 700 after which Python looks for garbage,
# and each look stops all threads.
gc.set_threshold(10_000, 10, 10)

tally.share_in(settings.DATA_DIR / "metrics")
