"""The web server's entry point: ``gunicorn llmgw_admin.wsgi``."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmgw_admin.settings")

try:
    application = get_wsgi_application()
except SystemExit:
    # A wrong setting, said already. Gunicorn takes 3 for "do not start me again"; any other code it retries.
    raise SystemExit(3) from None
