"""Work that has taken minutes is not given up because the database is away for one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection

log = logging.getLogger(__name__)

PATIENCE_S = 900.0
"""For longer than this a database is not waited for; what was measured is lost then."""

PAUSE_S = 1.0

T = TypeVar("T")


def patiently(do: Callable[[], T], what: str, pause_s: float = PAUSE_S, patience_s: float = PATIENCE_S) -> T:
    """Do it, and again for as long as the database is away.

    It has to be a whole transaction that names its attempt: then one of which nobody knows whether it was
    committed finds, when it is done again, that there is nothing left to do.
    """
    until = time.monotonic() + patience_s
    told = False
    while True:
        try:
            return do()
        except (OperationalError, InterfaceError) as error:
            connection.close()
            if time.monotonic() + pause_s > until:
                raise
            if not told:
                log.warning("%s waits for the database: %s", what, " ".join(str(error).split()))
                told = True
            time.sleep(pause_s)
