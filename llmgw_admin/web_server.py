"""How gunicorn serves the desk: ``gunicorn --config python:llmgw_admin.web_server llmgw_admin.wsgi``."""

import sys
from typing import Any

from gunicorn.glogging import Logger  # type: ignore[import-untyped]

from llmgw_admin import given
from llmgw_admin.log_lines import formatter_of


class DeskLog(Logger):
    """What gunicorn says, in the form of all other lines: its own process never reads Django's settings."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(formatter_of(given.text("LOG_FORMAT")))


try:
    bind = f"0.0.0.0:{given.number('PORT', 0, 65535)}"
    workers = given.number("WEB_WORKERS", 1, 64)
    threads = given.number("WEB_THREADS", 1, 256)
except given.WrongSetting as wrong:
    print(f"wrong setting: {wrong}", file=sys.stderr)
    raise SystemExit(2) from None

worker_class = "gthread"
timeout = 120  # of a process that says nothing; requests have limits of their own
graceful_timeout = 10
keepalive = 5
loglevel = "warning"
control_socket_disable = True
logger_class = DeskLog
