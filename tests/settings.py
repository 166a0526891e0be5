"""The product's settings, on a data folder of the test run's own, with cheap passwords."""

import atexit
import os
import shutil
import tempfile

# Each process of a run in several has a folder of its own, not the one of the process that started the run.
given = os.environ.get("DATA_DIR")
inherited = "PYTEST_XDIST_WORKER" in os.environ and given == os.environ.get("TEST_RUN_DATA_DIR")
if given is None or inherited:
    os.environ["DATA_DIR"] = tempfile.mkdtemp(prefix="llmgw-admin-tests-")
    atexit.register(shutil.rmtree, os.environ["DATA_DIR"], ignore_errors=True)
    os.environ.setdefault("TEST_RUN_DATA_DIR", os.environ["DATA_DIR"])
# What the shell says of the operator's own desk is no part of a test.
for name in ("DEBUG", "HTTPS", "SECRET_KEY", "SECRET_KEY_FILE"):
    os.environ.pop(name, None)
for name in ("ALLOWED_HOSTS", "CACHE_URL", "CELERY_BROKER_URL", "KUBERNETES", "THROTTLE"):
    os.environ.pop(name, None)

from llmgw_admin.settings import *  # noqa: E402, F403
from llmgw_admin.settings import DATA_DIR, DATABASES  # noqa: E402

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A file, as in real life: other processes and threads see it, and its locks are the real ones.
    DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}

ANSWERS_AT_ONCE = True  # in the transaction of the test
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", "testserver"]
TOKEN_USES_BY_THREAD = False  # a thread would see nothing of a test's transaction
