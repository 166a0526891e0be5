"""One line a log record, tracebacks included, so that a line tool sees whole records.

What a record says is made harmless: a line break or control character in a name, a path or a
header cannot begin a record of its own, nor reach a terminal.
"""

import json
import logging
import re
import time
from collections.abc import Mapping
from typing import Any

from sizing.log_context import Told, about

# Control and formatting characters (also of text direction), and halves of characters, which no stream takes.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]"
)
_PLAIN = re.compile(r"[\w.:/@+-]+", re.ASCII)
# An access line has these in its words; in JSON they are fields as well.
_IN_WORDS = frozenset({"method", "path", "status", "duration_ms"})


def formatter_of(kind: str) -> logging.Formatter:
    """The formatter of a setting ``LOG_FORMAT``."""
    return JsonLine() if kind == "json" else OneLine()


class OneLine(logging.Formatter):
    """Time in UTC, level, logger, what it is about, message; line breaks inside become `` | ``."""

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s%(about)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ")

    def format(self, record: logging.LogRecord) -> str:
        fields = " ".join(f"{k}={_quoted(v)}" for k, v in _fields(record).items() if k not in _IN_WORDS)
        record.about = f" [{fields}]" if fields else ""
        return _escaped(" | ".join(super().format(record).splitlines()))


class JsonLine(logging.Formatter):
    """The same as an object of JSON, in ASCII: time, level, logger, message, what it is about, traceback."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        if record.stack_info:
            told["stack"] = self.formatStack(record.stack_info)
        return json.dumps(told)


def _fields(record: logging.LogRecord) -> Mapping[str, Told]:
    """What the work is about, then what the record itself tells (``extra={"fields": {...}}``)."""
    return {**about(), **getattr(record, "fields", {})}


def _quoted(value: Told) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _escaped(line: str) -> str:
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def without_traceback_of_refusals(record: logging.LogRecord) -> bool:
    """A filter that lets all pass: what was refused (4xx) is no fault in the code, so its traceback goes."""
    if 400 <= getattr(record, "status_code", 500) < 500:
        record.exc_info = record.exc_text = None
    return True
