"""Whether the web server in this container answers: exit 0 or 1. For a container's health check."""

import http.client
import os
import sys

host = os.environ.get("ALLOWED_HOSTS", "").split(",")[0].strip().lstrip(".")
connection = http.client.HTTPConnection(
    "127.0.0.1", int(os.environ.get("PORT", "").strip() or 8000), timeout=4
)
try:
    connection.request(
        "GET", "/healthz/live", headers={"Host": host if host and host != "*" else "localhost"}
    )
    sys.exit(0 if connection.getresponse().status == 200 else 1)
except (OSError, http.client.HTTPException):
    sys.exit(1)
