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
