"""One line a log record, tracebacks included, so that a line tool sees whole records."""

import logging
import time


class OneLine(logging.Formatter):
    """Time in UTC, level, logger, message; line breaks inside become `` | ``."""

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ")

    def format(self, record: logging.LogRecord) -> str:
        return " | ".join(super().format(record).splitlines())


def without_traceback_of_refusals(record: logging.LogRecord) -> bool:
    """A filter that lets all pass: what was refused (4xx) is no fault in the code, so its traceback goes."""
    if 400 <= getattr(record, "status_code", 500) < 500:
        record.exc_info = record.exc_text = None
    return True
